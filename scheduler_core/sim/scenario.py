"""A whole world from one seed: a tree, a fleet, people and faults, driven step by step with every invariant checked.

A failure is its seed: the message names seed and step, and the same call fails again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.engine import Engine, Step
from scheduler_core.errors import InvariantBroken
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.invariants import check
from scheduler_core.observations import (
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostDeclared,
    InventoryLoaded,
    Observation,
    ReleaseRequested,
    RequeueRequested,
    UndrainRequested,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.policy import Policy
from scheduler_core.sim.world import Faults, World
from scheduler_core.units import HOUR, MINUTE, SECOND, WEIGHT
from scheduler_core.workload import OnPreempt, Workload

START = 1_700_000_000_000
OPERATOR = By("ops", "drill")


@dataclass
class Tick:
    """One entry of the scenario's journal."""

    now: int
    observations: list[Observation]
    step: Step


@dataclass
class Scenario:
    """Everything of a run that came from the seed, and its journal."""

    seed: int
    faults: Faults = field(default_factory=Faults)
    policy: Policy = field(default_factory=lambda: Policy(lookback_ms=12 * HOUR, lost_after_ms=2 * MINUTE))
    ticks: list[Tick] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        count = self.draw.randrange(2, 7)
        sizes = self.draw.choice(((8,), (8,), (4, 8), (2, 4)))
        self.fleet = tuple(Host(HostName(f"h{n}"), self.draw.choice(sizes)) for n in range(count))
        self.world = World(self.seed, {h.name: h.gpus for h in self.fleet}, self.faults)
        self.engine = Engine()
        self.now = START
        self.submitted = 0
        self.tree = random_tree(self.draw)
        self.step([InventoryLoaded(self.policy, self.tree, self.fleet)])
        self.step([self.world.seen(h.name) for h in self.fleet])

    @property
    def leaves(self) -> tuple[BudgetId, ...]:
        return BudgetTree.of(self.tree).leaves

    def run(self, steps: int) -> None:
        """So many steps; raises InvariantBroken with seed and step."""
        for number in range(steps):
            try:
                self.turn()
            except InvariantBroken as error:
                raise InvariantBroken(f"seed {self.seed}, step {number}: {error}") from None

    def turn(self) -> None:
        """Time passes, the world reports, people and faults act, the engine steps."""
        self.now += self.draw.choice((100, SECOND, 5 * SECOND, 30 * SECOND, 3 * MINUTE))
        observations = self.world.advance(self.now)
        observations += self.world.misfortune()
        observations += self.people()
        if self.draw.randrange(20) == 0 and observations:
            observations.append(self.draw.choice(observations))  # a fact that arrives twice
        self.step(observations)
        if self.draw.randrange(10) == 0:
            self.look_again()

    def step(self, observations: list[Observation]) -> None:
        step = self.engine.step(self.now, observations)
        self.ticks.append(Tick(self.now, observations, step))
        if problems := check(self.engine.state):
            raise InvariantBroken("; ".join(problems[:5]))
        for command in step.commands:
            self.world.send(command)

    def look_again(self) -> None:
        """What the shell does with commands that have no outcome: look at the host, then send."""
        found: list[Observation] = []
        for host in self.world.hosts.values():
            if host.reachable:
                found += self.world.listing(host.name)
        self.step(found)
        for command in self.engine.outstanding():
            answers = self.world.resend(command)
            if answers:
                self.step(answers)

    # -- people ----------------------------------------------------------------------------------------------------

    def people(self) -> list[Observation]:
        """One thing that somebody asks for, often a submission."""
        roll = self.draw.randrange(100)
        if roll < 45:
            return [WorkloadSubmitted(self.workload())]
        if roll < 60:
            return self._on_host(roll)
        if roll < 70:
            return self._on_workload(roll)
        if roll < 72:
            self.tree = reweighted(self.draw, self.tree)
            return [InventoryLoaded(self.policy, self.tree, self.fleet)]
        return []

    def workload(self) -> Workload:
        self.submitted += 1
        draw = self.draw
        largest = max(h.gpus for h in self.fleet)
        hosts = draw.choice((None, None, None, 2))
        per_host = draw.choice((1, 2, largest)) if hosts else None
        gpus = hosts * per_host if hosts and per_host else draw.choice((1, 1, 2, largest // 2, largest))
        return Workload(
            WorkloadId(f"w{self.submitted}"),
            draw.choice(self.leaves),
            gpus,
            draw.choice((0, MINUTE, 10 * MINUTE, HOUR)),
            self.now,
            owner=draw.choice("abc"),
            priority=draw.choice((0, 0, 1)),
            hosts=hosts,
            gpus_per_host=per_host,
            resumable=draw.random() < 0.7,
            on_preempt=draw.choice(list(OnPreempt)),
            time_limit_ms=draw.choice((None, None, 20 * MINUTE)),
        )

    def _on_host(self, roll: int) -> list[Observation]:
        host = self.draw.choice(self.fleet).name
        if roll < 49:
            return [UndrainRequested(host, OPERATOR)]
        if roll < 52:
            return [CordonRequested(host, OPERATOR)]
        if roll < 54:
            return self._bury(host)
        mode = self.draw.choice(("contract", "contract", "finish", "now"))
        if mode == "now":
            self._excuse(host)
        deadline = self.now + 10 * MINUTE if mode == "finish" else None
        return [DrainRequested(DrainId(f"d{len(self.ticks)}"), host, OPERATOR, mode, deadline)]  # type: ignore[arg-type]

    def _bury(self, name: HostName) -> list[Observation]:
        """An operator declares a host dead only when it really is: here, when its processes are."""
        host = self.world.hosts[name]
        if host.reachable or any(p.alive for p in host.processes.values()):
            return []
        host.processes.clear()
        for run in self.engine.state.hosts[name].runs:
            host.burnt[run] = None  # powered off: what was on its way does not start
        return [HostDeclared(name, "dead", OPERATOR)]

    def _excuse(self, host: HostName) -> None:
        for run in self.engine.state.hosts[host].runs:
            self.world.excused[run] = None

    def _on_workload(self, roll: int) -> list[Observation]:
        known = sorted(self.engine.state.workloads)
        if not known:
            return []
        wid = self.draw.choice(known)
        record = self.engine.state.workloads[wid]
        if roll < 63:
            return [CancelRequested(wid, OPERATOR)]
        if roll < 66:
            override = self.draw.random() < 0.3
            if override and record.run is not None:
                self.world.excused[record.run] = None
            return [RequeueRequested(wid, OPERATOR, override)]
        if roll < 68:
            return [HoldRequested(wid, OPERATOR)]
        if roll < 69:
            return [WorkloadMoved(wid, OPERATOR, self.draw.choice(self.leaves))]
        return [ReleaseRequested(wid, OPERATOR)]


def random_tree(draw: Random) -> tuple[Budget, ...]:
    """Up to three levels, with weights 0 and caps among them."""
    found: list[Budget] = []

    def grow(parent: BudgetId, prefix: str, depth: int) -> None:
        for n in range(draw.randrange(1, 4)):
            bid = BudgetId(f"{prefix}{n}")
            weight = draw.choice((0, 1, 2, 5)) * WEIGHT
            cap = draw.choice((None, None, None, 8, 16))
            found.append(Budget(bid, f"b{bid}", parent, weight, cap, over_budget_priority=draw.choice((0, 0, 1))))
            if depth < 3 and draw.random() < 0.4:
                grow(bid, f"{bid}.", depth + 1)

    grow(ROOT, "", 1)
    return tuple(found)


def reweighted(draw: Random, tree: tuple[Budget, ...]) -> tuple[Budget, ...]:
    """Somebody edits a weight."""
    from dataclasses import replace

    chosen = draw.choice(tree).id
    return tuple(replace(b, weight=draw.choice((0, 1, 3)) * WEIGHT) if b.id == chosen else b for b in tree)
