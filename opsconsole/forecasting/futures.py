"""The same random futures from one state, as it is and with a draft's changes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from opsconsole.forecasting.arrivals import Arrivals
from opsconsole.forecasting.draft import NO_CHANGE, Draft
from opsconsole.forecasting.past import Past
from opsconsole.forecasting.world import LiveWorld
from opsconsole.simulating.cores import on_cores
from opsconsole.simulating.meter import ALLOCATED
from opsconsole.simulating.metrics import NOTHING, Delivery, hours, ratio, waits
from opsconsole.simulating.replay import Outcome
from opsconsole.simulating.workloads import Stream
from scheduler_core.budget import BudgetTree
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.drain import active_drains
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.image import from_image, to_image
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.workload import Workload, WorkloadPhase

YIELDS = (StopCause.PREEMPT, StopCause.DRAIN)


@dataclass
class Question:
    """What is asked of a state, which stays as it is. `draft` None: only what comes of it as it is."""

    state: ClusterState
    draft: Draft | None
    horizon_ms: int
    futures: int
    seed: int = 1

    @cached_property
    def past(self) -> Past:
        return Past(self.state)

    @cached_property
    def arrivals(self) -> Arrivals:
        return Arrivals(self.state)

    @cached_property
    def image(self) -> bytes:
        """Each future uses up a copy."""
        return pickle.dumps(to_image(self.state))

    @cached_property
    def living(self) -> list[Workload]:
        """What runs or may start, by submission."""
        found = [r.workload for r in self.state.workloads.values() if _may_run(self.state, r)]
        return sorted(found, key=lambda w: (w.submitted_at, w.id))

    @cached_property
    def begun(self) -> set[WorkloadId]:
        """What runs or ran before: its wait is over, even where it waits again."""
        records = self.state.workloads.items()
        return {wid for wid, r in records if r.run is not None or any(a.started_at is not None for a in r.attempts)}

    @property
    def drafts(self) -> list[Draft]:
        """A side each."""
        return [NO_CHANGE] if self.draft is None else [NO_CHANGE, self.draft]


def _may_run(state: ClusterState, record: WorkloadRecord) -> bool:
    """Nobody knows when somebody lets a held one go, unless it was held for a while."""
    held = record.phase is WorkloadPhase.HELD and record.workload.id not in state.holds_end
    return record.phase is not WorkloadPhase.ENDED and not held


@dataclass(slots=True)
class Lived:
    """What came of one future. Instants in ms from now on; None: not before the horizon."""

    starts: dict[WorkloadId, int | None] = field(default_factory=dict)  # of what does not run now, arrivals left out
    stopped: dict[WorkloadId, StopDecided] = field(default_factory=dict)  # of what runs now, for others or for a drain
    emptied: dict[HostName, int | None] = field(default_factory=dict)  # by host that is drained
    figures: dict[str, float | None] = field(default_factory=dict)
    budgets: dict[BudgetId, dict[str, float | None]] = field(default_factory=dict)  # of the leaves


def all_futures(question: Question, workers: int, progress: Callable[[float], None]) -> list[list[Lived]]:
    """By side and future. The same on any number of workers. Ctrl-C ends all of it: KeyboardInterrupt."""
    _ = question.past, question.arrivals, question.image, question.living, question.begun  # once, before it is shared
    tasks = [(side, future) for future in range(question.futures) for side in range(len(question.drafts))]
    lived = on_cores(partial(one_future, question), tasks, workers, progress)
    return [lived[side :: len(question.drafts)] for side in range(len(question.drafts))]


def one_future(question: Question, task: tuple[int, int], progress: Callable[[float], bool]) -> Lived:
    """Raises Cancelled."""
    side, future = task
    draft, seed = question.drafts[side], f"{question.seed} {future}"
    state = from_image(pickle.loads(question.image))
    now = state.now
    tree = state.budgets if draft.budgets is None else BudgetTree.of(draft.budgets)
    coming = question.arrivals.draw(question.horizon_ms, seed)
    stream = Stream(tree, [*question.living, *draft.submitted, *coming])
    stream.run_ms = [_left_ms(question, w, seed) for w in stream.workloads]
    known = {w.id for w in (*question.living, *draft.submitted)}
    running = {run.workload for run in state.runs.values()}
    world = LiveWorld(state, stream, draft)
    drains = [drain.id for drain in active_drains(state)]
    outcome = world.run(now + question.horizon_ms, progress)
    drains += [d for d, drain in state.drains.items() if d not in drains and drain.requested_at >= now]
    lived = Lived(stopped={w: stop for w, stop in world.stopped.items() if stop.cause in YIELDS})
    for number, w in enumerate(stream.workloads):
        if w.id in known and w.id not in running:
            at = outcome.started_at[number]
            lived.starts[w.id] = None if at is None else at - now
    for drain in (state.drains[d] for d in drains if d in state.drains):
        done = drain.done_at if drain.ended == "drained" else None
        lived.emptied[drain.host] = None if done is None else done - now
    _measure(outcome, [n for n, w in enumerate(stream.workloads) if w.id not in question.begun], lived)
    return lived


def _left_ms(question: Question, w: Workload, seed: str) -> int:
    """Not beyond its time limit, which ends it whatever is left."""
    left, limit = question.past.left_ms(w, seed), w.time_limit_ms
    if limit is None:
        return left
    record = question.state.workloads.get(w.id)
    run = None if record is None or record.run is None else question.state.runs.get(record.run)
    ran = 0 if run is None or run.started_at is None else question.state.now - run.started_at
    return min(left, max(1, limit - ran))


def _measure(outcome: Outcome, numbers: Sequence[int], lived: Lived) -> None:
    """`numbers`: of those whose waits count."""
    meter, tree, length = outcome.meter, outcome.stream.tree, outcome.end - outcome.begin
    everybody: dict[BudgetId, list[int]] = {leaf: [] for leaf in tree.leaves}
    counted: dict[BudgetId, list[int]] = {leaf: [] for leaf in tree.leaves}
    for number, w in enumerate(outcome.stream.workloads):
        everybody[w.budget].append(number)
    for number in numbers:
        counted[outcome.stream.workloads[number].budget].append(number)
    whole = NOTHING
    for leaf in tree.leaves:
        got = Delivery.of(meter.accounts[leaf], tree.fractions[leaf], meter.service, length)
        whole += got
        if everybody[leaf]:
            lived.budgets[leaf] = _figures(outcome, everybody[leaf], counted[leaf], got)
    lived.figures = _figures(outcome, range(len(outcome.stream.workloads)), numbers, whole)
    lived.figures["occupancy"] = ratio(whole.allocated + whole.unallocated, meter.service.total(ALLOCATED))


def _figures(outcome: Outcome, numbers: Sequence[int], counted: Sequence[int], got: Delivery) -> dict[str, Any]:
    waited = waits(outcome, counted)
    return {
        "wait_p50_s": waited["p50"],
        "wait_p90_s": waited["p90"],
        "delivered_gpu_h": hours(got.allocated),
        "unallocated_gpu_h": hours(got.unallocated),
        "delivered_over_owed": ratio(got.toward, got.owed),
        "preemptions": sum(outcome.preempted[n] for n in numbers),
        "lost_gpu_h": hours(sum(outcome.lost_gpu_ms[n] for n in numbers)),
    }
