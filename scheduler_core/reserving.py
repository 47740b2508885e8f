"""Rule 21 in a pass: which reservations have come due and for whose runs, and which are made."""

from __future__ import annotations

from collections.abc import Container, Iterator

from scheduler_core.cursor import TreeCursor
from scheduler_core.decisions import Reserved
from scheduler_core.earliest import earliest
from scheduler_core.fairshare import Standings, commitment
from scheduler_core.ids import BudgetId, RunId
from scheduler_core.placement import Room, holders
from scheduler_core.settled import LeafKey, Settled
from scheduler_core.state import ClusterState
from scheduler_core.units import MINUTE

LOOK_MS = (
    1 * MINUTE
)  # so often the first in order are looked at: to rank all who wait costs as much as the rest of a pass
RETRY_MS = 30 * MINUTE  # a head without an instant is asked again so often: what it lacks turns slowly


def may_begin(state: ClusterState, made: Reserved) -> bool:
    """Can all of it be taken now? Nobody is stopped under protection, whatever was promised."""
    for member in made.members:
        host = state.hosts[member.host]
        if member.slots & ~host.usable or member.slots & host.claimed:
            return False
    return not any(run.stop is None and run.protected(state.now) for run in holders(state, made.members))


def new_reservations(standings: Standings, room: Room, settled: Settled, going: Container[RunId]) -> Iterator[Reserved]:
    """For the first in order that cannot start: at most one per leaf, `max_reservations` in all."""
    state, made = standings.state, room.reservations
    most = state.policy.max_reservations
    if made.used or state.index.news.opened:
        settled.reserve_at = None
    if len(made.all) >= most or state.now < (settled.reserve_at or 0):
        return
    settled.reserve_at, settled.newcomers = None, False
    cursor = TreeCursor(state, state.index.queues, standings.first)
    cursor.add(_unreserved(state, room, settled))
    for _ in range(most):
        if len(made.all) >= most or (leaf := cursor.best()) is None:
            return
        cursor.exhaust(leaf)
        settled.reserve_at = state.now + LOOK_MS
        head = settled.blocked[leaf].head
        assert head is not None
        if _asked_lately(state, settled, leaf, head):
            continue
        workload = state.workloads[head[2]].workload
        found = earliest(standings, room, workload, going)
        if found is None or found[0] <= state.now:
            settled.unreserved[leaf] = (head, state.now)
            continue
        reserved = made.all[workload.id] = Reserved(workload.id, *found)
        standings.commit(state.budgets.chains[leaf], commitment(workload))
        yield reserved


def _unreserved(state: ClusterState, room: Room, settled: Settled) -> Iterator[BudgetId]:
    """Leaves whose head waits for GPUs alone."""
    taken = {state.workloads[wid].workload.budget for wid in room.reservations.all}
    braked = {leaf for leaf, _ in settled.braked}
    for leaf, blocked in settled.blocked.items():
        if blocked.head is None or blocked.head[2] in room.reservations.used:
            continue
        if not (leaf in taken or leaf in settled.blast or leaf in braked):
            yield leaf


def _asked_lately(state: ClusterState, settled: Settled, leaf: BudgetId, head: LeafKey) -> bool:
    """Was it found to be without an instant a little while ago?"""
    asked, at = settled.unreserved.get(leaf, (None, 0))
    return asked == head and state.now - at < RETRY_MS
