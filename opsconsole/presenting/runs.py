"""Runs: what holds GPUs now, and what has."""

from __future__ import annotations

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import bar, clean, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.state import Run

COLUMNS = (
    Column("RUN", 14, by="name workload run", most=30),
    Column("BUDGET", 12, by="budget", most=24),
    Column("OWNER", 8, from_width=90, by="owner", most=12),
    Column("GPUS", 4, right=True, by="gpus"),
    Column("HOSTS", 11, grow=True, by="hosts"),
    Column("RAN / MIN", 15, right=True, by="ran_s"),
    Column("CONTRACT", 20),
)


def unverified(view: ClusterView, run: Run) -> list[str]:
    """Its hosts that cannot be asked: whether it still runs there nobody knows."""
    return [name for name in run.members if view.state.hosts[name].reach in AWAY]


def contract_word(view: ClusterView, run: Run) -> Cell:
    """Where the run stands with its min runtime."""
    now = view.state.now
    if away := unverified(view, run):
        return Cell(f"? unverified: {', '.join(away)}", "unknown")
    if run.stop is not None:
        return Cell(f"stopping: {run.stop.cause.value}", "warn")
    if run.started_at is None:
        return Cell("starting", "accent")
    if not run.allocated:
        return Cell("unallocated", "dim")
    if run.protected(now):
        left = run.started_at + run.min_runtime_ms - now
        done = (now - run.started_at) / run.min_runtime_ms
        return Cell(f"{bar(done)} {span(left)} left", "good")
    return Cell("interruptible", "")


def runs_table(view: ClusterView, finished: bool = False) -> TableView:
    runs = sorted(view.state.runs.values(), key=lambda r: (r.placed_at, r.id))
    rows = [_row(view, run) for run in runs]
    unknown = sum(1 for run in runs if unverified(view, run))
    if finished:
        rows += _finished(view)
    return TableView(f"Running, {unknown} unverified" if unknown else "Running", COLUMNS, tuple(rows), "nothing runs")


def _row(view: ClusterView, run: Run) -> Row:
    state = view.state
    w = state.workloads[run.workload].workload
    ran = None if run.started_at is None else state.now - run.started_at
    hosts = {name: m.slots.bit_count() for name, m in run.members.items() if not m.phase.gone}
    away = unverified(view, run)
    cells = (
        Cell(workload_label(w.id, w.name) + run.id[len(w.id) :]),
        Cell(clean(state.budgets.paths[run.budget], 60)),
        Cell(clean(w.owner, 30)),
        Cell(str(run.gpus)),
        Cell(" ".join(f"{name}:{gpus}" for name, gpus in hosts.items())),
        Cell(f"{'?' if away else span(ran)} / {span(run.min_runtime_ms)}", "unknown" if away else ""),
        contract_word(view, run),
    )
    data = {
        "run": run.id,
        "workload": w.id,
        "name": w.name,
        "budget": state.budgets.paths[run.budget],
        "owner": w.owner,
        "gpus": run.gpus,
        "hosts": hosts,
        "ran_s": None if ran is None else ran / 1000,
        "min_runtime_s": run.min_runtime_ms / 1000,
        "protected": run.protected(state.now),
        "stopping": run.stop.cause.value if run.stop else None,
        "unverified": away,
        "outcome": None,
    }
    return Row(run.id, cells, data)


def _finished(view: ClusterView) -> list[Row]:
    """The newest first."""
    found = []
    ended = [(record.workload, attempt) for record in view.state.workloads.values() for attempt in record.attempts]
    for w, attempt in sorted(ended, key=lambda pair: -pair[1].ended_at):
        ran = None if attempt.started_at is None else attempt.ended_at - attempt.started_at
        hosts = {m.host: m.gpus for m in attempt.members}
        why = clean(attempt.stop.reason if attempt.stop else attempt.why)
        cells = (
            Cell(workload_label(w.id, w.name) + attempt.run[len(w.id) :], "dim"),
            Cell(clean(view.state.budgets.paths.get(w.budget, w.budget), 60), "dim"),
            Cell(clean(w.owner, 30), "dim"),
            Cell(str(w.gpus), "dim"),
            Cell(" ".join(f"{name}:{gpus}" for name, gpus in hosts.items()), "dim"),
            Cell(f"{span(ran)} / {span(w.min_runtime_ms)}", "dim"),
            Cell(f"{attempt.outcome}: {why}" if why else attempt.outcome, "dim"),
        )
        data = {
            "run": attempt.run,
            "workload": w.id,
            "name": w.name,
            "budget": view.state.budgets.paths.get(w.budget, w.budget),
            "owner": w.owner,
            "gpus": w.gpus,
            "hosts": hosts,
            "ran_s": None if ran is None else ran / 1000,
            "min_runtime_s": w.min_runtime_ms / 1000,
            "protected": False,
            "stopping": None,
            "unverified": [],
            "outcome": attempt.outcome,
            "exit_code": attempt.exit_code,
            "signal": attempt.signal,
            "why": why,
        }
        found.append(Row(attempt.run, cells, data))
    return found
