"""What becomes of a workload when its run has given its GPUs back (rule 14)."""

from __future__ import annotations

from scheduler_core.changes import drop_run, set_phase
from scheduler_core.decisions import Member, StopCause
from scheduler_core.promises import drop_claim, drop_promises
from scheduler_core.state import (
    ENDED_KEEP_MS,
    Attempt,
    ClusterState,
    Failure,
    MemberPhase,
    MemberRecord,
    Run,
    WorkloadRecord,
)
from scheduler_core.units import SECOND
from scheduler_core.workload import Outcome, WorkloadPhase

CLOCKS_DIFFER_MS = 10 * SECOND  # a host that enforces a time limit counts from a little earlier than we do
LONGEST_DELAY_DOUBLINGS = 10
YIELDING = (StopCause.PREEMPT, StopCause.DRAIN, StopCause.MOVE)


def finish_run(state: ClusterState, run: Run) -> None:
    """The last GPU was given back: the run becomes history, its workload waits again or ends."""
    record = state.workloads[run.workload]
    outcome = judge(run, record.workload.time_limit_ms, gone_at(state, run))
    record.attempts.append(_history(state, run, outcome))
    drop_run(state, run)
    record.run, record.pending = None, None
    state.wanted.pop(run.id, None)
    if outcome != "preempted":
        drop_claim(state, record)  # what a drain had kept for it (rule 25)
    if outcome == "succeeded":
        end(state, record, Outcome.SUCCEEDED)
    elif outcome == "cancelled":
        end(state, record, Outcome.CANCELLED)
    elif outcome == "time limit":
        end(state, record, Outcome.FAILED)
    elif outcome == "failed":
        _note_early_failure(state, run, record)
        _retry(state, record, why_failed(run))
    elif outcome == "preempted" and not (record.workload.comes_back or never_ran(run)):
        end(state, record, Outcome.PREEMPTED)
    else:
        _pause_if_it_keeps_dying(state, record)
        set_phase(state, record, WorkloadPhase.WAITING)


def gone_at(state: ClusterState, run: Run) -> int:
    """When its last member gave its GPUs back, be it noticed later."""
    return max(state.now if m.gone_at is None else m.gone_at for m in run.members.values())


def judge(run: Run, time_limit_ms: int | None, gone_at: int) -> str:
    """How the run ended. An exit that we asked for is no success; one that nobody knows is no failure of its own."""
    members = run.members.values()
    cause = run.stop.cause if run.stop else None
    if all(m.exit_code == 0 and not m.signalled for m in members):
        return "succeeded"
    if cause is StopCause.CANCEL:
        return "cancelled"
    if any(failed_itself(m) for m in members):
        return "failed"
    if cause in YIELDING:
        return "preempted"
    if cause is StopCause.TIME_LIMIT or (cause is None and _host_ended_it_at_its_limit(run, time_limit_ms, gone_at)):
        return "time limit"
    if cause is StopCause.START_TIMEOUT:
        return "failed"
    return "requeued"  # by an operator, or its host died under it


def _host_ended_it_at_its_limit(run: Run, time_limit_ms: int | None, gone_at: int) -> bool:
    """The host enforces `time_limit` itself, on its own clock, before our backstop."""
    if time_limit_ms is None or run.started_at is None or not any(m.signalled for m in run.members.values()):
        return False
    return gone_at >= run.started_at + time_limit_ms - CLOCKS_DIFFER_MS


def never_ran(run: Run) -> bool:
    """Stopped before any of it started: nothing is lost, and it keeps its place."""
    return all(m.phase is MemberPhase.NEVER_STARTED for m in run.members.values())


def failed_itself(member: MemberRecord) -> bool:
    """Ended badly before anybody told it to stop, or could not start."""
    if member.phase is MemberPhase.NEVER_STARTED:
        return not member.signalled
    return not member.signalled and (member.exit_code not in (None, 0) or member.signal is not None)


def why_failed(run: Run) -> str:
    """One line for the owner."""
    if run.stop is not None and run.stop.cause is StopCause.START_TIMEOUT:
        return run.stop.reason
    for name, m in run.members.items():
        if failed_itself(m):
            how = f"exit status {m.exit_code}" if m.signal is None else f"killed by {m.signal}"
            return f"{m.why or how} on {name}"
    return "failed"


def end(state: ClusterState, record: WorkloadRecord, outcome: Outcome) -> None:
    """Final: the workload never runs again."""
    drop_promises(state, record)
    set_phase(state, record, WorkloadPhase.ENDED)
    record.outcome, record.ended_at = outcome, state.now
    state.tripped.pop(f"workload {record.workload.id}", None)
    state.index.forgets.append((state.now + ENDED_KEEP_MS, "workload", record.workload.id))


def _retry(state: ClusterState, record: WorkloadRecord, why: str) -> None:
    """Failure of its own: again after a growing delay, and after `max_retries` held, with the reason (rule 14)."""
    limit = record.workload.max_retries
    limit = state.policy.max_retries if limit is None else limit
    if record.retries >= limit:
        record.reason = f"failed {record.retries + 1} times, last: {why}" if record.retries else f"failed: {why}"
        set_phase(state, record, WorkloadPhase.HELD)
        return
    doublings = min(record.retries, LONGEST_DELAY_DOUBLINGS)
    record.retries += 1
    record.reason = why
    record.not_before = state.now + (state.policy.retry_delay_ms << doublings)
    set_phase(state, record, WorkloadPhase.WAITING)
    state.index.wake_at(record.not_before, "retry", record.workload.id)


def _pause_if_it_keeps_dying(state: ClusterState, record: WorkloadRecord) -> None:
    """Ends that nobody asked for and nobody knows: the first starts again at once, more in a row after a delay."""
    in_a_row = 0
    for attempt in reversed(record.attempts):
        if attempt.outcome != "requeued" or attempt.stop is not None:
            break
        in_a_row += 1
    if in_a_row > 1:
        record.not_before = state.now + (state.policy.retry_delay_ms << min(in_a_row - 2, LONGEST_DELAY_DOUBLINGS))
        state.index.wake_at(record.not_before, "retry", record.workload.id)


def _note_early_failure(state: ClusterState, run: Run, record: WorkloadRecord) -> None:
    """Failures soon after the start count against host and workload (rule 28)."""
    begun = run.started_at if run.started_at is not None else run.placed_at
    if gone_at(state, run) - begun > state.policy.suspect_within_ms:
        return
    start = state.now - state.policy.suspect_window_ms
    state.failures = [failure for failure in state.failures if failure.at > start]
    for name, member in run.members.items():
        if failed_itself(member):
            state.failures.append(Failure(state.now, name, run.workload, record.workload.owner))


def _history(state: ClusterState, run: Run, outcome: str) -> Attempt:
    worst = next((m for m in run.members.values() if failed_itself(m)), next(iter(run.members.values())))
    return Attempt(
        run.id,
        tuple(Member(name, m.slots) for name, m in run.members.items()),
        run.placed_at,
        run.started_at,
        gone_at(state, run),
        outcome,
        worst.exit_code,
        worst.signal,
        run.stop,
        worst.why,
    )
