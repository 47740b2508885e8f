"""One drain as an operation: its steps, done and to come, and what becomes of each run with how long that takes."""

from __future__ import annotations

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.queue import run_label
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.sentences import by_text
from opsconsole.presenting.text import clean, count, day_clock, gpu_hours, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.decisions import StopCause
from scheduler_core.drain import drain_row, eta, mode_now, why_unknown
from scheduler_core.fleet import HostState
from scheduler_core.ids import DrainId
from scheduler_core.state import ClusterState, DrainRecord, HostRecord, Run

STEP_COLUMNS = (Column("", 1), Column("STEP", 18), Column("WHEN", 8, right=True), Column("WHAT", 24, grow=True))
RUN_COLUMNS = (
    Column("RUN", 14, by="name", most=30),
    Column("BUDGET", 10, from_width=110, by="budget", most=20),
    Column("RAN / MIN", 15, right=True, from_width=70, by="ran_s"),
    Column("STOPS IN", 8, right=True, by="stops_in_s"),
    Column("GONE BY", 7, right=True, by="released_ms"),
    Column("THEN", 16, grow=True),
)
DONE, NOW, NEXT, STUCK = Cell("✓", "good"), Cell("…", "accent"), Cell("·", "dim"), Cell("✖", "bad")
Step = tuple[Cell, str, str, Cell]


def drain_steps(view: ClusterView, key: str | None) -> TableView:
    """What has been done and what comes next. `key`: the drain's id."""
    drain = view.state.drains.get(DrainId(key or ""))
    if drain is None:
        return TableView("Steps", STEP_COLUMNS, (), "select a drain", counted=False)
    rows = tuple(
        Row(f"step:{drain.id}:{n}", (mark, Cell(step), Cell(when, "dim"), what))
        for n, (mark, step, when, what) in enumerate(_steps(view, drain))
    )
    return TableView(f"Steps of the drain of {clean(drain.host, 40)}", STEP_COLUMNS, rows, counted=False)


def _steps(view: ClusterView, drain: DrainRecord) -> list[Step]:
    def at(ms: int | None) -> str:
        return "" if ms is None else day_clock(view.wall(ms), view.wall_ms)

    asked: Step = (DONE, "asked for", at(drain.requested_at), Cell(f"{drain.mode}, by {clean(by_text(drain.by))}"))
    record = view.state.hosts.get(drain.host)
    if drain.ended:
        taken_back = drain.ended != "drained"
        how = {"drained": "the host itself said that nothing runs there"}.get(drain.ended, f"{drain.ended}: taken back")
        last: Step = (
            DONE,
            "ended" if taken_back else "known empty",
            at(drain.done_at),
            Cell(how, "" if taken_back else "good"),
        )
        back = [] if taken_back or record is None else [_back(view, drain, record)]
        return [asked, last, *back]
    if record is None:
        return [asked, (STUCK, "empty", "", Cell("the host left the inventory", "bad"))]
    runs = [view.state.runs[run] for run in record.runs]
    return [
        asked,
        (DONE, "nothing new starts", at(drain.requested_at), Cell("")),
        _protections(view, drain, runs),
        _stops(view.state, runs),
        _emptied(view, drain, record),
        (NEXT, "back to service", "", Cell("undrain, once it is repaired: U", "dim")),
    ]


def _back(view: ClusterView, drain: DrainRecord, record: HostRecord) -> Step:
    again = [
        d.requested_at
        for d in view.state.drains.values()
        if d.host == drain.host and d.requested_at > drain.requested_at
    ]
    if again:
        at = day_clock(view.wall(min(again)), view.wall_ms)
        return DONE, "back to service", "", Cell(f"it served again, until the drain of {at}")
    if record.state is HostState.SERVING:
        return DONE, "back to service", "", Cell("it serves again")
    word = record.state.value.replace("_", " ")
    return NOW, "back to service", "", Cell(f"{word}: undrain returns it to service: U", "accent")


def _protections(view: ClusterView, drain: DrainRecord, runs: list[Run]) -> Step:
    """By the contract a run is stopped only past its min runtime."""
    state = view.state
    mode = mode_now(state, drain.mode, drain.deadline_at)
    guarded = [run for run in runs if run.protected(state.now) and run.stop is None]
    if mode == "now":
        return DONE, "min runtimes pass", "", Cell("not waited for: mode now", "warn")
    if mode == "finish":
        until = "" if drain.deadline_at is None else f", until {day_clock(view.wall(drain.deadline_at), view.wall_ms)}"
        word = Cell(f"{count(len(runs), 'run')} may go on to their own end{until}")
        return (NOW if runs else DONE), "runs may end", "", word
    if not guarded:
        return DONE, "min runtimes pass", "", Cell("no run there is protected")
    ends = [end for run in guarded if (end := run.protected_until()) is not None]
    last = day_clock(view.wall(max(ends)), view.wall_ms) if len(ends) == len(guarded) else ""
    first = f", the first in {span(min(ends) - state.now)}" if ends else ""
    return (
        NOW,
        "min runtimes pass",
        last,
        Cell(f"{len(guarded)} of {count(len(runs), 'run')} protected{first}", "accent"),
    )


