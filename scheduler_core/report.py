"""One pass on a state, as data: what would happen and why. What `opsconsole plan` prints."""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler_core.decisions import Placed, StopCause, StopDecided
from scheduler_core.drain import due_stops
from scheduler_core.explain import Explainer
from scheduler_core.fairshare import Standings, depth_first
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.lifecycle import apply
from scheduler_core.planner import plan_pass
from scheduler_core.queueing import queue_order
from scheduler_core.state import ClusterState, Run


class OrderRow(NamedTuple):
    """`balance` is U / E without commitments, None at E = 0; `rank` counts from 1 among siblings (rules 5 to 7)."""

    budget: BudgetId
    balance: float | None
    rank: int


class Item(NamedTuple):
    """One line of a plan. `hosts` are GPUs by host: taken by a place, freed by a preempt or drain; `until` in ms."""

    kind: str
    workload: WorkloadId
    for_workload: WorkloadId | None
    hosts: dict[HostName, int]
    reason: str
    until: int | None


class PlanReport(NamedTuple):
    order: list[OrderRow]
    queue: list[WorkloadId]
    items: list[Item]


def order_rows(state: ClusterState) -> list[OrderRow]:
    """All budgets, depth first by standing."""
    state.index.expire(state.now)
    standings = Standings(state)
    rows = []
    for budget, rank in depth_first(standings):
        balance = standings.balance(budget)
        rows.append(OrderRow(budget, None if balance is None else float(balance), rank))
    return rows


def plan_report(state: ClusterState) -> PlanReport:
    """Runs one pass and applies it to this very state: hand over one that nobody else needs."""
    order, queue = order_rows(state), queue_order(state)
    items: list[Item] = []
    for stop in due_stops(state):
        items.append(_stop_item(state, stop, "drain"))
        apply(state, stop)
    for decision in plan_pass(state).decisions:
        if isinstance(decision, Placed):
            hosts = {m.host: m.gpus for m in decision.members}
            items.append(Item("place", decision.workload, None, hosts, "free GPUs", None))
        elif isinstance(decision, StopDecided):
            items.append(_stop_item(state, decision, "preempt"))
        apply(state, decision)
    items = [item._replace(reason=item.reason + _kept(state, item)) if item.kind == "drain" else item for item in items]
    explainer = Explainer(state)
    placed = {item.workload for item in items if item.kind == "place"}
    for wid in queue:
        if wid not in placed:
            hold = explainer.hold(state.workloads[wid])
            claim = {m.host: m.gpus for m in state.workloads[wid].claim}
            items.append(Item("hold", wid, None, claim, hold.text, hold.until))
    return PlanReport(order, queue, items)


def _kept(state: ClusterState, drained: Item) -> str:
    """Rule 25: whether a gang keeps its other GPUs."""
    claim = state.workloads[drained.workload].claim
    if claim:
        return f"; {', '.join(m.host for m in claim)} are kept for it"
    return "; nothing is kept for it" if len(drained.hosts) > 1 else ""


def _stop_item(state: ClusterState, stop: StopDecided, kind: str) -> Item:
    run = state.runs[stop.run]
    for_workload = stop.for_workload if stop.cause is StopCause.PREEMPT else None
    return Item(kind, run.workload, for_workload, gpus_by_host(run), stop.reason, None)


def gpus_by_host(run: Run) -> dict[HostName, int]:
    """GPUs that the run still holds."""
    return {name: m.slots.bit_count() for name, m in run.members.items() if m.phase.holds_gpus}


def as_json(report: PlanReport, state: ClusterState, instant: Any) -> dict[str, Any]:
    """The documented JSON of `plan` (docs/snapshot.md). `instant` turns ms into text."""
    paths = state.budgets.paths
    return {
        "order": [{"budget": paths[r.budget], "balance": r.balance, "rank": r.rank} for r in report.order],
        "queue": list(report.queue),
        "decisions": [
            {
                "kind": i.kind,
                "workload": i.workload,
                "for": i.for_workload,
                "hosts": dict(i.hosts),
                "reason": i.reason,
                "until": None if i.until is None else instant(i.until),
            }
            for i in report.items
        ],
    }
