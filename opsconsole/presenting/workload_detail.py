"""One workload: its contract as a bar with words, why it waits, and every run with how it ended."""

from __future__ import annotations

from opsconsole.presenting.drains import drain_of
from opsconsole.presenting.facts import Line, fact_lines
from opsconsole.presenting.presence import looking_words
from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.runs import unverified
from opsconsole.presenting.text import bar, clean, count, day_clock, gpu_hours, ordinal, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import drain_row
from scheduler_core.explain import Explainer
from scheduler_core.ids import RunId, WorkloadId
from scheduler_core.queueing import queue_order
from scheduler_core.state import Attempt, Run, WorkloadRecord
from scheduler_core.units import GPU_HOUR
from scheduler_core.workload import WorkloadPhase

RUN_COLUMNS = (
    Column("RUN", 8, by="run", most=24),
    Column("HOSTS", 11, most=30),
    Column("STARTED", 9, right=True, by="started_ms"),
    Column("RAN", 7, right=True, by="ran_s"),
    Column("LOST", 9, right=True, from_width=90, by="lost_gpu_h"),
    Column("HOW IT ENDED", 24, grow=True),
)
BAR = 24
NONE_YET = "it has not run yet"


def workload_head(view: ClusterView, wid: str, width: int) -> list[Line]:
    """What stands above the tables; a workload that nobody knows is said."""
    record = view.state.workloads.get(WorkloadId(wid))
    if record is None:
        gone = "no workload is called so now: what ended long ago is forgotten, the timeline (7) may tell"
        return fact_lines([("WORKLOAD", [Cell(wid), Cell(": "), Cell(gone, "bad")])], width)
    run = view.state.runs.get(record.run) if record.run is not None else None
    return fact_lines(
        [
            ("WORKLOAD", [Cell(workload_label(record.workload.id, record.workload.name)), Cell(_of(view, record))]),
            ("PHASE", _phase(view, record, run)),
            ("CONTRACT", _contract(view, record, run)),
            ("DRAIN", [Cell(_drained(view, run), "warn")]),
            ("OTHERS", [Cell("; ".join(looking_words(view, [record.workload.id])), "warn")]),
        ],
        width,
    )


def _of(view: ClusterView, record: WorkloadRecord) -> str:
    w = record.workload
    back = (
        "goes on from its checkpoint when stopped"
        if w.resumable
        else "starts anew"
        if w.comes_back
        else "ends when stopped"
    )
    limit = "" if w.time_limit_ms is None else f", at most {span(w.time_limit_ms)}"
    priority = f", priority {w.priority}" if w.priority else ""
    path = view.state.budgets.paths[w.budget]
    return f" of {w.owner or 'nobody'}, {path}: {count(w.gpus, 'GPU')}{priority}, {back}{limit}"


def _phase(view: ClusterView, record: WorkloadRecord, run: Run | None) -> list[Cell]:
    if record.phase in (WorkloadPhase.WAITING, WorkloadPhase.HELD):
        return _waits(view, record)
    if run is None:
        ended = "" if record.ended_at is None else f" at {day_clock(view.wall(record.ended_at), view.wall_ms)}"
        return [Cell(f"{record.outcome.value if record.outcome else 'ended, nobody knows how'}{ended}", "dim")]
    if away := unverified(view, run):
        return [Cell(f"? unverified: {', '.join(away)} cannot be asked; it is not started twice", "unknown")]
    if run.stop is not None:
        return [Cell(f"stopping ({run.stop.cause.value}): {run.stop.reason}", "warn")]
    if run.started_at is None:
        return [Cell(f"starting on {_places(run)}", "accent")]
    return [
        Cell("running", "good"),
        Cell(f" on {_places(run)} since {day_clock(view.wall(run.started_at), view.wall_ms)}"),
    ]


def _places(run: Run) -> str:
    return " ".join(f"{name}:{m.slots.bit_count()}" for name, m in run.members.items())


def _waits(view: ClusterView, record: WorkloadRecord) -> list[Cell]:
    hold = Explainer(view.state).hold(record)
    until = "" if hold.until is None else f", until {day_clock(view.wall(hold.until), view.wall_ms)}"
    place = queue_order(view.state).index(record.workload.id) + 1
    waited = span(view.state.now - record.workload.submitted_at)
    held = record.phase is WorkloadPhase.HELD
    word = Cell("held", "warn") if held else Cell(f"waiting, {ordinal(place)} in the queue", "accent")
    return [word, Cell(f", submitted {waited} ago: {hold.text}{until}")]


