"""Instants at which time alone changes something. The heap only says when to look; the records say what is true.

A look at an entry that the records do not bear out (any more) does nothing, so that an engine rebuilt from its records
decides as one that kept its heap. What time makes us forget is on a queue of its own: it goes before anything is
observed.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop

from scheduler_core.contract import gang_breaks_at, leaks_at, start_times_out_at
from scheduler_core.decisions import Decision, HostLost, MemberLeaked, StopCause, StopDecided
from scheduler_core.fleet import Reach
from scheduler_core.ids import DrainId, HostName, RunId, WorkloadId
from scheduler_core.state import ENDED_KEEP_MS, ClusterState, HostRecord, Run
from scheduler_core.workload import WorkloadPhase


def due(state: ClusterState) -> list[Decision]:
    """Takes every instant up to now off the heap and decides what follows."""
    decisions: dict[Decision, None] = {}  # an instant may stand on the heap twice
    timers = state.index.timers
    while timers and timers[0][0] <= state.now:
        _, kind, name = heappop(timers)
        decisions |= dict.fromkeys(_LOOK[kind](state, name))
    return list(decisions)


def next_timer(state: ClusterState) -> int | None:
    """The next instant that is still worth a look: those of runs that have gone or begun are dropped."""
    timers = state.index.timers
    while timers and _is_over(state, timers[0][1], timers[0][2]):
        heappop(timers)
    return timers[0][0] if timers else None


def _is_over(state: ClusterState, kind: str, name: str) -> bool:
    if kind not in _OF_RUNS:
        return False
    run = state.runs.get(RunId(name))
    return run is None or (kind == "start" and (run.started_at is not None or run.stop is not None))


def forget(state: ClusterState) -> None:
    """Drops what ended a day ago. Before observations, so that it does not matter at which tick it is noticed."""
    forgets = state.index.forgets
    while forgets and forgets[0][0] <= state.now:
        _, kind, name = forgets.popleft()
        if kind == "drain":
            state.drains.pop(DrainId(name), None)
        else:
            state.workloads.pop(WorkloadId(name), None)


def rebuild_timers(state: ClusterState) -> None:
    """After a restart, and when knobs changed: all instants again from the records."""
    index, policy = state.index, state.policy
    index.timers.clear()
    for run in state.runs.values():
        watch_run(state, run)
    for name, host in state.hosts.items():
        if host.unreachable_since is not None and host.reach is Reach.UNREACHABLE:
            index.wake_at(host.unreachable_since + policy.lost_after_ms, "lost", name)
    for drain in state.drains.values():
        if drain.deadline_at is not None and drain.deadline_at > state.now and not drain.ended:
            index.wake_at(drain.deadline_at, "drain", drain.id)
    for wid, record in state.workloads.items():
        if record.not_before > state.now and record.phase is WorkloadPhase.WAITING:
            index.wake_at(record.not_before, "retry", wid)
        if record.reserved is not None and record.reserved.at > state.now:
            index.wake_at(record.reserved.at, "reserved", wid)
    for wid, since in state.blast_blocked.items():
        if since + policy.blast_patience_ms > state.now:
            index.wake_at(since + policy.blast_patience_ms, "patience", wid)
    index.forgets = deque(sorted(_forgets(state)))


def _forgets(state: ClusterState) -> list[tuple[int, str, str]]:
    found = [(d.done_at + ENDED_KEEP_MS, "drain", str(d.id)) for d in state.drains.values() if d.done_at is not None]
    for wid, record in state.workloads.items():
        if record.ended_at is not None:
            found.append((record.ended_at + ENDED_KEEP_MS, "workload", str(wid)))
    return found


def watch_run(state: ClusterState, run: Run) -> None:
    """The instants of one run, as it stands now."""
    record, index = state.workloads[run.workload], state.index
    if run.stop is not None:
        for name in run.members:
            if (at := leaks_at(state, run, name)) is not None:
                index.wake_at(at, "leak", run.id)
        return
    if (at := gang_breaks_at(state, run)) is not None:
        index.wake_at(at, "gang", run.id)
    if run.started_at is None:
        if (at := start_times_out_at(state, run)) is not None:
            index.wake_at(at, "start", run.id)
    else:
        if record.workload.time_limit_ms is not None:
            index.wake_at(run.started_at + record.workload.time_limit_ms, "limit", run.id)
        if record.pending is not None:
            index.wake_at(run.started_at + run.min_runtime_ms, "requeue", run.workload)


def watch_host(state: ClusterState, record: HostRecord) -> None:
    """How the host can be reached has changed, and with it by when its runs must have answered."""
    for run_id in record.runs:
        watch_run(state, state.runs[run_id])


def _start(state: ClusterState, name: str) -> list[Decision]:
    """Rule 11: a start that takes too long stops whole, as failed."""
    run = state.runs.get(RunId(name))
    if run is None or run.stop is not None or run.started_at is not None:
        return []
    due_at = start_times_out_at(state, run)
    if due_at is None or state.now < due_at:
        return []
    return [StopDecided(run.id, StopCause.START_TIMEOUT, "did not start within start_timeout")]


def _gang(state: ClusterState, name: str) -> list[Decision]:
    """Rule 27: a host of the gang is lost, and others can be asked to stop their part."""
    run = state.runs.get(RunId(name))
    if run is None or run.stop is not None:
        return []
    due_at = gang_breaks_at(state, run)
    if due_at is None or state.now < due_at:
        return []
    lost = next(host for host in run.members if state.hosts[host].reach is Reach.LOST)
    return [StopDecided(run.id, StopCause.GANG_BROKEN, f"its member on {lost} is lost")]


def _limit(state: ClusterState, name: str) -> list[Decision]:
    """The backstop of a limit that the host enforces itself."""
    run = state.runs.get(RunId(name))
    if run is None or run.stop is not None or run.started_at is None:
        return []
    limit = state.workloads[run.workload].workload.time_limit_ms
    if limit is None or state.now < run.started_at + limit:
        return []
    return [StopDecided(run.id, StopCause.TIME_LIMIT, "reached its time limit")]


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
    """Rule 13. A host that cannot be asked leaks nothing: its runs are unknown until it answers."""
    run = state.runs.get(RunId(name))
    if run is None or run.stop is None:
        return []
    dues = ((host, leaks_at(state, run, host)) for host in run.members)
    return [MemberLeaked(run.id, host) for host, at in dues if at is not None and at <= state.now]


def _lost(state: ClusterState, name: str) -> list[Decision]:
    host = state.hosts.get(HostName(name))
    if host is None or host.reach is not Reach.UNREACHABLE or host.unreachable_since is None:
        return []
    return [HostLost(host.host.name)] if state.now - host.unreachable_since >= state.policy.lost_after_ms else []


def _retry(state: ClusterState, name: str) -> list[Decision]:
    """Its delay is over: a pass may take it."""
    record = state.workloads.get(WorkloadId(name))
    if record is not None and record.phase is WorkloadPhase.WAITING and 0 < record.not_before <= state.now:
        state.index.news.leaves[record.workload.budget] = None
        state.dirty = True
    return []


def _patience(state: ClusterState, name: str) -> list[Decision]:
    """`max_blast` alone has blocked it for long enough (rule 18)."""
    since = state.blast_blocked.get(WorkloadId(name))
    if since is not None and since + state.policy.blast_patience_ms <= state.now:
        state.index.news.leaves[state.workloads[WorkloadId(name)].workload.budget] = None
        state.dirty = True
    return []


def _reserved(state: ClusterState, name: str) -> list[Decision]:
    """The instant of a reservation has come: a pass takes it (rule 21)."""
    record = state.workloads.get(WorkloadId(name))
    if record is not None and record.reserved is not None and record.reserved.at <= state.now:
        state.index.news.leaves[record.workload.budget] = None
        state.dirty = True
    return []


def _drain(state: ClusterState, name: str) -> list[Decision]:
    """The deadline of a drain: `drain.due_stops` looks at it in every step."""
    return []


_OF_RUNS = ("start", "gang", "limit", "leak")
_LOOK = {
    "start": _start,
    "gang": _gang,
    "limit": _limit,
    "requeue": _requeue,
    "leak": _leak,
    "lost": _lost,
    "retry": _retry,
    "patience": _patience,
    "reserved": _reserved,
    "drain": _drain,
}
