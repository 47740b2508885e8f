"""What people ask for, applied. One that makes no sense any more changes nothing: the row may have moved."""

from __future__ import annotations

from scheduler_core.breaker import still_waits
from scheduler_core.changes import enqueue, replace_workload, set_phase, touch_host
from scheduler_core.decisions import Member, StopCause, StopDecided
from scheduler_core.fleet import HostState, Reach
from scheduler_core.hosttable import HostEvent, move
from scheduler_core.ids import HostName
from scheduler_core.observations import (
    BreakerReset,
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostAdvanced,
    ReleaseRequested,
    RequeueRequested,
    UndrainRequested,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.outcomes import end
from scheduler_core.promises import drop_claim, drop_promises, drop_reservation
from scheduler_core.proposals import decided, turned_down
from scheduler_core.state import ENDED_KEEP_MS, ClusterState, DrainRecord, HostRecord, WorkloadRecord
from scheduler_core.workload import Outcome, WorkloadPhase


def submitted(state: ClusterState, event: WorkloadSubmitted) -> None:
    """A known id is ignored: nothing runs twice."""
    workload = event.workload
    if workload.id not in state.workloads and workload.budget in state.budgets.by_id:
        enqueue(state, WorkloadRecord(workload, waiting_since=state.now, day=state.day))


def cancel(state: ClusterState, event: CancelRequested) -> None:
    record = state.workloads.get(event.workload)
    if record is None or record.phase is WorkloadPhase.ENDED:
        return
    record.held_by = event.by
    state.holds_end.pop(event.workload, None)
    if record.run is not None:
        stop = state.runs[record.run].stop
        if stop is not None and stop.cause is StopCause.CANCEL:
            return
        reason = f"cancelled by {event.by}"
        state.wanted[record.run] = StopDecided(record.run, StopCause.CANCEL, reason, event.by.actor, override=True)
        return
    end(state, record, Outcome.CANCELLED)


def requeue(state: ClusterState, event: RequeueRequested) -> None:
    """At the end of the min runtime, or at once by an explicit override (rule 11)."""
    record = state.workloads.get(event.workload)
    if record is None or record.run is None or state.runs[record.run].stop is not None:
        return
    run = state.runs[record.run]
    protected = run.protected(state.now)
    reason = f"requeued by {event.by}"
    stop = StopDecided(run.id, StopCause.REQUEUE, reason, event.by.actor, override=protected and event.override)
    if protected and not event.override:
        record.pending = stop
        if (until := run.protected_until()) is not None:
            state.index.wake_at(until, "requeue", run.workload)
    else:
        state.wanted[run.id] = stop


def hold(state: ClusterState, event: HoldRequested) -> None:
    record = state.workloads.get(event.workload)
    if record is not None and record.phase is WorkloadPhase.WAITING:
        drop_promises(state, record)
        set_phase(state, record, WorkloadPhase.HELD)
        record.held_by, record.reason = event.by, event.by.why
        if event.until_at is not None:
            state.holds_end[event.workload] = event.until_at


def release(state: ClusterState, event: ReleaseRequested) -> None:
    """Waits again, with fresh retries."""
    record = state.workloads.get(event.workload)
    if record is not None and record.phase is WorkloadPhase.HELD:
        record.held_by, record.reason, record.retries, record.not_before = None, "", 0, 0
        state.holds_end.pop(event.workload, None)
        set_phase(state, record, WorkloadPhase.WAITING)
        state.failures = [f for f in state.failures if f.workload != event.workload]  # an operator's word (rule 28)


def move_workload(state: ClusterState, event: WorkloadMoved) -> None:
    record = state.workloads.get(event.workload)
    if record is None or record.phase is WorkloadPhase.ENDED:
        return
    budget = record.workload.budget if event.budget is None else event.budget
    priority = record.workload.priority if event.priority is None else event.priority
    if budget in state.budgets.by_id and state.budgets.is_leaf(budget):
        drop_promises(state, record)
        replace_workload(state, record, budget=budget, priority=priority)


def cordon(state: ClusterState, event: CordonRequested) -> None:
    if move_host(state, event.host, HostEvent.CORDON, event.by) and event.until_at is not None:
        state.cordons_end[event.host] = event.until_at


def drain(state: ClusterState, event: DrainRequested) -> None:
    """Cordons at once (rule 25). Asked for again it changes mode and deadline of the drain that runs.

    An id belongs to one drain for ever: a request that comes late under the id of a past one changes nothing.
    """
    record = state.hosts.get(event.host)
    if record is None:
        return
    known = state.drains.get(record.drain) if record.drain else None
    if known is not None and not known.ended:
        known.mode, known.deadline_at, known.by = event.mode, event.deadline_at, event.by
    elif state.knows_drain(event.drain):
        return
    elif move_host(state, event.host, HostEvent.DRAIN, event.by):
        begin_drain(state, record, event)
    if event.deadline_at is not None and record.drain is not None:
        state.index.wake_at(event.deadline_at, "drain", record.drain)


def begin_drain(state: ClusterState, record: HostRecord, event: DrainRequested, automatic: bool = False) -> None:
    record.drain = event.drain
    state.drains[event.drain] = DrainRecord(
        event.drain, event.host, event.mode, event.by, state.now, event.deadline_at, automatic
    )


def undrain(state: ClusterState, event: UndrainRequested) -> None:
    """Runs that already stop go on stopping. Of a host that serves it turns down what health asks for."""
    if turned_down(state, event.host):
        touch_host(state, state.hosts[event.host], since=state.now, by=event.by)
    elif move_host(state, event.host, HostEvent.UNDRAIN, event.by):
        end_drain(state, state.hosts[event.host], "undrained")
        state.failures = [f for f in state.failures if f.host != event.host]  # an operator's word (rule 28)


def end_drain(state: ClusterState, record: HostRecord, how: str) -> None:
    drain_record = state.drains.get(record.drain) if record.drain else None
    if drain_record is not None and not drain_record.ended:
        drain_record.done_at, drain_record.ended = state.now, how
        state.index.forgets.append((state.now + ENDED_KEEP_MS, "drain", drain_record.id))
    if how != "drained":
        record.drain = None


ADVANCES = {"repairing": HostEvent.REPAIR, "verifying": HostEvent.VERIFY, "verify_failed": HostEvent.VERIFY_FAIL}


def advance(state: ClusterState, event: HostAdvanced) -> None:
    move_host(state, event.host, ADVANCES[event.to], event.by)


def breaker_reset(state: ClusterState, event: BreakerReset) -> None:
    """The counts begin anew, and what was held back goes on even where it alone is past the limit (rule 29)."""
    state.auto_moves.clear()
    state.preempted.clear()
    state.allowed = {what: None for what in state.tripped if still_waits(state, what)}
    state.tripped.clear()
    state.dirty = state.index.news.everything = True


def move_host(state: ClusterState, name: HostName, event: HostEvent, by: By) -> bool:
    """One step in rule 24's table; False where the table refuses it."""
    record = state.hosts.get(name)
    to = move(record.state, event) if record is not None else None
    if record is None or to is None:
        return False
    for held_back in (state.tripped, state.allowed):
        held_back.pop(f"host {name}", None)  # a person has decided
    if event in (HostEvent.DRAIN, HostEvent.UNDRAIN):
        decided(state, name)
    if to is not record.state:
        touch_host(state, record, state=to, since=state.now, by=by)
        drop_broken_promises(state, record)
    return True


def drop_broken_promises(state: ClusterState, record: HostRecord) -> None:
    """Claims and reservations on a host that was cordoned or lost, or on GPUs that are not fit any more, are planned
    anew (rules 19, 21).
    """
    whole = record.state is not HostState.SERVING or record.removed or bool(record.strays)
    whole = whole or record.reach in (Reach.LOST, Reach.NEVER_SEEN)
    unfit = record.foreign | record.unfit | record.leaked | ~record.host.all_slots
    bad, index = record.host.all_slots if whole else unfit, state.index

    def broken(members: tuple[Member, ...]) -> bool:
        return any(m.host == record.host.name and m.slots & bad for m in members)

    for claimant in [state.workloads[wid] for wid in index.claimants] if record.claimed & bad else ():
        if broken(claimant.claim):
            drop_claim(state, claimant)
    for holder in [state.workloads[wid] for wid in index.reservations]:
        if holder.reserved is not None and broken(holder.reserved.members):
            drop_reservation(state, holder)
