"""Suspects (rule 28): hosts on which whatever starts fails, and workloads that fail wherever they start.

Only failures of their own within `suspect_within` of the start count, in a window. An operator's word (undrain,
release) clears what counted against that host or workload.
"""

from __future__ import annotations

from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.state import ClusterState, Failure
from scheduler_core.workload import WorkloadPhase


def black_holes(state: ClusterState) -> list[tuple[HostName, str]]:
    """Serving hosts on which several workloads of several owners failed at once, with the reason."""
    by_host: dict[HostName, dict[WorkloadId, str]] = {}
    for failure in _recent(state):
        by_host.setdefault(failure.host, {})[failure.workload] = failure.owner
    policy = state.policy
    return [
        (name, f"{len(found)} workloads of different owners failed soon after their start")
        for name, found in sorted(by_host.items())
        if len(found) >= policy.suspect_failures
        and len(dict.fromkeys(found.values())) >= policy.suspect_owners
        and (host := state.hosts.get(name)) is not None
        and host.state is HostState.SERVING
    ]


def poison(state: ClusterState) -> list[tuple[WorkloadId, str]]:
    """Waiting workloads that failed soon after their start on several hosts, with the reason."""
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


def _recent(state: ClusterState) -> list[Failure]:
    return [f for f in state.failures if f.at > state.now - state.policy.suspect_window_ms]
