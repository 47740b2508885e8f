"""What is promised to workloads that wait: claims (rule 19) and reservations (rule 21), in records and index alike."""

from __future__ import annotations

from scheduler_core.changes import touch_host
from scheduler_core.decisions import Member, Reserved
from scheduler_core.ids import HostName, RunId
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.units import GPU
from scheduler_core.workload import Workload

# -- claims ------------------------------------------------------------------------------------------------------------


def set_claim(
    state: ClusterState, record: WorkloadRecord, members: tuple[Member, ...], waits_for: tuple[RunId, ...]
) -> None:
    """Holds these slots for the workload (rule 19), and its whole min runtime as a commitment (rule 7)."""
    drop_promises(state, record)
    if not members:
        return
    record.claim, record.waits_for = members, waits_for
    for member in members:
        host = state.hosts[member.host]
        touch_host(state, host, claimed=host.claimed | member.slots)
    count_claim(state, record, +1)


def drop_claim(state: ClusterState, record: WorkloadRecord) -> None:
    if not record.claim:
        return
    count_claim(state, record, -1)
    for member in record.claim:
        if (host := state.hosts.get(member.host)) is not None:
            touch_host(state, host, claimed=host.claimed & ~member.slots)
    record.claim, record.waits_for = (), ()


def count_claim(state: ClusterState, record: WorkloadRecord, sign: int) -> None:
    workload, index = record.workload, state.index
    if sign > 0:
        index.claimants[workload.id] = None
    else:
        del index.claimants[workload.id]
    for budget in state.budgets.chains[workload.budget]:
        index.claimed[budget] += sign * workload.gpus
    _commit_whole(state, workload, sign)


def _commit_whole(state: ClusterState, workload: Workload, sign: int) -> None:
    """Its whole min runtime is promised, or no longer (rule 7)."""
    amount = workload.gpus * GPU * workload.min_runtime_ms
    state.index.fix(state.budgets.chains[workload.budget], sign * amount)
    state.index.news.promised(amount)
    state.index.news.leaves[workload.budget] = None


# -- reservations (rule 21) ---------------------------------------------------------------------------------------


def set_reservation(state: ClusterState, record: WorkloadRecord, made: Reserved) -> None:
    """The workload's, and its whole min runtime is a commitment (rule 7). A pass looks again when its instant comes."""
    drop_reservation(state, record)
    record.reserved = made
    count_reservation(state, record, +1)
    state.index.wake_at(made.at, "reserved", record.workload.id)


def drop_reservation(state: ClusterState, record: WorkloadRecord) -> None:
    """Its hosts may be of use to others now."""
    if record.reserved is None:
        return
    count_reservation(state, record, -1)
    hosts: dict[HostName, None] = {m.host: None for m in record.reserved.members if m.host in state.hosts}
    state.index.news.hosts |= hosts
    state.index.news.opened |= hosts
    record.reserved = None
    state.dirty = True


def count_reservation(state: ClusterState, record: WorkloadRecord, sign: int) -> None:
    workload, index = record.workload, state.index
    if sign > 0:
        index.reservations[workload.id] = None
    else:
        del index.reservations[workload.id]
    _commit_whole(state, workload, sign)


def drop_promises(state: ClusterState, record: WorkloadRecord) -> None:
    """Nothing is held or reserved for the workload any more: it starts, or does not want to."""
    drop_claim(state, record)
    drop_reservation(state, record)