def _stops(state: ClusterState, runs: list[Run]) -> Step:
    stopping = sum(1 for run in runs if run.stop is not None)
    if not runs:
        return DONE, "runs are stopped", "", Cell("none is left")
    if not stopping:
        return NEXT, "runs are stopped", "", Cell(f"{count(len(runs), 'run')} left", "dim")
    return (
        NOW,
        "runs are stopped",
        "",
        Cell(f"{stopping} of {count(len(runs), 'run')} stopping: checkpoint, then the end"),
    )


def _emptied(view: ClusterView, drain: DrainRecord, record: HostRecord) -> Step:
    empty_at = eta(view.state, drain)
    if empty_at is None:
        return STUCK, "known empty", "unknown", Cell(clean(f"BLOCKED: {why_unknown(view.state, drain)}"), "bad")
    left = span(max(0, empty_at - view.state.now))
    said = Cell(f"in {left} at the latest: then the host itself must say so")
    return (NOW if not record.runs else NEXT), "known empty", day_clock(view.wall(empty_at), view.wall_ms), said


def drain_runs(view: ClusterView, key: str | None) -> TableView:
    """The runs that are left there with a countdown each; of an ended drain, those that it stopped."""
    drain = view.state.drains.get(DrainId(key or ""))
    if drain is None:
        return TableView("Runs", RUN_COLUMNS, (), "select a drain", counted=False)
    if drain.ended:
        rows = _stopped(view, drain)
        return TableView(
            f"Runs that the drain of {clean(drain.host, 40)} stopped", RUN_COLUMNS, rows, "it stopped none"
        )
    record = view.state.hosts.get(drain.host)
    runs = [view.state.runs[run] for run in record.runs] if record is not None else []
    rows = tuple(_left(view, drain, record, run) for run in runs if record is not None)
    return TableView(f"Runs left on {clean(drain.host, 40)}", RUN_COLUMNS, rows, "none is left, by what is known")


def _left(view: ClusterView, drain: DrainRecord, record: HostRecord, run: Run) -> Row:
    state, w = view.state, view.state.workloads[run.workload].workload
    row = drain_row(state, record, run, drain.mode, drain.deadline_at)
    ran = "?" if record.reach in AWAY else span(row.ran_ms)
    stops_in = None if row.stops_at is None else max(0, row.stops_at - state.now)
    if row.blocked:
        then = Cell(
            f"BLOCKED: {row.blocked}" if record.reach in AWAY else row.blocked, "bad" if record.reach in AWAY else ""
        )
    else:
        then = Cell(f"{row.then}; {gpu_hours(row.lost_gpu_ms)} GPU-h lost if now")
    stopping = run.stop is not None
    cells = (
        Cell(run_label(w, run.id)),
        Cell(clean(state.budgets.paths[run.budget], 60)),
        Cell(f"{ran} / {span(run.min_runtime_ms)}", "unknown" if ran == "?" else ""),
        Cell("stopping", "warn")
        if stopping
        else Cell("?", "unknown")
        if stops_in is None
        else Cell(span(stops_in), "accent"),
        Cell("?", "unknown") if row.released_at is None else Cell(day_clock(view.wall(row.released_at), view.wall_ms)),
        then,
    )
    data = {
        "run": run.id,
        "workload": w.id,
        "name": w.name,
        "budget": state.budgets.paths[run.budget],
        "ran_s": None if row.ran_ms is None else row.ran_ms / 1000,
        "stops_in_s": None if stops_in is None else stops_in / 1000,
        "released_ms": None if row.released_at is None else view.wall(row.released_at),
    }
    return Row(run.id, cells, data)


def _stopped(view: ClusterView, drain: DrainRecord) -> tuple[Row, ...]:
    """By the history of their workloads, as long as those are known."""
    found = []
    done_at = view.state.now if drain.done_at is None else drain.done_at
    for record in view.state.workloads.values():
        w = record.workload
        for attempt in record.attempts:
            stop = attempt.stop
            there = any(member.host == drain.host for member in attempt.members)
            if stop is None or stop.cause is not StopCause.DRAIN or not there:
                continue
            if attempt.ended_at < drain.requested_at or attempt.placed_at > done_at:
                continue  # a gang may end on its other hosts after this one was empty
            ran = None if attempt.started_at is None else attempt.ended_at - attempt.started_at
            cells = (
                Cell(run_label(w, attempt.run), "dim"),
                Cell(clean(view.state.budgets.paths.get(w.budget, w.budget), 60), "dim"),
                Cell(f"{span(ran)} / {span(w.min_runtime_ms)}", "dim"),
                Cell("stopped", "dim"),
                Cell(day_clock(view.wall(attempt.ended_at), view.wall_ms), "dim"),
                Cell(f"{attempt.outcome}; {gpu_hours(stop.lost_gpu_ms)} GPU-h lost", "dim"),
            )
            data = {"run": attempt.run, "workload": w.id, "name": w.name, "ended_ms": view.wall(attempt.ended_at)}
            found.append(Row(attempt.run, cells, data))
    return tuple(sorted(found, key=lambda row: -row.data["ended_ms"]))
