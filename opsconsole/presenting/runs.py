"""Runs: what holds GPUs now, and what has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.queue import run_label
from opsconsole.presenting.rows import Cell, Column, LazyRows, Row, TableView
from opsconsole.presenting.text import bar, clean, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.state import Run
from scheduler_core.workload import Workload

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


@dataclass
class RunLook:
    """What a row is about."""

    view: ClusterView
    run: Run

    @property
    def workload(self) -> Workload:
        return self.view.state.workloads[self.run.workload].workload

    @property
    def ran_ms(self) -> int | None:
        return None if self.run.started_at is None else self.view.state.now - self.run.started_at

    @property
    def budget(self) -> str:
        return self.view.state.budgets.paths[self.run.budget]

    @cached_property
    def hosts(self) -> dict[str, int]:
        """GPUs, by the hosts of members that are not gone."""
        return {name: m.slots.bit_count() for name, m in self.run.members.items() if not m.phase.gone}

    @cached_property
    def away(self) -> list[str]:
        return unverified(self.view, self.run)


VALUES: dict[str, Callable[[RunLook], Any]] = {
    "run": lambda r: r.run.id,
    "workload": lambda r: r.workload.id,
    "name": lambda r: r.workload.name,
    "budget": lambda r: r.budget,
    "owner": lambda r: r.workload.owner,
    "gpus": lambda r: r.run.gpus,
    "hosts": lambda r: r.hosts,
    "ran_s": lambda r: None if r.ran_ms is None else r.ran_ms / 1000,
    "min_runtime_s": lambda r: r.run.min_runtime_ms / 1000,
    "protected": lambda r: r.run.protected(r.view.state.now),
    "stopping": lambda r: r.run.stop.cause.value if r.run.stop else None,
    "unverified": lambda r: r.away,
    "outcome": lambda r: None,
}


def runs_table(view: ClusterView, finished: bool = False) -> TableView:
    runs = sorted(view.state.runs.values(), key=lambda r: (r.placed_at, r.id))
    rows: Sequence[Row] = LazyRows([run.id for run in runs], lambda at: RunLook(view, runs[at]), _cells, VALUES)
    if finished:
        rows = (*rows, *_finished(view))
    unknown = sum(1 for run in runs if unverified(view, run))
    return TableView(f"Running, {unknown} unverified" if unknown else "Running", COLUMNS, rows, "nothing runs")


def _cells(r: RunLook) -> tuple[Cell, ...]:
    w, run = r.workload, r.run
    return (
        Cell(run_label(w, run.id)),
        Cell(clean(r.budget, 60)),
        Cell(clean(w.owner, 30)),
        Cell(str(run.gpus)),
        Cell(" ".join(f"{name}:{gpus}" for name, gpus in r.hosts.items())),
        Cell(f"{'?' if r.away else span(r.ran_ms)} / {span(run.min_runtime_ms)}", "unknown" if r.away else ""),
        contract_word(r.view, run),
    )


def _finished(view: ClusterView) -> list[Row]:
    """The newest first."""
    found = []
    ended = [(record.workload, attempt) for record in view.state.workloads.values() for attempt in record.attempts]
    for w, attempt in sorted(ended, key=lambda pair: -pair[1].ended_at):
        ran = None if attempt.started_at is None else attempt.ended_at - attempt.started_at
        hosts = {m.host: m.gpus for m in attempt.members}
        why = clean(attempt.stop.reason if attempt.stop else attempt.why)
        cells = (
            Cell(run_label(w, attempt.run), "dim"),
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
