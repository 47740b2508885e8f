"""Plans for workloads: requeue, cancel, hold, release, move, priority."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from opsconsole.presenting.foresight import queue_lines, with_workloads
from opsconsole.presenting.naming import find_leaf
from opsconsole.presenting.plans import (
    NOTHING,
    PLAIN_COLUMNS,
    Plan,
    broken_line,
    command_line,
    for_words,
    lifted,
    lost_line,
    refusals,
    said,
    undone_by,
)
from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.rows import Cell, Row, TableView
from opsconsole.presenting.runs import unverified
from opsconsole.presenting.text import clean, count, day_clock, few, gpu_hours
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
    WorkloadMoved,
)
from scheduler_core.state import Run, WorkloadRecord
from scheduler_core.workload import WorkloadPhase

MOST_PRIORITY = 1_000_000  # as in submissions


def plan_requeue(view: ClusterView, workloads: Sequence[str], now: bool = False) -> Plan:
    """At the end of the min runtime; `now` breaks the guarantee and says so."""
    state = view.state
    found = [w for w in _known(view, workloads) if (run := _run(view, w)) is not None and run.stop is None]
    rows, broken, lost = [], 0, []
    for wid in found:
        run = _run(view, wid)
        assert run is not None
        protected = run.protected(state.now)
        broken += int(protected and now)
        lost.append(lost_gpu_ms(state, run))
        when = _once_asked(view, run) or _stops(view, run, now)
        then = f"stops {when}, loses {gpu_hours(lost[-1])} GPU-h, waits again"
        rows.append(_row(view, wid, "protected" if protected else "interruptible", then))
    plan = _workload_plan(
        view,
        "requeue",
        workloads,
        rows,
        lambda wid, by: RequeueRequested(wid, by, override=now),
        "no run that could be stopped",
        ("--now",) if now else (),
    )
    effect = (*broken_line(broken), *lost_line(lost))
    return replace(plan, effect=effect, guarantees_broken=broken, lost_gpu_ms=sum(lost))


def _stops(view: ClusterView, run: Run, now: bool) -> str:
    if now or not run.protected(view.state.now):
        return "now"
    until = run.protected_until()
    return "when it has started and run its minimum" if until is None else day_clock(view.wall(until), view.wall_ms)


def plan_cancel(view: ClusterView, workloads: Sequence[str]) -> Plan:
    state = view.state
    rows, lost = [], []
    found = [w for w in _known(view, workloads) if state.workloads[w].phase is not WorkloadPhase.ENDED]
    for wid in found:
        then, run = "ends for good", _run(view, wid)
        if run is not None:
            lost.append(lost_gpu_ms(state, run))
            then = f"stops {_once_asked(view, run) or 'now'} and ends; {gpu_hours(lost[-1])} GPU-h lost"
        rows.append(_row(view, wid, state.workloads[wid].phase.value, then))
    plan = _workload_plan(view, "cancel", workloads, rows, CancelRequested, "ended already")
    gone = with_workloads(state, dict.fromkeys(found))
    return replace(plan, effect=(*lost_line(lost), *queue_lines(view, gone)), lost_gpu_ms=sum(lost))


def plan_hold(view: ClusterView, workloads: Sequence[str], for_ms: int | None = None) -> Plan:
    """`for_ms`: for how long; None until somebody releases it."""
    until_at = None if for_ms is None else view.state.now + for_ms
    then = f"does not start until {'released' if for_ms is None else lifted(view, for_ms)[len(', until ') :]}"
    found = _in_phase(view, workloads, WorkloadPhase.WAITING)
    rows = [_row(view, w, "waiting", then) for w in found]
    plan = _workload_plan(
        view, "hold", workloads, rows, lambda w, by: HoldRequested(w, by, until_at), "not waiting", for_words(for_ms)
    )
    keeps = ("it keeps its place in the queue, and is passed over",) if found else ()
    return replace(plan, effect=keeps, undo=undone_by("release", found))


def plan_release(view: ClusterView, workloads: Sequence[str]) -> Plan:
    found = _in_phase(view, workloads, WorkloadPhase.HELD)
    rows = [_row(view, w, clean(f"held: {view.state.workloads[w].reason}", 60), "waits again") for w in found]
    plan = _workload_plan(view, "release", workloads, rows, ReleaseRequested, "not held")
    return replace(plan, effect=queue_lines(view, view.state, found), undo=undone_by("hold", found))


def plan_move(view: ClusterView, workloads: Sequence[str], to: str = "") -> Plan:
    """To another leaf, by its path. What has been used stays where it was charged (rule 2)."""
    state = view.state
    try:
        budget, missing = find_leaf(state, to), ""
    except ValueError as error:
        budget, missing = None, str(error)

    def moves(record: WorkloadRecord) -> str:
        return "" if record.workload.budget != budget else f"it is in {to} already"

    found, why = _changeable(view, workloads, moves)
    paths = {w: state.budgets.paths[state.workloads[w].workload.budget] for w in found}
    then = "" if budget is None else to
    rows = [_row(view, w, f"{state.workloads[w].phase.value} in {paths[w]}", _moved(view, w, then)) for w in found]
    plan = _workload_plan(view, "move", workloads, rows, lambda w, by: WorkloadMoved(w, by, budget), why, ("--to", to))
    if budget is None:
        return replace(plan, missing=missing, command="")
    after = {w: _record(view, w, budget=budget) for w in found}
    back = {*paths.values()}
    return replace(
        plan,
        facts=(*plan.facts, *((w, "budget", paths[w]) for w in found)),
        effect=queue_lines(view, with_workloads(state, after), found),
        undo=undone_by("move", found, "--to", back.pop()) if len(back) == 1 else "",
    )


def _moved(view: ClusterView, wid: WorkloadId, to: str) -> str:
    stays = "; its run stays charged where it is" if _run(view, wid) is not None else ""
    return f"in {clean(to, 60)}{stays}" if to else "?"


def plan_priority(view: ClusterView, workloads: Sequence[str], to: str = "") -> Plan:
    """Among the workloads of its leaf: higher goes first (rule 6)."""
    state = view.state
    number = _integer(to)
    missing = "" if number is not None else f"{said(to)}say a whole number; higher goes first within the budget"

    def changes(record: WorkloadRecord) -> str:
        return "" if record.workload.priority != number else f"its priority is {number} already"

    found, why = _changeable(view, workloads, changes)
    had = {w: state.workloads[w].workload.priority for w in found}
    then = "?" if number is None else f"priority {number}"
    rows = [_row(view, w, f"{state.workloads[w].phase.value}, priority {had[w]}", then) for w in found]
    plan = _workload_plan(
        view, "priority", workloads, rows, lambda w, by: WorkloadMoved(w, by, priority=number), why, ("--to", to)
    )
    if number is None:
        return replace(plan, missing=missing, command="")
    after = with_workloads(state, {w: _record(view, w, priority=number) for w in found})
    back = {*had.values()}
    return replace(
        plan,
        facts=(*plan.facts, *((w, "priority", had[w]) for w in found)),
        effect=queue_lines(view, after, found),
        undo=undone_by("priority", found, "--to", str(back.pop())) if len(back) == 1 else "",
    )


def _integer(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if abs(number) <= MOST_PRIORITY else None


def _changeable(
    view: ClusterView, workloads: Sequence[str], why_not: Callable[[WorkloadRecord], str]
) -> tuple[list[WorkloadId], Callable[[WorkloadRecord], str]]:
    """Those that have not ended and of which something would change; and why the others are refused."""

    def why(record: WorkloadRecord) -> str:
        return "ended already" if record.phase is WorkloadPhase.ENDED else why_not(record)

    return [w for w in _known(view, workloads) if not why(view.state.workloads[w])], why


def _record(view: ClusterView, wid: WorkloadId, **changed: object) -> WorkloadRecord:
    record = view.state.workloads[wid]
    return replace(record, workload=replace(record.workload, **changed))  # type: ignore[arg-type]


# -- what all of them need -----------------------------------------------------------------------------------------


def _workload_plan(
    view: ClusterView,
    action: str,
    asked: Sequence[str],
    rows: Sequence[Row],
    make: Callable[[WorkloadId, By], Observation],
    why_not: str | Callable[[WorkloadRecord], str],
    more: tuple[str, ...] = (),
) -> Plan:
    """One row for each workload that it is done to; the others are refused with `why_not`."""
    state, found = view.state, [WorkloadId(row.key) for row in rows]
    done = {*found}

    def why(wid: str) -> str:
        record = state.workloads.get(WorkloadId(wid))
        if record is None:
            return "no such workload"
        return why_not if isinstance(why_not, str) else why_not(record)

    return Plan(
        action,
        tuple(found),
        TableView(f"{action.capitalize()}: {count(len(found), 'workload')}", PLAIN_COLUMNS, tuple(rows), NOTHING),
        (),
        command_line(action, found, *more),
        tuple((w, state.workloads[w].phase, state.workloads[w].run) for w in found),
        lambda by: [make(w, by) for w in found],
        refused=refusals((w, why(w)) for w in asked if WorkloadId(w) not in done),
    )


def _known(view: ClusterView, workloads: Iterable[str]) -> list[WorkloadId]:
    return [WorkloadId(w) for w in workloads if WorkloadId(w) in view.state.workloads]


def _in_phase(view: ClusterView, workloads: Iterable[str], phase: WorkloadPhase) -> list[WorkloadId]:
    return [w for w in _known(view, workloads) if view.state.workloads[w].phase is phase]


def _run(view: ClusterView, wid: WorkloadId) -> Run | None:
    record = view.state.workloads[wid]
    return view.state.runs[record.run] if record.run is not None else None


def _row(view: ClusterView, wid: WorkloadId, now: str, then: str) -> Row:
    name = workload_label(wid, view.state.workloads[wid].workload.name)
    return Row(wid, (Cell(name), Cell(now), Cell(then)), {"workload": wid, "now": now, "then": then})


def _once_asked(view: ClusterView, run: Run) -> str:
    """When a run stops on hosts that cannot be asked now; nothing where all can."""
    away = unverified(view, run)
    return f"once {few(away)} can be asked (until then it counts as running)" if away else ""
