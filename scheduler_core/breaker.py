"""The machine's brakes (rule 29): how much it may do by itself in a while, and what it holds back.

A move of a host that is past the limit waits for an operator, whatever time passes. A preemption past it waits until
the half hour has moved on or an operator says so, so that nobody's share stays away for a night. A reset lets what was
held back go on, even where it alone is past the limit. Below the
floor of serving hosts the machine takes none out of service.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_core.decisions import BreakerTripped, Decision, HostMoved, WorkloadHeld
from scheduler_core.fleet import HostState, Reach
from scheduler_core.ids import HostName
from scheduler_core.state import ClusterState, HostRecord
from scheduler_core.suspects import black_holes, poison
from scheduler_core.units import GPU, HOUR, MINUTE, PPM

HOSTS_PER_MS = HOUR
GPUS_PER_MS = 30 * MINUTE

Move = tuple[HostState, str]  # where to, and why


def preemptable_gpus(state: ClusterState) -> int:
    """GPUs that may still be preempted in this half hour."""
    recent, most = preempted_gpus(state)
    return max(0, most - recent)


def preempted_gpus(state: ClusterState) -> tuple[int, int]:
    """In this half hour: how many, of how many at most."""
    in_service = state.ledgers.service.rate // GPU
    most = max(state.policy.breaker_gpus, in_service * state.policy.breaker_gpus_ppm // PPM)
    return sum(gpus for at, gpus in state.preempted if at > state.now - GPUS_PER_MS), most


def next_relief(state: ClusterState) -> int | None:
    """When the oldest preemption of this half hour counts no longer."""
    return next((at + GPUS_PER_MS for at, _ in state.preempted if at > state.now - GPUS_PER_MS), None)


def may_move_host(state: ClusterState) -> bool:
    """Is another automatic cordon or drain within this hour's limit?"""
    recent, most = host_moves(state)
    return recent < most


def host_moves(state: ClusterState) -> tuple[int, int]:
    """Automatic cordons and drains in this hour: how many, of how many at most."""
    most = max(state.policy.breaker_hosts, len(state.hosts) * state.policy.breaker_hosts_ppm // PPM)
    return sum(1 for at in state.auto_moves if at > state.now - HOSTS_PER_MS), most


def below_floor(state: ClusterState, name: HostName) -> str:
    """Why the machine may not take this host out of service, whatever else it may; empty where enough others serve."""
    policy = state.policy
    floor = max(policy.serving_floor, -(-len(state.hosts) * policy.serving_floor_ppm // PPM))
    if not floor or not _serves(state.hosts[name]):
        return ""
    left = sum(map(_serves, state.hosts.values())) - 1
    return f"{left} hosts would serve, fewer than the floor of {floor}" if left < floor else ""


def _serves(record: HostRecord) -> bool:
    return record.state is HostState.SERVING and record.reach in (Reach.FRESH, Reach.STALE)


def automatic(state: ClusterState) -> Iterator[Decision]:
    """Suspicions and health's proposals, as far as the breaker lets them; what it holds back is said once.

    Each decision must be applied before the next is asked for: the limit counts it.
    """
    for wid, why in poison(state):
        yield WorkloadHeld(wid, why)
    for name, (to, why) in wished_moves(state).items():
        what = f"host {name}"
        if why_floor := below_floor(state, name):
            if what not in state.tripped:
                yield BreakerTripped(what, f"{to.value}: {why}; {why_floor}")
        elif what in state.allowed or (what not in state.tripped and may_move_host(state)):
            yield HostMoved(name, to, why)
        elif what not in state.tripped:
            yield BreakerTripped(what, f"{to.value}: {why}")


def wished_moves(state: ClusterState) -> dict[HostName, Move]:
    """What the machine would do with hosts now; health's word before a suspicion."""
    wished: dict[HostName, Move] = {}
    for name, proposal in sorted(state.proposals.items()):
        host = state.hosts.get(name)
        if host is None or proposal.confirm:
            continue
        if proposal.cordon_only and host.state is HostState.SERVING:
            wished[name] = (HostState.CORDONED, proposal.reason)
        elif not proposal.cordon_only and host.state in (HostState.SERVING, HostState.CORDONED, HostState.SUSPECT):
            wished[name] = (HostState.DRAINING, proposal.reason)
    for name, why in black_holes(state):
        wished.setdefault(name, (HostState.SUSPECT, why))
    return wished


def still_waits(state: ClusterState, what: str) -> bool:
    """Is what the breaker held back still wished for? A reset lets only that go on."""
    kind, _, name = what.partition(" ")
    return name in wished_moves(state) if kind == "host" else name in state.workloads
