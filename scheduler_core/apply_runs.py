"""What becomes of runs, as their hosts report it. Facts about runs that ended long ago change nothing."""

from __future__ import annotations

from scheduler_core.apply_hosts import member_gone, want_gang_stop
from scheduler_core.changes import set_member, started
from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import MemberExited, MemberNeverStarted, MemberReleased, MemberStarted
from scheduler_core.state import ClusterState, MemberPhase, MemberRecord, Run


def _member(state: ClusterState, run: RunId, host: HostName) -> tuple[Run, MemberRecord] | None:
    found = state.runs.get(run)
    member = found.members.get(host) if found is not None else None
    return (found, member) if found is not None and member is not None else None


def member_started(state: ClusterState, event: MemberStarted) -> None:
    """Protection counts from the start of the last member (rule 11)."""
    if (found := _member(state, event.run, event.host)) is None:
        return
    run, member = found
    if member.phase is not MemberPhase.DISPATCHED:
        return
    set_member(state, run, event.host, MemberPhase.STARTED)
    member.boot_id = state.hosts[event.host].boot_id
    if all(m.phase is not MemberPhase.DISPATCHED for m in run.members.values()):
        started(state, run, max(run.placed_at, state.now - event.ran_ms))
        _wake_for(state, run)


def _wake_for(state: ClusterState, run: Run) -> None:
    """Instants at which the started run needs another look."""
    record = state.workloads[run.workload]
    begun = run.started_at if run.started_at is not None else state.now
    if record.workload.time_limit_ms is not None:
        state.index.wake_at(begun + record.workload.time_limit_ms, "limit", run.id)
    if record.pending is not None:
        state.index.wake_at(begun + run.min_runtime_ms, "requeue", run.workload)


def member_exited(state: ClusterState, event: MemberExited) -> None:
    """A member that fails takes its gang along; one that succeeds lets the others go on."""
    if (found := _member(state, event.run, event.host)) is None:
        return
    run, member = found
    if member.phase not in (MemberPhase.DISPATCHED, MemberPhase.STARTED):
        return
    member.exit_code, member.signal, member.signalled = event.exit_code, event.signal, event.signalled
    set_member(state, run, event.host, MemberPhase.EXITED)
    if event.exit_code != 0 and len(run.members) > 1:
        want_gang_stop(state, run, f"its member on {event.host} ended")


def member_released(state: ClusterState, event: MemberReleased) -> None:
    if (found := _member(state, event.run, event.host)) is None:
        return
    run, member = found
    if not member.phase.gone:
        broke = "" if member.exit_code == 0 else f"its member on {event.host} is gone"
        member_gone(state, run, set_member(state, run, event.host, MemberPhase.RELEASED), broke)


def never_started(state: ClusterState, event: MemberNeverStarted) -> None:
    if (found := _member(state, event.run, event.host)) is None:
        return
    run, member = found
    if member.phase is MemberPhase.DISPATCHED:
        member.why, member.signalled = event.why, run.stop is not None
        gone = set_member(state, run, event.host, MemberPhase.NEVER_STARTED)
        member_gone(state, run, gone, f"its member on {event.host} did not start: {event.why}")
