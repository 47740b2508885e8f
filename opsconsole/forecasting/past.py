"""What budgets, users and sizes did before, as far as the state knows it: a day of what ended, and all that lives."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

from opsconsole.forecasting.lengths import Lengths, Stay
from scheduler_core.ids import WorkloadId
from scheduler_core.state import ENDED_KEEP_MS, Attempt, ClusterState, WorkloadRecord
from scheduler_core.units import MINUTE
from scheduler_core.workload import Workload, WorkloadPhase

BASES = ("budget, user and size", "budget and size", "budget", "everything that ended", "nothing")  # nearest first
LEAST_ENDED = 5  # of a group, before it says anything
SHORTEST_GUESS_MS = 15 * MINUTE
BY_ITSELF = ("succeeded", "failed", "cancelled", "time limit")  # outcomes that say how long it runs
NOTHING = Lengths(())


def likes(w: Workload) -> tuple[tuple[object, ...], ...]:
    """The groups that a workload belongs to, by BASES; sizes of a group differ by less than a factor of two."""
    size = w.gpus.bit_length()
    return (w.budget, w.owner, size), (w.budget, size), (w.budget,), ()


@dataclass(frozen=True, slots=True)
class Basis:
    """`nearest` counts through BASES."""

    nearest: int
    lengths: Lengths


class Past:
    """Of one state. The same draw for the same workload, seed and future, whatever is drawn besides."""

    def __init__(self, state: ClusterState) -> None:
        self.worked: dict[WorkloadId, int] = {}  # ms of those that live, which need not be done again
        groups: dict[tuple[object, ...], list[Stay]] = defaultdict(list)
        for record in state.workloads.values():
            closed, still_open = stays(record, state)
            for group in likes(record.workload):
                groups[group] += [stay for stay in (*closed, still_open) if stay.worked > stay.entered]
            if record.phase is not WorkloadPhase.ENDED:
                self.worked[record.workload.id] = still_open.worked
        self.groups = {group: Lengths(found) for group, found in groups.items()}

    def basis(self, w: Workload) -> Basis:
        for nearest, group in enumerate(likes(w)):
            lengths = self.groups.get(group, NOTHING)
            if lengths.ended >= LEAST_ENDED:
                return Basis(nearest, lengths)
        return Basis(len(BASES) - 1, NOTHING)

    def left_ms(self, w: Workload, seed: str) -> int:
        """How much longer it works."""
        worked = self.worked.get(w.id, 0)
        chance = 1 - Random(f"{seed} {w.id}").random()
        length = self.basis(w).lengths.draw(chance, worked, max(w.min_runtime_ms, SHORTEST_GUESS_MS))
        return max(1, length - worked)


def stays(record: WorkloadRecord, state: ClusterState) -> tuple[list[Stay], Stay]:
    """Those that are over, and the last one, which goes on while the workload lives.

    What is resumed goes on with the next attempt; all else begins anew. What was over before we began to know of it
    has `entered` no less than it worked: only that its workload lives on let us know.
    """
    since = state.now - ENDED_KEEP_MS
    closed: list[Stay] = []
    entered = worked = 0
    for attempt in record.attempts:
        begun, ended_at = _span(attempt)
        entered, worked = entered + max(0, min(ended_at, since) - begun), worked + ended_at - begun
        ended = attempt.outcome in BY_ITSELF
        if ended or not record.workload.resumable:
            closed.append(Stay(entered, worked, ended))
            entered = worked = 0
    run = state.runs.get(record.run) if record.run is not None else None
    if run is not None and run.started_at is not None:
        begun = run.started_at
        entered, worked = entered + max(0, since - begun), worked + max(0, state.now - begun)
    return closed, Stay(entered, worked, ended=False)


def _span(attempt: Attempt) -> tuple[int, int]:
    """Empty where it never started."""
    return attempt.ended_at if attempt.started_at is None else attempt.started_at, attempt.ended_at
