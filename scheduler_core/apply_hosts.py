"""What hosts report, applied (rules 26, 27). Silence is never an answer."""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.apply_requests import drop_broken_claims
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.changes import add_host, budgets_in_use, remove_host, set_inventory, set_member, touch_host
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.fleet import Host, HostState, Reach
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.observations import (
    AutoDrainProposed,
    By,
    HostFenced,
    HostSeen,
    HostStale,
    HostUnreachable,
    InventoryLoaded,
)
from scheduler_core.outcomes import finish_run
from scheduler_core.state import ClusterState, HostRecord, MemberPhase, Run
from scheduler_core.timers import rebuild_timers


def inventory_loaded(state: ClusterState, event: InventoryLoaded) -> None:
    """Runs are never touched. What is still in use stays: a host cordoned, a budget with weight 0."""
    budgets = {b.id: b for b in event.budgets}
    for kept in budgets_in_use(state):
        _keep_budget(state, kept, budgets)
    set_inventory(state, event.policy, BudgetTree.of(budgets.values()))
    hosts = {h.name: h for h in event.hosts}
    for host in event.hosts:
        _host_declared(state, host)
    for name in [n for n in state.hosts if n not in hosts]:
        _host_left(state, state.hosts[name])
    rebuild_timers(state)


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
        add_host(state, host)
        return
    if record.host != host:
        touch_host(state, record, host=host)
        state.index.sizes.clear()
    if record.removed:
        touch_host(state, record, removed=False, state=HostState.SERVING, since=state.now)


def _host_left(state: ClusterState, record: HostRecord) -> None:
    """Goes at once when it has no runs; else it is cordoned and goes with the last of them."""
    if not record.runs:
        touch_host(state, record, state=HostState.CORDONED)
        drop_broken_claims(state, record)
        remove_host(state, record.host.name)
    else:
        by = By("inventory", "left the inventory")
        touch_host(state, record, removed=True, state=HostState.CORDONED, since=state.now, by=by)
        drop_broken_claims(state, record)


def seen(state: ClusterState, event: HostSeen) -> None:
    record = state.hosts.get(event.host)
    if record is None:
        return
    if record.boot_id and event.boot_id != record.boot_id:
        bury_members(state, record, "the host rebooted", dispatched_too=False)
    if record.reach in (Reach.UNREACHABLE, Reach.LOST):
        for run_id in record.runs:  # a stop whose deadline passed meanwhile
            state.index.wake_at(state.now, "leak", run_id)
    touch_host(
        state,
        record,
        reach=Reach.FRESH,
        boot_id=event.boot_id,
        gpu_ids=event.gpu_ids,
        foreign=event.foreign,
        unfit=event.unfit,
        empty=event.empty and not record.runs,
        unreachable_since=None,
        unreachable_why="",
    )
    drop_broken_claims(state, record)


def stale(state: ClusterState, event: HostStale) -> None:
    record = state.hosts.get(event.host)
    if record is not None and record.reach is Reach.FRESH:
        touch_host(state, record, reach=Reach.STALE, empty=False)


def unreachable(state: ClusterState, event: HostUnreachable) -> None:
    """Keeps its runs and GPUs. After `lost_after` it is lost, which is not dead either."""
    record = state.hosts.get(event.host)
    if record is None:
        return
    if record.reach in (Reach.FRESH, Reach.STALE, Reach.NEVER_SEEN):
        since = record.unreachable_since if record.unreachable_since is not None else state.now
        reach = Reach.UNREACHABLE if record.reach is not Reach.NEVER_SEEN else Reach.NEVER_SEEN
        touch_host(state, record, reach=reach, empty=False, unreachable_since=since)
        state.index.wake_at(since + state.policy.lost_after_ms, "lost", event.host)
    record.unreachable_why = event.why


def lost(state: ClusterState, record: HostRecord) -> None:
    """Gangs with a member there are broken: their reachable members stop (rule 27)."""
    touch_host(state, record, reach=Reach.LOST)
    drop_broken_claims(state, record)
    for run_id in record.runs:
        run = state.runs[run_id]
        if len(run.members) > 1:
            want_gang_stop(state, run, f"its member on {record.host.name} is lost")


def fenced(state: ClusterState, event: HostFenced) -> None:
    record = state.hosts.get(event.host)
    if record is not None:
        bury_members(state, record, "the host was powered off", dispatched_too=True)


def proposed(state: ClusterState, event: AutoDrainProposed) -> None:
    """Health asks; the next step decides within the breaker (rule 29). One proposal per host."""
    record = state.hosts.get(event.host)
    if record is not None and record.state in (HostState.SERVING, HostState.CORDONED, HostState.SUSPECT):
        state.proposals.setdefault(event.host, event)


def bury_members(state: ClusterState, record: HostRecord, why: str, dispatched_too: bool) -> None:
    """The processes there are known dead: their GPUs are given back, their gangs stop.

    After a reboot a member that was only dispatched may still start; after a power-off it must not.
    """
    for run_id in list(record.runs):
        run = state.runs[run_id]
        member = run.members[record.host.name]
        if member.phase is MemberPhase.DISPATCHED and not dispatched_too:
            continue
        member.why = why
        gone = set_member(state, run, record.host.name, MemberPhase.RELEASED)
        member_gone(state, run, gone, f"its member on {record.host.name} died: {why}")


def member_gone(state: ClusterState, run: Run, all_gone: bool, why: str) -> None:
    """After a member gave its GPUs back: the run ends with the last one, and a gang that broke stops whole."""
    if all_gone:
        hosts = [state.hosts[name] for name in run.members if name in state.hosts]
        finish_run(state, run)
        for host in hosts:
            if host.removed and not host.runs:
                remove_host(state, host.host.name)
    elif why:
        want_gang_stop(state, run, why)


def want_gang_stop(state: ClusterState, run: Run, why: str) -> None:
    if run.stop is None and run.id not in state.wanted:
        state.wanted[run.id] = StopDecided(run.id, StopCause.GANG_BROKEN, why)
