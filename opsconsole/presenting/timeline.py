"""One timeline of hardware, scheduler and people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opsconsole.presenting.rows import Cell, Column, LazyRows, Row, TableView
from opsconsole.presenting.sentences import sentence, source_of, subject_of
from opsconsole.presenting.text import clean, clock, day_seconds
from opsconsole.presenting.view import ClusterView, Happening

COLUMNS = (
    Column("TIME", 8, most=12, by="wall_ms"),
    Column("SOURCE", 9, by="source"),
    Column("WHAT", 40, grow=True, by="what"),
    Column("ABOUT", 14, by="about", most=30, extra=True),
    Column("KIND", 20, by="kind", extra=True),
)
TOKENS = {"hardware": "warn", "person": "accent", "scheduler": "", "run": "dim"}


def happening_row(happening: Happening, now_ms: int | None = None) -> Row:
    """`now_ms`, wall time: what is of another day says so."""
    return Row(str(happening.seq), _cells(happening, now_ms), {name: read(happening) for name, read in VALUES.items()})


VALUES: dict[str, Callable[[Happening], Any]] = {
    "seq": lambda happening: happening.seq,
    "wall_ms": lambda happening: happening.wall_ms,
    "kind": lambda happening: happening.kind,
    "source": lambda happening: source_of(happening.event),
    "about": lambda happening: subject_of(happening.event),
    "what": lambda happening: sentence(happening.event),
}


def _cells(happening: Happening, now_ms: int | None) -> tuple[Cell, ...]:
    source = source_of(happening.event)
    at = clock(happening.wall_ms) if now_ms is None else day_seconds(happening.wall_ms, now_ms)
    what, about = sentence(happening.event), clean(subject_of(happening.event), 60)
    return Cell(at, "dim"), Cell(source, TOKENS[source]), Cell(what), Cell(about), Cell(happening.kind, "dim")


def timeline_table(view: ClusterView) -> TableView:
    """Newest first."""
    told = view.happenings
    keys = [str(told[at].seq) for at in range(len(told) - 1, -1, -1)]
    rows = LazyRows(keys, lambda at: told[len(told) - 1 - at], lambda h: _cells(h, view.wall_ms), VALUES)
    return TableView("Timeline, newest first", COLUMNS, rows, "nothing has happened in the last day")
