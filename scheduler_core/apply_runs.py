"""What becomes of runs, as their hosts report it. Facts about runs that ended long ago change nothing.

A fact may be late, repeated, or skip a phase (an end without a start): each says all that must have happened before it.
"""

from __future__ import annotations

from scheduler_core.apply_hosts import member_gone, stray_heard, want_gang_stop
from scheduler_core.changes import set_member, started
from scheduler_core.fleet import Reach
from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import MemberExited, MemberNeverStarted, MemberReleased, MemberStarted
from scheduler_core.state import ClusterState, MemberPhase, MemberRecord, Run
from scheduler_core.timers import watch_run


def _member(state: ClusterState, run: RunId, host: HostName) -> tuple[Run, MemberRecord] | None:
    found = state.runs.get(run)
    member = found.members.get(host) if found is not None else None
    return (found, member) if found is not None and member is not None else None


def member_started(state: ClusterState, event: MemberStarted) -> None:
    """Protection counts from the start of the last member (rule 11)."""
    stray_heard(state, event.run, event.host, alive=True)
    found = _member(state, event.run, event.host)
    if found is not None and found[1].phase is MemberPhase.DISPATCHED:
        run, member = found
        _began(state, run, event.host, member, event.ran_ms)
        set_member(state, run, event.host, MemberPhase.STARTED)
        _wholly_started(state, run)


def _began(state: ClusterState, run: Run, name: HostName, member: MemberRecord, ran_ms: int) -> None:
    """When it started, on our clock, and under which boot: unknown while the host has not said it over this link."""
    host = state.hosts[name]
    member.started_at = max(run.placed_at, state.now - ran_ms)
    member.boot_id = host.boot_id if host.reach in (Reach.FRESH, Reach.STALE) else ""


def _wholly_started(state: ClusterState, run: Run) -> None:
    """The run has started when its last member has; one that never did has not."""
    begun = [m.started_at for m in run.members.values() if m.started_at is not None]
    if run.started_at is None and len(begun) == len(run.members):
        started(state, run, max(begun))
        watch_run(state, run)


def member_exited(state: ClusterState, event: MemberExited) -> None:
    """A member that fails takes its gang along; one that succeeds lets the others go on."""
    stray_heard(state, event.run, event.host, alive=True)
    found = _member(state, event.run, event.host)
    if found is None or found[1].phase not in (MemberPhase.DISPATCHED, MemberPhase.STARTED):
        return
    run, member = found
    member.exit_code, member.signal, member.signalled = event.exit_code, event.signal, event.signalled
    member.why = event.why
    if member.phase is MemberPhase.DISPATCHED:
        _began(state, run, event.host, member, 0)
    set_member(state, run, event.host, MemberPhase.EXITED)
    _wholly_started(state, run)
    if event.exit_code != 0 and len(run.members) > 1:
        want_gang_stop(state, run, f"its member on {event.host} ended")


def member_released(state: ClusterState, event: MemberReleased) -> None:
    """Processes gone and memory released, as the host says: only now are the GPUs free (rule 13)."""
    stray_heard(state, event.run, event.host, alive=False)
    found = _member(state, event.run, event.host)
    if found is not None and not found[1].phase.gone:
        run, member = found
        broke = "" if member.exit_code == 0 else f"its member on {event.host} is gone"
        member_gone(state, run, set_member(state, run, event.host, MemberPhase.RELEASED, event.ago_ms), broke)


def never_started(state: ClusterState, event: MemberNeverStarted) -> None:
    """The token is burnt. Also the way out for a member that leaked without anybody knowing whether it had started."""
    stray_heard(state, event.run, event.host, alive=False)
    found = _member(state, event.run, event.host)
    if found is None or found[1].phase.gone or found[1].started_at is not None:
        return
    run, member = found
    member.why, member.signalled = event.why, run.stop is not None
    gone = set_member(state, run, event.host, MemberPhase.NEVER_STARTED)
    member_gone(state, run, gone, f"its member on {event.host} did not start: {event.why}")
