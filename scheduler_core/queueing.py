"""The queue as people see it: rule 6's order, before any commitment of a pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from scheduler_core.cursor import TreeCursor
from scheduler_core.fairshare import Standings, Takers
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.index import LeafQueue
from scheduler_core.state import ClusterState
from scheduler_core.workload import WorkloadPhase


def queue_order(state: ClusterState, also: Collection[WorkloadId] = ()) -> list[WorkloadId]:
    """All waiting and held workloads, in order.

    `also`: workloads that run, placed as if they waited.
    """
    state.index.expire(state.now)
    allocated, unallocated = _with_held(state, also)
    by_need = TreeCursor(state, allocated, Standings(state).first)
    by_use = TreeCursor(state, unallocated, Takers(state).first)
    by_need.add(allocated)
    by_use.add(unallocated)
    return [*_walk(by_need), *_walk(by_use)]


def _with_held(
    state: ClusterState, also: Collection[WorkloadId]
) -> tuple[dict[BudgetId, LeafQueue], dict[BudgetId, LeafQueue]]:
    """Queues for people: the held ones stand where they would stand if released."""
    allocated: dict[BudgetId, LeafQueue] = {}
    unallocated: dict[BudgetId, LeafQueue] = {}
    for wid, record in state.workloads.items():
        if record.phase in (WorkloadPhase.WAITING, WorkloadPhase.HELD) or wid in also:
            queues = allocated if record.workload.allocated else unallocated
            queues.setdefault(record.workload.budget, LeafQueue()).add(record.workload)
    return allocated, unallocated


def _walk(cursor: TreeCursor) -> Iterator[WorkloadId]:
    """Every workload, at standings that do not change."""
    while (leaf := cursor.best()) is not None:
        while (found := cursor.leaf(leaf).next()) is not None:
            yield found[0]
        cursor.exhaust(leaf)
