"""Decisions, applied. Journalled decisions applied in order give the same state again."""

from __future__ import annotations

from itertools import takewhile

from scheduler_core.apply_hosts import lost
from scheduler_core.apply_requests import begin_drain, drop_broken_promises, end_drain
from scheduler_core.breaker import GPUS_PER_MS, HOSTS_PER_MS
from scheduler_core.changes import hold, set_member, set_phase, stopping, touch_host
from scheduler_core.decisions import (
    BreakerTripped,
    Claimed,
    HostLost,
    HostMoved,
    MemberLeaked,
    PassDone,
    Placed,
    ReservationEnded,
    Reserved,
    StopCause,
    StopDecided,
    StrayFound,
    WorkloadHeld,
)
from scheduler_core.fleet import HostState
from scheduler_core.hosttable import HostEvent, move
from scheduler_core.ids import HostName
from scheduler_core.observations import By, DrainRequested
from scheduler_core.promises import drop_promises, drop_reservation, set_claim, set_reservation
from scheduler_core.proposals import decided
from scheduler_core.settled import News
from scheduler_core.state import ClusterState, MemberPhase, MemberRecord, Run
from scheduler_core.timers import watch_run
from scheduler_core.workload import WorkloadPhase

MACHINE = By("opsconsole")


def placed(state: ClusterState, decision: Placed) -> None:
    record = state.workloads[decision.workload]
    drop_promises(state, record)
    set_phase(state, record, WorkloadPhase.RUNNING)
    record.attempt += 1
    record.run = decision.run
    state.tripped.pop(f"workload {decision.workload}", None)
    state.allowed.pop(f"workload {decision.workload}", None)
    w = record.workload
    members = {m.host: MemberRecord(m.slots) for m in decision.members}
    run = Run(decision.run, w.id, w.budget, w.allocated, w.min_runtime_ms, state.now, members)
    hold(state, run)
    watch_run(state, run)


def claimed(state: ClusterState, decision: Claimed) -> None:
    set_claim(state, state.workloads[decision.workload], decision.members, decision.waits_for)


def reserved(state: ClusterState, decision: Reserved) -> None:
    set_reservation(state, state.workloads[decision.workload], decision)


def reservation_ended(state: ClusterState, decision: ReservationEnded) -> None:
    drop_reservation(state, state.workloads[decision.workload])


def stop_decided(state: ClusterState, decision: StopDecided) -> None:
    """The first cause stays, but for a cancel: it changes what becomes of the workload."""
    state.wanted.pop(decision.run, None)
    run = state.runs.get(decision.run)
    if run is None:
        return
    if run.stop is not None:
        run.stop = decision if decision.cause is StopCause.CANCEL else run.stop
        return
    if decision.cause is StopCause.PREEMPT and not decision.reserved:
        kept = [(at, gpus) for at, gpus in state.preempted if at > state.now - GPUS_PER_MS]
        state.preempted = [*kept, (state.now, run.gpus)]
    stopping(state, run, decision)
    watch_run(state, run)


def host_moved(state: ClusterState, decision: HostMoved) -> None:
    """Drained when known empty; else an automatic move that the breaker let through (rule 29)."""
    record = state.hosts[decision.host]
    by = record.by if decision.to is HostState.DRAINED else By(MACHINE.actor, decision.reason)
    touch_host(state, record, state=decision.to, since=state.now, by=by)
    drop_broken_promises(state, record)
    if decision.to is HostState.DRAINED:
        end_drain(state, record, "drained")
        return
    state.auto_moves = [at for at in state.auto_moves if at > state.now - HOSTS_PER_MS] + [state.now]
    state.allowed.pop(f"host {decision.host}", None)
    proposal = decided(state, decision.host)
    if decision.to is HostState.DRAINING and proposal is not None:
        request = DrainRequested(proposal.drain, decision.host, By(MACHINE.actor, decision.reason))
        begin_drain(state, record, request, automatic=True)


def host_lost(state: ClusterState, decision: HostLost) -> None:
    lost(state, state.hosts[decision.host])


def member_leaked(state: ClusterState, decision: MemberLeaked) -> None:
    """Out of service, charged to nobody, the host suspect (rule 13)."""
    run = state.runs[decision.run]
    set_member(state, run, decision.host, MemberPhase.LEAKED)
    record = state.hosts[decision.host]
    if (to := move(record.state, HostEvent.SUSPECT)) is not None:
        by = By(MACHINE.actor, f"GPUs of {decision.run} are still in use after SIGKILL")
        touch_host(state, record, state=to, since=state.now, by=by)
    drop_broken_promises(state, record)


def stray_found(state: ClusterState, decision: StrayFound) -> None:
    """Only commands: it is stopped until its host says that it went."""
    state.strays.remove((decision.run, decision.host))


def workload_held(state: ClusterState, decision: WorkloadHeld) -> None:
    record = state.workloads[decision.workload]
    if record.phase is WorkloadPhase.WAITING:
        drop_promises(state, record)
        set_phase(state, record, WorkloadPhase.HELD)
        record.reason, record.held_by = decision.reason, MACHINE


def breaker_tripped(state: ClusterState, decision: BreakerTripped) -> None:
    state.tripped[decision.what] = None


def pass_done(state: ClusterState, decision: PassDone) -> None:
    """Who waits for `max_blast`'s patience keeps its place in it, and is looked at again when it is over (rule 18)."""
    state.last_pass_at = state.now
    if decision.read_standings:
        state.standings_read_at = state.now
    stops = (state.runs[run_id] for run_id in reversed(state.index.stopping))  # the newest first
    leaving = takewhile(lambda run: run.stop_at == state.now, stops)
    # What victims free beyond the need is for the next in order, in another pass; all else was reckoned with.
    easy = state.index.book.easy
    hosts: dict[HostName, None] = {name: None for run in leaving for name in run.members if easy(name)}
    hosts |= state.index.news.opened
    state.dirty = bool(hosts)
    moved = 0 if decision.read_standings else state.index.news.moved
    state.index.news = News(everything=False, hosts=hosts, moved=moved)
    known = state.blast_blocked
    state.blast_blocked = {wid: known.get(wid, state.now) for wid in decision.blocked}
    for wid in decision.blocked:
        if wid not in known:
            state.index.wake_at(state.now + state.policy.blast_patience_ms, "patience", wid)
