"""What rule 21 and `pack` are worth to gangs: 1,024 GPUs, demand 2.5 x, gangs of 64 to 512 GPUs among small work.

`python -m benchmarks.core.gangs [SEEDS]` replays the same streams with and without reservations, aligned and
tight, and prints the table of docs/policy.md. Exit status 1 when a reserved gang waited longer than it may.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from fractions import Fraction
from random import Random

from benchmarks.core import worlds
from opsconsole.simulating.metrics import LARGE_GPUS, quantile, waits_ms
from opsconsole.simulating.replay import Event, World
from opsconsole.simulating.rules import Rules
from opsconsole.simulating.workloads import Stream
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.cursor import LeafCursor
from scheduler_core.decisions import PassDone, Placed, ReservationEnded, Reserved
from scheduler_core.engine import Engine, Step
from scheduler_core.fairshare import Standings
from scheduler_core.ids import ROOT, BudgetId, WorkloadId
from scheduler_core.observations import Observation
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState
from scheduler_core.units import DAY, HOUR, MINUTE, WEIGHT
from scheduler_core.workload import OnPreempt, Workload

HOSTS, DEMAND, SEEDS, DAYS, WARM_DAYS = 128, 2.5, 2, 11, 7  # waits, preemptions and losses count after a whole window
SMALL, SMALL_MS, SMALL_MIN_MS = (1, 1, 1, 1, 1, 2, 2, 4, 8, 16), 6 * HOUR, (0, 15 * MINUTE, HOUR, 2 * HOUR, 8 * HOUR)
GANGS, GANG_MS, GANG_MIN_MS = (64, 64, 64, 128, 128, 256, 512), 12 * HOUR, (HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR)
WARM, END = worlds.T0 + WARM_DAYS * DAY, worlds.T0 + DAYS * DAY
ALIGNED, TIGHT = Policy(), Policy(pack="tight")
GANG_WEIGHTS, SMALL_WEIGHTS = (6, 8, 10, 12), (4, 6, 7, 8, 8, 9, 10, 12)
VARIANTS = {  # and does everybody stand at the top?
    "aligned": (ALIGNED, True),
    "tight": (TIGHT, True),
    "aligned, without rule 21": (Policy(max_reservations=0), True),
    "aligned, below a budget with small work": (ALIGNED, False),
}


def tree_of(flat: bool) -> BudgetTree:
    """Four teams that train with gangs and eight with small work: all at the top, or one and two below each of four
    budgets. Every team has the same part of the cluster in both."""
    teams = [(f"gangs{n}", weight) for n, weight in enumerate(GANG_WEIGHTS)]
    teams += [(f"small{n}", weight) for n, weight in enumerate(SMALL_WEIGHTS)]
    tops = [BudgetId(f"top{n}") for n in range(len(GANG_WEIGHTS))]
    above = {name: ROOT if flat else tops[n % len(tops)] for n, (name, _) in enumerate(teams)}
    found = [Budget(BudgetId(name), name, above[name], weight * WEIGHT) for name, weight in teams]
    sums = {top: sum(b.weight for b in found if b.parent == top) for top in tops}
    return BudgetTree.of([*found, *(Budget(top, top, ROOT, weight) for top, weight in sums.items() if weight)])


def stream(seed: int, flat: bool) -> Stream:
    """Small work and gangs that arrive evenly over the days, of exponential length; nine in ten can be resumed.

    Every team asks for 2.5 x its share.
    """
    draw, span, tree = Random(seed), DAYS * DAY, tree_of(flat)
    asked, found = DEMAND * HOSTS * 8 * span, list[tuple[Workload, int]]()
    for name, sizes, mean_ms, minima in (
        ("small", SMALL, SMALL_MS, SMALL_MIN_MS),
        ("gangs", GANGS, GANG_MS, GANG_MIN_MS),
    ):
        shares = {leaf: float(tree.fractions[leaf]) for leaf in tree.leaves if leaf.startswith(name)}
        for n in range(round(asked * sum(shares.values()) / (mean_ms * sum(sizes) / len(sizes)))):
            workload = Workload(
                WorkloadId(f"{name}-{n:06}"),
                draw.choices(list(shares), list(shares.values()))[0],
                draw.choice(sizes),
                draw.choice(minima),
                worlds.T0 + draw.randrange(span),
                resumable=draw.random() < 0.9,
                on_preempt=OnPreempt.RESTART,
            )
            found.append((workload, max(MINUTE, int(draw.expovariate(1 / mean_ms)))))
    found.sort(key=lambda pair: (pair[0].submitted_at, pair[0].id))
    return Stream(tree, [w for w, _ in found], [run_ms for _, run_ms in found])


@dataclass
class Promises:
    """Of gangs, in ms: how long from standing first to a reservation and to a start, and from that to the start."""

    to_reservation: list[int] = field(default_factory=list)
    first_to_start: list[int] = field(default_factory=list)
    to_start: list[int] = field(default_factory=list)


class Watched(Engine):
    """Notes when gangs stand first, are promised an instant, and start."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self.promises = Promises()
        self.first: dict[WorkloadId, int] = {}
        self.reserved: dict[WorkloadId, int] = {}
        self.looked_at = 0

    def step(self, now: int, observations: Sequence[Observation] = ()) -> Step:
        step = super().step(now, observations)
        for decision in step.decisions:
            match decision:
                case Reserved(wid) if self._is_gang(wid):
                    self.promises.to_reservation.append(now - self.first.get(wid, now))
                    self.reserved[wid] = now
                case ReservationEnded(wid):
                    self.reserved.pop(wid, None)
                case Placed(wid) if self._is_gang(wid):
                    self.promises.first_to_start.append(now - self.first.pop(wid, now))
                    if wid in self.reserved:
                        self.promises.to_start.append(now - self.reserved.pop(wid))
                case PassDone() if now - self.looked_at >= MINUTE:
                    self.looked_at = now
                    self._look(now)
        return step

    def _is_gang(self, wid: WorkloadId) -> bool:
        return self.state.workloads[wid].workload.gpus >= LARGE_GPUS

    def _look(self, now: int) -> None:
        """Who is the first in the order of those without a promise?"""
        state, standings = self.state, Standings(self.state)
        heads: dict[BudgetId, WorkloadId] = {}
        for leaf, queue in state.index.queues.items():
            found = LeafCursor(queue).next()
            record = state.workloads[found[0]] if found is not None else None
            if record is not None and not record.claim and record.reserved is None:
                heads[leaf] = record.workload.id
        waiting = dict.fromkeys(budget for leaf in heads for budget in state.budgets.chains[leaf])
        at = ROOT
        while kids := [kid for kid in state.budgets.children[at] if kid in waiting]:
            at = min(kids, key=standings.key)
        if at != ROOT and self._is_gang(heads[at]):
            self.first.setdefault(heads[at], now)

    def close(self, now: int) -> Promises:
        """Who still waits for what was promised counts with the wait so far."""
        self.promises.to_start += [now - at for at in self.reserved.values()]
        self.promises.first_to_start += [now - at for at in self.first.values()]
        return self.promises


