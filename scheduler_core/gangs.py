"""What a drain leaves of a gang (rule 25): its GPUs on other hosts are held for it, where the rest finds a new place.

The claim waits for the gang's own stop. Where free GPUs do not make it whole nothing is held, and drain plans say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from scheduler_core.decisions import Claimed, Member, StopCause
from scheduler_core.ids import HostName, RunId
from scheduler_core.placement import Room
from scheduler_core.reservations import Masks
from scheduler_core.shapes import matches
from scheduler_core.state import ClusterState, Run
from scheduler_core.units import lowest_bits
from scheduler_core.workload import Workload


def kept_gangs(state: ClusterState, room: Room) -> Iterator[Claimed]:
    """For each gang that a drain stops, by id. The pass takes each claim from `room` before it asks for the next."""
    for run_id in drained_gangs(state):
        run = state.runs[run_id]
        if (members := new_place(state, room, run)) is not None:
            yield Claimed(run.workload, members, (run_id,))


def drained_gangs(state: ClusterState) -> list[RunId]:
    """Runs that stop for a drain, and nothing is held for them yet."""
    stops = ((run_id, state.runs[run_id].stop) for run_id in state.index.stopping)
    found = [run_id for run_id, stop in stops if stop is not None and stop.cause is StopCause.DRAIN]
    return sorted(run_id for run_id in found if may_keep(state, state.runs[run_id]))


def may_keep(state: ClusterState, run: Run) -> bool:
    """Only for a gang that paid for its place and will run again."""
    record = state.workloads[run.workload]
    return run.allocated and record.workload.comes_back and len(run.members) > 1 and not record.claim


def keeps_its_place(state: ClusterState, run: Run, leaving: Collection[HostName]) -> bool:
    """Would its other GPUs be held for it, if these hosts were drained of it now?"""
    return may_keep(state, run) and new_place(state, Room(state), run, leaving) is not None


def new_place(
    state: ClusterState, room: Room, run: Run, leaving: Collection[HostName] = ()
) -> tuple[Member, ...] | None:
    """Its members where they can stay, in rank order, with free GPUs of other hosts in place of the rest.

    None where there are not enough, or where nobody stays.
    """
    workload = state.workloads[run.workload].workload
    closed = room.reservations.closed_to_claim(workload)
    members = {
        name: Member(name, m.slots)
        for name, m in run.members.items()
        if name not in leaving and m.phase.holds_gpus and m.slots & room.open_slots(name) == m.slots
        if not m.slots & closed.get(name, 0)
    }
    missing = [name for name in run.members if name not in members]
    if not members or not missing:
        return None
    gpus = run.members[missing[0]].slots.bit_count()
    spare = (name for name in _spare(state, room, workload, gpus, closed) if name not in (*members, *leaving))
    for name in missing:
        if (host := next(spare, None)) is None:
            return None
        members[name] = Member(host, lowest_bits(room.free(host) & ~closed.get(host, 0), gpus))
    return tuple(members[name] for name in run.members)


def _spare(state: ClusterState, room: Room, workload: Workload, gpus: int, closed: Masks) -> Iterator[HostName]:
    """Hosts with so many free GPUs that suit it; whole ones, where it declared no shape (rule 16)."""
    for name in room.candidates(gpus):
        host = state.hosts[name].host
        if (room.free(name) & ~closed.get(name, 0)).bit_count() < gpus:
            continue
        if matches(host, workload.needs) and (workload.gpus_per_host or host.gpus == gpus):
            yield name
