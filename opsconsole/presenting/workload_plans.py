"""Plans for workloads: requeue, cancel, hold, release."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.plans import NOTHING, PLAIN_COLUMNS, Plan, broken_line, command_line, refusals
from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.rows import Cell, Row, TableView
from opsconsole.presenting.text import clean, count, day_clock, gpu_hours
from opsconsole.presenting.view import ClusterView
from scheduler_core.contract import lost_gpu_ms
from scheduler_core.ids import WorkloadId
from scheduler_core.observations import (
    By,
    CancelRequested,
    HoldRequested,
    Observation,
    ReleaseRequested,
    RequeueRequested,
)
from scheduler_core.state import Run
from scheduler_core.workload import WorkloadPhase


def plan_requeue(view: ClusterView, workloads: Sequence[str], now: bool = False) -> Plan:
    """At the end of the min runtime; `now` breaks the guarantee and says so."""
    state = view.state
    found = [WorkloadId(w) for w in workloads if (r := state.workloads.get(WorkloadId(w))) is not None and r.run]
    rows, broken = [], 0
    for wid in found:
        run = state.runs[state.workloads[wid].run]  # type: ignore[index]
        protected = run.protected(state.now)
        broken += int(protected and now)
        until = run.protected_until()
        when = "now" if now or not protected else "when it has started and run its minimum"
        if protected and not now and until is not None:
            when = day_clock(view.wall(until), view.wall_ms)
        then = f"stops {_once_asked(view, run) or when}, loses {gpu_hours(lost_gpu_ms(state, run))} GPU-h, waits again"
        rows.append(
            Row(wid, (Cell(_label(view, wid)), Cell("protected" if protected else "interruptible"), Cell(then)))
        )
    return _workload_plan(
        view,
        "requeue",
        workloads,
        found,
        rows,
        lambda wid, by: RequeueRequested(wid, by, override=now),
        "no run that could be stopped",
        broken,
        ("--now",) if now else (),
    )


def plan_cancel(view: ClusterView, workloads: Sequence[str]) -> Plan:
    state = view.state
    found = [WorkloadId(w) for w in workloads if _not_ended(view, w)]
    rows = []
    for wid in found:
        record = state.workloads[wid]
        run = state.runs.get(record.run) if record.run else None
        then = "ends for good"
        if run is not None:
            when = _once_asked(view, run) or "now"
            then = f"stops {when} and ends; {gpu_hours(lost_gpu_ms(state, run))} GPU-h lost"
        rows.append(Row(wid, (Cell(_label(view, wid)), Cell(record.phase.value), Cell(then))))
    return _workload_plan(
        view, "cancel", workloads, found, rows, lambda wid, by: CancelRequested(wid, by), "ended already"
    )


def plan_hold(view: ClusterView, workloads: Sequence[str]) -> Plan:
    found = [WorkloadId(w) for w in workloads if _phase(view, w) is WorkloadPhase.WAITING]
    rows = [Row(w, (Cell(_label(view, w)), Cell("waiting"), Cell("does not start until released"))) for w in found]
    return _workload_plan(view, "hold", workloads, found, rows, lambda wid, by: HoldRequested(wid, by), "not waiting")


def plan_release(view: ClusterView, workloads: Sequence[str]) -> Plan:
    found = [WorkloadId(w) for w in workloads if _phase(view, w) is WorkloadPhase.HELD]
    rows = [
        Row(w, (Cell(_label(view, w)), Cell(clean(f"held: {view.state.workloads[w].reason}", 60)), Cell("waits again")))
        for w in found
    ]
    return _workload_plan(
        view, "release", workloads, found, rows, lambda wid, by: ReleaseRequested(wid, by), "not held"
    )


def _workload_plan(
    view: ClusterView,
    action: str,
    asked: Sequence[str],
    found: Sequence[WorkloadId],
    rows: Sequence[Row],
    make: Callable[[WorkloadId, By], Observation],
    why_not: str,
    broken: int = 0,
    more: tuple[str, ...] = (),
) -> Plan:
    state = view.state
    refused = refusals(
        (w, why_not if w in state.workloads else "no such workload") for w in asked if WorkloadId(w) not in found
    )
    return Plan(
        action,
        tuple(found),
        TableView(f"{action.capitalize()}: {count(len(found), 'workload')}", PLAIN_COLUMNS, tuple(rows), NOTHING),
        broken_line(broken),
        command_line(action, found, *more) if found else "",
        tuple((w, state.workloads[w].phase, state.workloads[w].run) for w in found),
        lambda by: [make(w, by) for w in found],
        broken,
        refused,
    )


def _once_asked(view: ClusterView, run: Run) -> str:
    """When a run stops on hosts that cannot be asked now; nothing where all can."""
    away = [name for name in run.members if view.state.hosts[name].reach in AWAY]
    return f"once {', '.join(away)} can be asked (until then it counts as running)" if away else ""


def _label(view: ClusterView, wid: WorkloadId) -> str:
    return workload_label(wid, view.state.workloads[wid].workload.name)


def _phase(view: ClusterView, wid: str) -> WorkloadPhase | None:
    record = view.state.workloads.get(WorkloadId(wid))
    return record.phase if record is not None else None


def _not_ended(view: ClusterView, wid: str) -> bool:
    return _phase(view, wid) not in (None, WorkloadPhase.ENDED)