def _contract(view: ClusterView, record: WorkloadRecord, run: Run | None) -> list[Cell]:
    """How much of the min runtime the run has had, as a bar and in words."""
    w, now = record.workload, view.state.now
    if not w.allocated:
        return [Cell("unallocated: free of charge, never protected", "dim")]
    whole = span(w.min_runtime_ms)
    if run is None:
        return [
            Cell(
                f"min runtime {whole}, counted from the start of a run"
                if record.outcome is None
                else f"min runtime {whole}"
            )
        ]
    if run.started_at is None:
        return [Cell(f"[{bar(0, BAR)}] 0s of {whole}: counts from the start of its last member")]
    ran, until = now - run.started_at, view.wall(run.started_at + run.min_runtime_ms)
    if unverified(view, run):
        return [Cell(f"? of {whole}: whether it still runs nobody knows", "unknown")]
    drawn = f"[{bar(ran / run.min_runtime_ms, BAR)}] {span(ran)} of {span(run.min_runtime_ms)}"
    if run.protected(now):
        left = span(run.started_at + run.min_runtime_ms - now)
        return [Cell(drawn, "good"), Cell(f", protected for {left}, until {day_clock(until, view.wall_ms)}")]
    return [Cell(drawn), Cell(f", interruptible since {day_clock(until, view.wall_ms)}", "warn")]


def _drained(view: ClusterView, run: Run | None) -> str:
    """When the drain of one of its hosts stops it, or why nobody knows."""
    found = []
    for name in run.members if run is not None and run.stop is None else ():
        record = view.state.hosts[name]
        drain = drain_of(view.state, record)
        if run is not None and drain is not None:
            row = drain_row(view.state, record, run, drain.mode, drain.deadline_at)
            at = (
                f"stops it at {day_clock(view.wall(row.stops_at), view.wall_ms)} ({row.then})"
                if row.stops_at
                else row.blocked
            )
            found.append(f"{name}: {at}")
    return "; ".join(found)


def written(view: ClusterView, wid: str, run: str | None = None) -> tuple[str, str] | None:
    """A run whose output can be read, with the host of its first member: the one that is asked for, else the newest;
    None where none has been.
    """
    record = view.state.workloads.get(WorkloadId(wid))
    if record is None:
        return None
    found = {attempt.run: attempt.members[0].host for attempt in record.attempts}
    if record.run is not None:
        found[record.run] = next(iter(view.state.runs[record.run].members))
    wanted = RunId(run or "")
    newest = next(reversed(found), None)
    return None if newest is None else (wanted, found[wanted]) if wanted in found else (newest, found[newest])


def attempts_table(view: ClusterView, wid: str) -> TableView:
    """The newest first."""
    record = view.state.workloads.get(WorkloadId(wid))
    if record is None:
        return TableView("Runs", RUN_COLUMNS, (), "this workload is not known")
    rows = [_attempt_row(view, record, attempt) for attempt in reversed(record.attempts)]
    if record.run is not None:
        rows.insert(0, _live_row(view, view.state.runs[record.run]))
    return TableView("Runs, newest first", RUN_COLUMNS, tuple(rows), NONE_YET)


def _live_row(view: ClusterView, run: Run) -> Row:
    away = unverified(view, run)
    ran = None if run.started_at is None or away else view.state.now - run.started_at
    started = None if run.started_at is None else view.wall(run.started_at)
    if away:
        word = Cell("? unverified: a host of it cannot be asked", "unknown")
    elif run.stop is not None:
        word = Cell(f"stopping ({run.stop.cause.value}): {clean(run.stop.reason)}", "warn")
    else:
        word = Cell("runs" if run.started_at is not None else "starting", "good")
    return _row(view, run.id, _places(run), started, ran, None, word)


def _attempt_row(view: ClusterView, record: WorkloadRecord, attempt: Attempt) -> Row:
    places = " ".join(f"{m.host}:{m.gpus}" for m in attempt.members)
    started = None if attempt.started_at is None else view.wall(attempt.started_at)
    ran = None if attempt.started_at is None else attempt.ended_at - attempt.started_at
    how = f"exit status {attempt.exit_code}" if attempt.exit_code is not None else attempt.signal or "exit unknown"
    said = [how, attempt.why]
    if attempt.stop is not None:
        by = f" by {attempt.stop.actor}" if attempt.stop.actor else ""
        said.append(f"stopped{by} ({attempt.stop.cause.value}): {attempt.stop.reason}")
    ended = day_clock(view.wall(attempt.ended_at), view.wall_ms)
    text = f"{attempt.outcome} {ended}: {'; '.join(filter(None, said))}"
    lost = None if attempt.stop is None else attempt.stop.lost_gpu_ms
    return _row(view, attempt.run, places, started, ran, lost, Cell(clean(text), _token(attempt)))


def _token(attempt: Attempt) -> str:
    return "bad" if attempt.outcome in ("failed", "lost", "unknown") else "dim"


def _row(
    view: ClusterView, run: RunId, places: str, started: int | None, ran: int | None, lost: int | None, word: Cell
) -> Row:
    cells = (
        Cell(clean(run, 60)),
        Cell(clean(places)),
        Cell("–" if started is None else day_clock(started, view.wall_ms)),
        Cell(span(ran) if ran is not None else "?" if word.token == "unknown" else "–"),
        Cell("–" if lost is None else f"{gpu_hours(lost)} GPU-h", "dim"),
        word,
    )
    data = {
        "run": run,
        "started_ms": started,
        "ran_s": None if ran is None else ran / 1000,
        "lost_gpu_h": None if lost is None else lost / GPU_HOUR,
        "how": word.text,
    }
    return Row(run, cells, data)
