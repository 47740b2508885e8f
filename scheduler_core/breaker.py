"""The machine's brakes (rules 28, 29): how much it may do by itself, and hosts or workloads that look like the
cause."""

from __future__ import annotations

from scheduler_core.decisions import BreakerTripped, Decision, HostMoved, WorkloadHeld
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.state import ClusterState, Failure
from scheduler_core.units import GPU, HOUR, MINUTE, PPM
from scheduler_core.workload import WorkloadPhase

HOSTS_PER_MS = HOUR
GPUS_PER_MS = 30 * MINUTE


def preemptable_gpus(state: ClusterState) -> int:
    """GPUs that may still be preempted in this half hour."""
    in_service = state.ledgers.service.rate // GPU
    limit = max(state.policy.breaker_gpus, in_service * state.policy.breaker_gpus_ppm // PPM)
    recent = sum(gpus for at, gpus in state.preempted if at > state.now - GPUS_PER_MS)
    return max(0, limit - recent)


def may_move_host(state: ClusterState) -> bool:
    """Is another automatic cordon or drain within this hour's limit?"""
    limit = max(state.policy.breaker_hosts, len(state.hosts) * state.policy.breaker_hosts_ppm // PPM)
    return sum(1 for at in state.auto_moves if at > state.now - HOSTS_PER_MS) < limit


def automatic(state: ClusterState) -> list[Decision]:
    """Suspicions and health's proposals, as far as the breaker lets them; what it holds back is said once."""
    decisions: list[Decision] = [WorkloadHeld(wid, why) for wid, why in _poison(state)]
    allowed = may_move_host(state)
    for name, to, why in (*_black_holes(state), *_proposals(state)):
        if allowed:
            decisions.append(HostMoved(name, to, why))
            break  # one a step: the next step counts this one
        if f"host {name}" not in state.tripped:
            decisions.append(BreakerTripped(f"host {name}", f"{to.value}: {why}"))
    return decisions


def _recent(state: ClusterState) -> list[Failure]:
    return [f for f in state.failures if f.at > state.now - state.policy.suspect_window_ms]


def _black_holes(state: ClusterState) -> list[tuple[HostName, HostState, str]]:
    """Hosts on which several workloads of several owners failed at once (rule 28)."""
    by_host: dict[HostName, dict[WorkloadId, str]] = {}
    for failure in _recent(state):
        by_host.setdefault(failure.host, {})[failure.workload] = failure.owner
    policy = state.policy
    return [
        (name, HostState.SUSPECT, f"{len(found)} workloads of different owners failed soon after their start")
        for name, found in sorted(by_host.items())
        if len(found) >= policy.suspect_failures
        and len(dict.fromkeys(found.values())) >= policy.suspect_owners
        and (host := state.hosts.get(name)) is not None
        and host.state in (HostState.SERVING, HostState.CORDONED)
    ]


def _poison(state: ClusterState) -> list[tuple[WorkloadId, str]]:
    """Workloads that failed soon after their start on several hosts (rule 28)."""
    by_workload: dict[WorkloadId, dict[HostName, None]] = {}
    for failure in _recent(state):
        by_workload.setdefault(failure.workload, {})[failure.host] = None
    return [
        (wid, f"failed soon after its start on {len(hosts)} hosts: {', '.join(sorted(hosts))}")
        for wid, hosts in sorted(by_workload.items())
        if len(hosts) >= state.policy.suspect_hosts
        and (record := state.workloads.get(wid)) is not None
        and record.phase is WorkloadPhase.WAITING
    ]


def _proposals(state: ClusterState) -> list[tuple[HostName, HostState, str]]:
    """What health proposes and no person has done yet."""
    done = (HostState.DRAINING, HostState.DRAINED, HostState.REPAIRING, HostState.VERIFYING)
    found = []
    for name, proposal in sorted(state.proposals.items()):
        host = state.hosts.get(name)
        to = HostState.CORDONED if proposal.cordon_only else HostState.DRAINING
        if host is not None and host.state not in done and host.state is not to:
            found.append((name, to, proposal.reason))
    return found
