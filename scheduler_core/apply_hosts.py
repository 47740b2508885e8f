"""What hosts report and what is said of them, applied (rules 26, 27). Silence is never an answer."""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.apply_budgets import keep_weights
from scheduler_core.apply_requests import drop_broken_promises, end_drain, move_host
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.changes import add_host, remove_host, set_member, touch_host
from scheduler_core.contract import gang_breaks_at
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.fleet import Host, HostState, Reach
from scheduler_core.hosttable import HostEvent, ReachEvent, reach_after, require_reach
from scheduler_core.ids import ROOT, BudgetId, HostName, RunId
from scheduler_core.observations import (
    By,
    ClockStepped,
    HostDeclared,
    HostFenced,
    HostSeen,
    HostStale,
    HostUnreachable,
    InventoryLoaded,
    ReloadRequested,
    RequestRefused,
)
from scheduler_core.outcomes import finish_run
from scheduler_core.rebuilding import budgets_in_use, set_inventory
from scheduler_core.state import ClusterState, HostRecord, MemberPhase, Run
from scheduler_core.timers import rebuild_timers, watch_host

LEFT = By("inventory", "left the inventory")


def inventory_loaded(state: ClusterState, event: InventoryLoaded) -> None:
    """Runs are never touched. What is still in use stays: a host cordoned, a budget with weight 0."""
    budgets = keep_weights(state, {b.id: b for b in event.budgets})
    for kept in budgets_in_use(state):
        _keep_budget(state, kept, budgets)
    state.began_at = state.began_at or state.now
    set_inventory(state, event.policy, BudgetTree.of(budgets.values()))
    hosts = {h.name: h for h in event.hosts}
    for host in event.hosts:
        _host_declared(state, host)
    for name in [n for n in state.hosts if n not in hosts]:
        _host_left(state, state.hosts[name])
    rebuild_timers(state)


def reload_requested(state: ClusterState, event: ReloadRequested) -> None:
    """Nothing yet: the inventory itself follows in the same tick."""


def only_told(state: ClusterState, event: RequestRefused | ClockStepped) -> None:
    """For the record."""


def _keep_budget(state: ClusterState, name: BudgetId, budgets: dict[BudgetId, Budget]) -> None:
    """A budget that left the inventory while in use stays, with weight 0, where its parent is or at the top."""
    if name in budgets:
        return
    old = state.budgets.by_id.get(name)
    if old is not None:
        parent = old.parent if old.parent in budgets else ROOT
        taken = {b.name for b in budgets.values() if b.parent == parent}
        label = old.name if old.name not in taken else f"{old.name} (removed)"
        budgets[name] = replace(old, parent=parent, name=label, weight=0)


def _host_declared(state: ClusterState, host: Host) -> None:
    record = state.hosts.get(host.name)
    if record is None:
        added = add_host(state, host)
        if (by := state.parted.pop(host.name, None)) is not None:
            touch_host(state, added, state=HostState.CORDONED, by=by)
        return
    if record.host != host:
        touch_host(state, record, host=host)
        state.index.sizes.clear()
        drop_broken_promises(state, record)
    if record.removed:
        back = record.by == LEFT and record.state is HostState.CORDONED
        touch_host(state, record, removed=False)
        if back:
            touch_host(state, record, state=HostState.SERVING, since=state.now, by=None)


def _host_left(state: ClusterState, record: HostRecord) -> None:
    """Goes at once when it has no runs; else nothing new starts there and it goes with the last of them."""
    touch_host(state, record, removed=True)
    if record.state is HostState.SERVING:
        touch_host(state, record, state=HostState.CORDONED, since=state.now, by=LEFT)
    drop_broken_promises(state, record)
    _forget_host(state, record)


def _forget_host(state: ClusterState, record: HostRecord) -> None:
    """A removed host goes with the last run that names it: its drain is over, whatever it was waiting for.

    What took it out of service is kept: it does not come back to serve because somebody edited a file.
    """
    if not record.removed or record.runs or any(record.host.name in run.members for run in state.runs.values()):
        return
    name, by = record.host.name, record.by
    end_drain(state, record, "removed")
    state.proposals.pop(name, None)
    state.heeded.pop(name, None)
    if record.state is not HostState.SERVING and by is not None and by != LEFT:
        was = record.state.value.replace("_", " ")
        state.parted[name] = By(by.actor, f"{was} when it left the inventory: {by.why or 'no reason given'}")
    remove_host(state, name)


def seen(state: ClusterState, event: HostSeen) -> None:
    """It answers. What its runs did meanwhile is told before this, over the same link (`sensing`)."""
    record = state.hosts.get(event.host)
    if record is None:
        return
    if event.boot_id and event.boot_id != record.boot_id:
        _rebooted(state, record, event.boot_id)
        if event.host not in state.hosts:
            return  # it had left the inventory, and went with the last run that named it
    before = record.reach
    touch_host(
        state,
        record,
        reach=require_reach(before, ReachEvent.SEEN),
        boot_id=event.boot_id or record.boot_id,
        machine=event.machine or record.machine,
        gpu_ids=event.gpu_ids,
        foreign=event.foreign,
        unfit=event.unfit,
        empty=event.empty,
        unreachable_since=None,
        unreachable_why="",
    )
    if before is not Reach.FRESH:
        record.reach_since = state.now
        record.answers_since = record.answers_since if before is Reach.STALE else state.now
        watch_host(state, record)
    drop_broken_promises(state, record)


