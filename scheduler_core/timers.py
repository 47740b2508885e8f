"""Instants at which time alone changes something. The heap only says when to look; the records say what is true."""

from __future__ import annotations

from heapq import heappop

from scheduler_core.decisions import Decision, HostLost, MemberLeaked, StopCause, StopDecided
from scheduler_core.fleet import Reach
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.outcomes import ENDED_KEEP_MS
from scheduler_core.state import ClusterState, Run
from scheduler_core.workload import WorkloadPhase


def due(state: ClusterState) -> list[Decision]:
    """Takes every instant up to now off the heap and decides what follows."""
    decisions: list[Decision] = []
    timers = state.index.timers
    while timers and timers[0][0] <= state.now:
        _, kind, name = heappop(timers)
        decisions.extend(_LOOK[kind](state, name))
    return decisions


def next_timer(state: ClusterState) -> int | None:
    return state.index.timers[0][0] if state.index.timers else None


def rebuild_timers(state: ClusterState) -> None:
    """After a restart, and when knobs changed: all instants again from the records."""
    index, policy = state.index, state.policy
    index.timers.clear()
    for run in state.runs.values():
        watch_run(state, run)
    for name, host in state.hosts.items():
        if host.unreachable_since is not None and host.reach is not Reach.LOST:
            index.wake_at(host.unreachable_since + policy.lost_after_ms, "lost", name)
    for drain in state.drains.values():
        if drain.deadline_at is not None and drain.deadline_at > state.now and not drain.ended:
            index.wake_at(drain.deadline_at, "drain", drain.host)
    for wid, record in state.workloads.items():
        if record.phase is WorkloadPhase.WAITING and record.not_before > state.now:
            index.wake_at(record.not_before, "retry", wid)
        if record.ended_at is not None:
            index.wake_at(record.ended_at + ENDED_KEEP_MS, "forget", wid)


def watch_run(state: ClusterState, run: Run) -> None:
    """The instants of one run, as it stands now."""
    record, index, policy = state.workloads[run.workload], state.index, state.policy
    if run.stop is not None:
        index.wake_at(kill_at(state, run) + policy.stop_deadline_ms, "leak", run.id)
    elif run.started_at is None:
        index.wake_at(run.placed_at + policy.start_timeout_ms, "start", run.id)
    else:
        if record.workload.time_limit_ms is not None:
            index.wake_at(run.started_at + record.workload.time_limit_ms, "limit", run.id)
        if record.pending is not None:
            index.wake_at(run.started_at + run.min_runtime_ms, "requeue", run.workload)


def kill_at(state: ClusterState, run: Run) -> int:
    """When SIGKILL is due at the latest, for a run that stops (rule 13)."""
    launch = state.workloads[run.workload].workload.launch
    declared = launch.checkpoint_signal or launch.checkpoint_argv
    grace = state.policy.checkpoint_grace_ms if declared else 0
    return (run.stop_at or 0) + grace + state.policy.stop_grace_ms


def _start(state: ClusterState, name: str) -> list[Decision]:
    """Rule 11: a start that takes too long stops whole, as failed."""
    run = state.runs.get(RunId(name))
    if run is None or run.stop is not None or run.started_at is not None:
        return []
    return [StopDecided(run.id, StopCause.START_TIMEOUT, "did not start within start_timeout")]


def _limit(state: ClusterState, name: str) -> list[Decision]:
    run = state.runs.get(RunId(name))
    if run is None or run.stop is not None:
        return []
    return [StopDecided(run.id, StopCause.TIME_LIMIT, "reached its time limit", override=run.protected(state.now))]


def _requeue(state: ClusterState, name: str) -> list[Decision]:
    """An operator's requeue that waited for the end of the min runtime."""
    record = state.workloads.get(WorkloadId(name))
    if record is None or record.pending is None or record.run is None:
        return []
    run = state.runs[record.run]
    if run.stop is not None or run.protected(state.now):
        return []
    return [record.pending]


def _leak(state: ClusterState, name: str) -> list[Decision]:
    """Rule 13. A host that cannot be asked leaks nothing: its runs are unknown until it answers
    (`apply_hosts.seen`)."""
    run = state.runs.get(RunId(name))
    if run is None or run.stop is None or state.now < kill_at(state, run) + state.policy.stop_deadline_ms:
        return []
    return [
        MemberLeaked(run.id, host)
        for host, member in run.members.items()
        if member.phase.holds_gpus and state.hosts[host].reach in (Reach.FRESH, Reach.STALE)
    ]


def _lost(state: ClusterState, name: str) -> list[Decision]:
    host = state.hosts.get(HostName(name))
    if host is None or host.reach is not Reach.UNREACHABLE or host.unreachable_since is None:
        return []
    return [HostLost(host.host.name)] if state.now - host.unreachable_since >= state.policy.lost_after_ms else []


def _again(state: ClusterState, name: str) -> list[Decision]:
    """Only a reason for another look: a retry, the deadline of a drain."""
    state.dirty = True
    return []


def _forget(state: ClusterState, name: str) -> list[Decision]:
    record = state.workloads.get(WorkloadId(name))
    if record is not None and record.ended_at is not None and record.ended_at + ENDED_KEEP_MS <= state.now:
        del state.workloads[record.workload.id]
    return []


_LOOK = {
    "start": _start,
    "limit": _limit,
    "requeue": _requeue,
    "leak": _leak,
    "lost": _lost,
    "retry": _again,
    "drain": _again,
    "forget": _forget,
}
