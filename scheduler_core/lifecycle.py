"""`apply`: the only door through which a ClusterState changes, for observations and decisions alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core import apply_budgets, apply_decisions, apply_hosts, apply_requests, apply_runs, proposals
from scheduler_core import decisions as d
from scheduler_core import observations as o
from scheduler_core.state import ClusterState

HANDLERS: dict[type[Any], Callable[[ClusterState, Any], None]] = {
    o.InventoryLoaded: apply_hosts.inventory_loaded,
    o.WorkloadSubmitted: apply_requests.submitted,
    o.CancelRequested: apply_requests.cancel,
    o.RequeueRequested: apply_requests.requeue,
    o.HoldRequested: apply_requests.hold,
    o.ReleaseRequested: apply_requests.release,
    o.WorkloadMoved: apply_requests.move_workload,
    o.CordonRequested: apply_requests.cordon,
    o.DrainRequested: apply_requests.drain,
    o.UndrainRequested: apply_requests.undrain,
    o.HostAdvanced: apply_requests.advance,
    o.HostDeclared: apply_hosts.declared,
    o.ReloadRequested: apply_hosts.reload_requested,
    o.BreakerReset: apply_requests.breaker_reset,
    o.WeightChanged: apply_budgets.change_weight,
    o.UsageForgotten: apply_budgets.forget_usage,
    o.RequestRefused: apply_hosts.only_told,
    o.ClockStepped: apply_hosts.only_told,
    o.HostSeen: apply_hosts.seen,
    o.HostStale: apply_hosts.stale,
    o.HostUnreachable: apply_hosts.unreachable,
    o.HostFenced: apply_hosts.fenced,
    o.AutoDrainProposed: proposals.proposed,
    o.AutoDrainWithdrawn: proposals.withdrawn,
    o.MemberStarted: apply_runs.member_started,
    o.MemberExited: apply_runs.member_exited,
    o.MemberReleased: apply_runs.member_released,
    o.MemberNeverStarted: apply_runs.never_started,
    d.Placed: apply_decisions.placed,
    d.Claimed: apply_decisions.claimed,
    d.Reserved: apply_decisions.reserved,
    d.ReservationEnded: apply_decisions.reservation_ended,
    d.StopDecided: apply_decisions.stop_decided,
    d.HostMoved: apply_decisions.host_moved,
    d.HostLost: apply_decisions.host_lost,
    d.MemberLeaked: apply_decisions.member_leaked,
    d.StrayFound: apply_decisions.stray_found,
    d.WorkloadHeld: apply_decisions.workload_held,
    d.BreakerTripped: apply_decisions.breaker_tripped,
    d.PassDone: apply_decisions.pass_done,
}


def apply(state: ClusterState, event: o.Observation | d.Decision) -> None:
    """Changes the state by one fact or decision at `state.now`. A late or repeated fact changes nothing."""
    HANDLERS[type(event)](state, event)
