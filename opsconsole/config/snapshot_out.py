"""Writes the snapshot file: the inverse of `snapshot.read_snapshot`, to the extent that one pass depends on."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import yaml

from opsconsole.config.budgets import write_budgets
from opsconsole.config.knobs import write_policy
from opsconsole.config.scalars import CONTROL, MOST_TEXT
from opsconsole.config.units import format_instant
from opsconsole.config.workloads import Site, Strictness
from opsconsole.spans import format_span
from scheduler_core.fleet import HostState, Reach
from scheduler_core.ids import HostName
from scheduler_core.state import ClusterState, HostRecord, Run, WorkloadRecord
from scheduler_core.units import GPU, GPU_HOUR
from scheduler_core.workload import OnPreempt, WorkloadPhase

BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Row(dict[str, Any]):
    """A mapping on one line."""


class _Instant(str):
    """A text that needs no quotes."""


class _Dumper(BASE):  # type: ignore[misc]
    """Hosts and workloads a line each; amounts and instants as people write them."""


def _amount(dumper: Any, amount: Decimal) -> Any:
    """With a point, also where it is whole: else the text would need a tag to be a float."""
    text = f"{amount:f}"
    return dumper.represent_scalar("tag:yaml.org,2002:float", text if "." in text else f"{text}.0")


_Dumper.add_representer(Decimal, _amount)
_Dumper.add_representer(_Instant, lambda dumper, at: dumper.represent_scalar("tag:yaml.org,2002:timestamp", str(at)))
_Dumper.add_representer(
    _Row, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True)
)


def write_snapshot(state: ClusterState) -> str:
    """YAML that reads back to a state with the same next pass.

    Left behind, for there are no words for them in the file: ended workloads, readings of single GPUs, retry delays,
    claims, stops on their way and members of a gang that are gone. GPUs of a run that is already stopping count as its.
    """
    policy = write_policy(state.policy) | _wide_bounds(state)
    document: dict[str, Any] = {
        "now": _Instant(format_instant(state.now)),
        **({"policy": _Row(policy)} if policy else {}),
    }
    document["budgets"] = write_budgets(state.budgets)
    document["hosts"] = _hosts(state)
    for name, allocated in (("usage", True), ("unallocated_usage", False)):
        if usage := _usage(state, allocated):
            document[name] = usage
    site = Site(state.budgets, state.policy, [r.host for r in state.hosts.values()])
    live = [r for r in state.workloads.values() if r.phase is not WorkloadPhase.ENDED]
    document["workloads"] = [_Row(_workload(state, site, record)) for record in live]
    header = "# Written by opsconsole snapshot; plan on it with: opsconsole plan FILE\n"
    return header + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100_000, allow_unicode=True)


def _wide_bounds(state: ClusterState) -> dict[str, Any]:
    """Bounds count at submission only (rule 10): what came in under older ones must read back."""
    low, high = state.policy.min_runtime_min_ms, state.policy.min_runtime_max_ms
    declared = [r.workload.min_runtime_ms for r in state.workloads.values() if r.phase is not WorkloadPhase.ENDED]
    outside = [ms for ms in declared if ms and not low <= ms <= high]
    if not outside:
        return {}
    return {"min_runtime_bounds": [format_span(min(low, *outside)), format_span(max(high, *outside))]}


def _hosts(state: ClusterState) -> list[dict[str, Any]]:
    """Only the sum of the in-service times enters a pass, so it is dealt out: whole windows first.

    The first that gets a whole window also says that the window is known from its start (rule 4).
    """
    window = state.policy.lookback_ms
    left = state.ledgers.in_service(state.now, window)
    spans: dict[HostName, int] = {}
    for record in sorted(state.hosts.values(), key=_serving_and_small_first):
        spans[record.host.name] = span = min(window, left // (record.host.gpus * GPU)) if record.host.gpus else 0
        left -= span * record.host.gpus * GPU
    return [_Row(_host(record, spans[record.host.name])) for record in state.hosts.values()]


def _serving_and_small_first(record: HostRecord) -> tuple[bool, int, HostName]:
    return (record.state is not HostState.SERVING, record.host.gpus, record.host.name)


def _host(record: HostRecord, in_service_ms: int) -> dict[str, Any]:
    word = record.state.value
    if record.state is HostState.SERVING and record.reach is not Reach.FRESH:  # nothing is placed on stale readings
        word = Reach.LOST.value if record.reach is Reach.LOST else Reach.UNREACHABLE.value
    row: dict[str, Any] = {"name": record.host.name, "gpus": record.host.gpus, "state": word}
    if record.host.labels:
        row["labels"] = dict(record.host.labels)
    row["in_service"] = format_span(in_service_ms)
    return row


def _usage(state: ClusterState, allocated: bool) -> dict[str, Decimal]:
    """GPU-hours; ten digits tell every amount of a ledger from its neighbours."""
    found = {}
    for leaf in state.budgets.leaves:
        used = state.ledgers.used(leaf, state.now, state.policy.lookback_ms, allocated)
        if used:
            hours = (Decimal(used) / Decimal(GPU_HOUR)).quantize(Decimal("1e-10"))
            found[state.budgets.paths[leaf]] = hours.normalize()
    return found


def _workload(state: ClusterState, site: Site, record: WorkloadRecord) -> dict[str, Any]:
    w = record.workload
    run = None if record.run is None else state.runs.get(record.run)
    gpus, whole = (w.gpus, True) if run is None else (run.gpus, run.gpus == w.gpus)
    row: dict[str, Any] = {
        "id": w.id,
        "budget": state.budgets.paths[w.budget],
        "gpus": gpus or w.gpus,
        "min_runtime": format_span(w.min_runtime_ms),
    }
    if w.hosts and w.gpus_per_host and whole:
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
    return row | (_waiting(state, site, record) if run is None or not run.gpus else _running(state, run))


def _waiting(state: ClusterState, site: Site, record: WorkloadRecord) -> dict[str, Any]:
    """A workload that no shape fits any more, since hosts left, is held with that reason; the file would refuse it."""
    row: dict[str, Any] = {"waiting": format_span(max(0, state.now - record.workload.submitted_at))}
    if record.phase is WorkloadPhase.HELD:
        row["held"] = CONTROL.sub(" ", record.reason)[:MOST_TEXT] or True
    elif problem := site.shape_problem(record.workload, Strictness.SNAPSHOT):
        row["held"] = problem
    return row


def _running(state: ClusterState, run: Run) -> dict[str, Any]:
    ran = 0 if run.started_at is None else state.now - run.started_at
    on = {host: m.slots.bit_count() for host, m in run.members.items() if m.phase.holds_gpus}
    row: dict[str, Any] = {"running": {"on": on, "for": format_span(ran)}}
    if run.checkpoint_at is not None:
        row["checkpoint_age"] = format_span(max(0, state.now - run.checkpoint_at))
    return row
