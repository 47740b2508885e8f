"""Writes the snapshot file: the inverse of `snapshot.read_snapshot`, to the extent that one pass depends on."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import yaml

from opsconsole.config.budgets import write_budgets
from opsconsole.config.knobs import write_policy
from opsconsole.config.units import format_instant, format_span
from scheduler_core.fleet import HostState, Reach
from scheduler_core.state import ClusterState, HostRecord, WorkloadRecord
from scheduler_core.units import GPU, GPU_HOUR
from scheduler_core.workload import OnPreempt, WorkloadPhase


def write_snapshot(state: ClusterState) -> str:
    """YAML that reads back to a state with the same next pass. Ended workloads and readings stay behind."""
    document: dict[str, Any] = {"now": format_instant(state.now)}
    if policy := write_policy(state.policy):
        document["policy"] = policy
    document["budgets"] = write_budgets(state.budgets)
    document["hosts"] = _hosts(state)
    for name, allocated in (("usage", True), ("unallocated_usage", False)):
        if usage := _usage(state, allocated):
            document[name] = usage
    live = [r for r in state.workloads.values() if r.phase is not WorkloadPhase.ENDED]
    document["workloads"] = [_workload(state, record) for record in live]
    header = "# Written by opsconsole snapshot; plan on it with: opsconsole plan FILE\n"
    return header + yaml.dump(document, Dumper=yaml.SafeDumper, sort_keys=False, width=120, allow_unicode=True)


def _hosts(state: ClusterState) -> list[dict[str, Any]]:
    """In-service time is shared out evenly: only its sum enters a pass."""
    service = state.ledgers.in_service(state.now, state.policy.lookback_ms)
    gpus = sum(r.host.gpus for r in state.hosts.values())
    each = service // (gpus * GPU) if gpus else 0
    return [_host(record, min(each, state.policy.lookback_ms)) for record in state.hosts.values()]


def _host(record: HostRecord, in_service_ms: int) -> dict[str, Any]:
    word = record.state.value
    if record.state is HostState.SERVING and record.reach in (Reach.UNREACHABLE, Reach.LOST, Reach.NEVER_SEEN):
        word = Reach.LOST.value if record.reach is Reach.LOST else Reach.UNREACHABLE.value
    row: dict[str, Any] = {"name": record.host.name, "gpus": record.host.gpus, "state": word}
    if record.host.labels:
        row["labels"] = dict(record.host.labels)
    row["in_service"] = format_span(in_service_ms)
    return row


def _usage(state: ClusterState, allocated: bool) -> dict[str, str]:
    found = {}
    for leaf in state.budgets.leaves:
        used = state.ledgers.used(leaf, state.now, state.policy.lookback_ms, allocated)
        if used:
            hours = (Decimal(used) / Decimal(GPU_HOUR)).quantize(Decimal("1e-9"))
            found[state.budgets.paths[leaf]] = f"{hours:f}".rstrip("0").rstrip(".")
    return found


def _workload(state: ClusterState, record: WorkloadRecord) -> dict[str, Any]:
    w = record.workload
    row: dict[str, Any] = {
        "id": w.id,
        "budget": state.budgets.paths[w.budget],
        "gpus": w.gpus,
        "min_runtime": format_span(w.min_runtime_ms),
    }
    if w.hosts and w.gpus_per_host:
        row |= {"hosts": w.hosts, "gpus_per_host": w.gpus_per_host}
    row |= {"name": w.name} if w.name else {}
    row |= {"owner": w.owner} if w.owner else {}
    row |= {"needs": dict(w.needs)} if w.needs else {}
    row |= {"priority": w.priority} if w.priority else {}
    row |= {"resumable": True} if w.resumable else {}
    row |= {"on_preempt": w.on_preempt.value} if w.on_preempt is not OnPreempt.END else {}
    row |= {"max_retries": w.max_retries} if w.max_retries is not None else {}
    row |= {"time_limit": format_span(w.time_limit_ms)} if w.time_limit_ms is not None else {}
    row |= {"attempt": record.attempt} if record.attempt else {}
    return row | _where(state, record)


def _where(state: ClusterState, record: WorkloadRecord) -> dict[str, Any]:
    if record.run is None:
        row: dict[str, Any] = {"waiting": format_span(max(0, state.now - record.workload.submitted_at))}
        if record.phase is WorkloadPhase.HELD:
            row["held"] = record.reason or True
        return row
    run = state.runs[record.run]
    ran = 0 if run.started_at is None else state.now - run.started_at
    row = {"running": {"on": {h: m.slots.bit_count() for h, m in run.members.items()}, "for": format_span(ran)}}
    if run.checkpoint_at is not None:
        row["checkpoint_age"] = format_span(state.now - run.checkpoint_at)
    return row