def _rebooted(state: ClusterState, record: HostRecord, boot_id: str) -> None:
    """A new boot id proves that whatever ran under the old one is dead. What began since is not."""
    record.buried, record.strays = [], []
    state.strays = [stray for stray in state.strays if stray[1] != record.host.name]
    old = record.boot_id
    for run_id in list(record.runs) if old else ():
        member = state.runs[run_id].members[record.host.name]
        if member.boot_id == old or member.phase is MemberPhase.LEAKED:
            _bury(state, record, state.runs[run_id], "the host rebooted")
    for run_id in record.runs:
        member = state.runs[run_id].members[record.host.name]
        if member.phase is not MemberPhase.DISPATCHED and not member.boot_id:
            member.boot_id = boot_id


def stale(state: ClusterState, event: HostStale) -> None:
    record = state.hosts.get(event.host)
    to = reach_after(record.reach, ReachEvent.STALE) if record is not None else None
    if record is not None and to is not None:
        touch_host(state, record, reach=to, reach_since=state.now, empty=False)
        watch_host(state, record)


def unreachable(state: ClusterState, event: HostUnreachable) -> None:
    """Keeps its runs and GPUs. After `lost_after` it is lost, which is not dead either."""
    record = state.hosts.get(event.host)
    if record is None:
        return
    record.unreachable_why = event.why
    to = reach_after(record.reach, ReachEvent.UNREACHABLE)
    if to is None:
        return
    since = state.now if record.unreachable_since is None else record.unreachable_since
    touch_host(state, record, reach=to, empty=False, unreachable_since=since)
    if to is Reach.UNREACHABLE:
        record.reach_since = state.now
        state.index.wake_at(since + state.policy.lost_after_ms, "lost", event.host)


def lost(state: ClusterState, record: HostRecord) -> None:
    """Gangs with a member there are broken: their reachable members stop (rule 27), where there are any."""
    touch_host(state, record, reach=require_reach(record.reach, ReachEvent.LOST), reach_since=state.now)
    drop_broken_promises(state, record)
    for run in (state.runs[run_id] for run_id in record.runs):
        if (at := gang_breaks_at(state, run)) is not None and at <= state.now:
            want_gang_stop(state, run, f"its member on {record.host.name} is lost")
    watch_host(state, record)


def fenced(state: ClusterState, event: HostFenced) -> None:
    """Only while it is as lost as when the fence was sent: what answers again says itself what lives there."""
    record = state.hosts.get(event.host)
    if record is not None and record.reach is Reach.LOST and event.command == record.fence_id:
        bury_all(state, record, "the host was powered off")


def declared(state: ClusterState, event: HostDeclared) -> None:
    """An operator's word: dead hosts give their GPUs back (rule 27); an empty one counts as drained (rule 26)."""
    record = state.hosts.get(event.host)
    if record is None:
        return
    if event.what == "dead":
        bury_all(state, record, f"declared dead by {event.by.actor}")
    elif not record.runs and move_host(state, event.host, HostEvent.EMPTIED, event.by):
        end_drain(state, record, "drained")


def bury_all(state: ClusterState, record: HostRecord, why: str) -> None:
    """Somebody's word, or the power: all that was sent there is dead, and must not start there later either.

    Should a host with the same boot say otherwise, what it names is a stray (`stray_heard`).
    """
    for run_id in list(record.runs):
        record.buried.append(run_id)
        _bury(state, record, state.runs[run_id], why)


def _bury(state: ClusterState, record: HostRecord, run: Run, why: str) -> None:
    """The processes there are known dead: their GPUs are given back, their gang stops."""
    run.members[record.host.name].why = why
    all_gone = set_member(state, run, record.host.name, MemberPhase.RELEASED)
    member_gone(state, run, all_gone, f"its member on {record.host.name} died: {why}")


def stray_heard(state: ClusterState, run: RunId, name: HostName, alive: bool) -> None:
    """A host tells of a run that was declared dead there. Alive, it is stopped; nothing new starts there meanwhile."""
    record = state.hosts.get(name)
    if record is None or run not in record.buried:
        return
    if alive and run not in record.strays:
        state.strays.append((run, name))
        touch_host(state, record, strays=[*record.strays, run])
        drop_broken_promises(state, record)
    elif not alive:
        record.buried.remove(run)
        state.strays = [stray for stray in state.strays if stray != (run, name)]
        touch_host(state, record, strays=[other for other in record.strays if other != run])


def member_gone(state: ClusterState, run: Run, all_gone: bool, why: str) -> None:
    """After a member gave its GPUs back: the run ends with the last one, and a gang that broke stops whole."""
    if all_gone:
        finish_run(state, run)
    elif why:
        want_gang_stop(state, run, why)
    for name in run.members:
        if (host := state.hosts.get(name)) is not None:
            _forget_host(state, host)


def want_gang_stop(state: ClusterState, run: Run, why: str) -> None:
    if run.stop is None and run.id not in state.wanted:
        state.wanted[run.id] = StopDecided(run.id, StopCause.GANG_BROKEN, why)