@dataclass
class Figures(Promises):
    """Of one replay; `waits` are those of the gangs that started after the first week."""

    waits: list[int] = field(default_factory=list)
    allocated: int = 0  # workloads that started
    preemptions: int = 0
    lost: int = 0  # GPU x ms, of all that there is
    there: int = 0
    worst: list[int] = field(default_factory=list)  # `to_start` of each seed

    def add(self, other: Figures) -> None:
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


def replay(task: tuple[str, int]) -> Figures:
    (policy, flat), seed = VARIANTS[task[0]], task[1]
    world = World(stream(seed, flat), worlds.fleet(HOSTS), policy, Rules(), worlds.T0)
    watched = Watched(world.engine.state)
    world.engine, outcome, before = watched, world.outcome, list[tuple[int, int]]()
    counted = [n for n, w in enumerate(outcome.stream.workloads) if w.allocated]

    def so_far() -> tuple[int, int]:
        return sum(outcome.preempted[n] for n in counted), sum(outcome.lost_gpu_ms)

    def hear(event: Event) -> None:
        if not before and event.at >= WARM:
            before.append(so_far())

    world.tell.append(hear)
    world.run(END, lambda part: True)
    promises, works, (preempted, lost) = watched.close(END), outcome.stream.workloads, so_far()
    begun = [n for n, at in enumerate(outcome.started_at) if at is not None and at >= WARM]
    return Figures(
        **vars(promises),
        waits=waits_ms(outcome, [n for n in begun if works[n].gpus >= LARGE_GPUS]),
        allocated=sum(works[n].allocated for n in begun),
        preemptions=preempted - before[0][0],
        lost=lost - before[0][1],
        there=HOSTS * 8 * (END - WARM),
        worst=[max(promises.to_start, default=0)],
    )


def hours(values: list[int], part: Fraction) -> str:
    found = quantile(sorted(values), part)
    return "–" if found is None else f"{found / HOUR:.1f} h"


def row(name: str, found: Figures) -> str:
    half, most, whole = Fraction(1, 2), Fraction(9, 10), Fraction(1)
    cells = (
        name,
        f"{len(found.to_start)}",
        hours(found.to_start, whole),
        hours(found.to_reservation, most),
        hours(found.first_to_start, most),
        f"{len(found.waits)}",
        hours(found.waits, half),
        hours(found.waits, most),
        f"{100 * found.preemptions / max(1, found.allocated):.1f}",
        f"{100 * found.lost / max(1, found.there):.2f} %",
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| | promises | promise to start, longest | first to promise p90 | first to start p90 | gangs started | wait p50 "
    "| p90 | preemptions per 100 | GPU time lost |\n|---|" + "---:|" * 9
)


def main(seeds: int = SEEDS) -> int:
    tasks = [(name, seed) for seed in range(seeds) for name in VARIANTS]
    totals = {name: Figures() for name in VARIANTS}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for (name, seed), found in zip(tasks, pool.map(replay, tasks), strict=True):
            totals[name].add(found)
            print(f"{name}, seed {seed}: {row(name, found)}", file=sys.stderr, flush=True)
    print(HEAD, *(row(name, found) for name, found in totals.items()), sep="\n")
    policy, late = Policy(), list[str]()
    may = policy.min_runtime_max_ms + policy.start_timeout_ms + policy.checkpoint_grace_ms + policy.stop_grace_ms
    for name, found in totals.items():
        late += [f"{name}, seed {seed}: {ms / HOUR:.2f} h" for seed, ms in enumerate(found.worst) if ms > may]
    print(f"promise to start, at most {may / HOUR:.2f} h in every seed: {'; '.join(late) or 'kept'}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:2])))
