"""The earliest instant at which a workload could start by right (rule 21), and where."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from scheduler_core.decisions import Member
from scheduler_core.fairshare import Standings
from scheduler_core.ids import HostName, RunId
from scheduler_core.placement import Room, sizes_for
from scheduler_core.reservations import Masks, limit_ends_at, yields_at
from scheduler_core.shapes import Shape, matches, shapes
from scheduler_core.state import ClusterState, HostRecord, Run
from scheduler_core.units import PPM, lowest_bits
from scheduler_core.victims import weaker_leaves
from scheduler_core.workload import Workload

Leaves = Callable[[Run], int | None]  # when a run has gone, or may be stopped; None: nobody knows, or it stays


def earliest(
    standings: Standings, room: Room, workload: Workload, going: Container[RunId]
) -> tuple[int, tuple[Member, ...]] | None:
    """The instant (ms) from which enough GPUs are free, or held by runs that yield to it; None where there is none.

    `going`: runs that the pass has decided to stop.
    """
    state, found = standings.state, list[tuple[int, tuple[Member, ...]]]()
    leaves, taken = _by_right(standings, workload, going), room.reservations.others(workload.id)
    for shape in shapes(workload, sizes_for(state, workload)):
        able = sorted(_able(state, room, workload, shape, leaves, taken))
        if len(able) >= shape.hosts:
            chosen = able[: shape.hosts]
            found.append((chosen[-1][0], tuple(Member(name, slots) for _, name, slots in chosen)))
    return min(found, key=lambda plan: plan[0], default=None)


def _able(
    state: ClusterState, room: Room, workload: Workload, shape: Shape, leaves: Leaves, taken: Masks
) -> Iterator[tuple[int, HostName, int]]:
    """Each host that will have room, from when on, and its slots."""
    for name, record in state.hosts.items():
        suits = record.host.gpus == shape.gpus if shape.whole else record.host.gpus >= shape.gpus
        if suits and record.places and matches(record.host, workload.needs):
            open_slots, free = room.open_slots(name) & ~taken.get(name, 0), room.free(name) & ~taken.get(name, 0)
            if (found := room_from(state, record, shape.gpus, free, open_slots, leaves)) is not None:
                yield found[0], name, found[1]


def room_from(
    state: ClusterState, record: HostRecord, gpus: int, free: int, open_slots: int, leaves: Leaves
) -> tuple[int, int] | None:
    """From when on so many of the host's open slots are free, and which, if each run goes when `leaves` says."""
    slots, name = lowest_bits(free, min(gpus, free.bit_count())), record.host.name
    if slots.bit_count() == gpus:
        return state.now, slots
    runs = [state.runs[run_id] for run_id in record.runs]
    for end, run_id in sorted((end, run.id) for run in runs if (end := leaves(run)) is not None):
        more = state.runs[run_id].members[name].slots & open_slots & ~slots
        slots |= lowest_bits(more, min(gpus - slots.bit_count(), more.bit_count()))
        if slots.bit_count() == gpus:
            return end, slots
    return None


def _by_right(standings: Standings, workload: Workload, going: Container[RunId]) -> Leaves:
    """A run goes when its limit ends it, or, where rule 17 gives the workload a right to it, its protection.

    None is promised that alone holds more than `max_blast` allows: no gang goes for small work.
    """
    state, weaker = standings.state, weaker_leaves(standings, workload)
    most = state.policy.max_blast_ppm * workload.gpus // PPM

    def may_take(run: Run) -> bool:
        if run.gpus > most:
            return False
        if run.budget == workload.budget:
            return state.workloads[run.workload].workload.priority < workload.priority
        return run.budget in weaker

    def leaves(run: Run) -> int | None:
        if run.stop is not None or run.id in going or not run.allocated:
            return state.now
        end = yields_at(state, run) if may_take(run) else limit_ends_at(state, run)
        return None if end is None else max(state.now, end)

    return leaves
