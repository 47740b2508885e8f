"""One timeline of hardware, scheduler and people."""

from __future__ import annotations

from collections.abc import Iterable

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.sentences import sentence, source_of, subject_of
from opsconsole.presenting.text import clock
from opsconsole.presenting.view import ClusterView, Happening

COLUMNS = (Column("TIME", 8), Column("SOURCE", 9), Column("WHAT", 40, grow=True))
TOKENS = {"hardware": "warn", "person": "accent", "scheduler": "", "run": "dim"}
SHOWN = 2000


def happening_row(happening: Happening) -> Row:
    source = source_of(happening.event)
    text = sentence(happening.event)
    cells = (Cell(clock(happening.wall_ms), "dim"), Cell(source, TOKENS[source]), Cell(text))
    data = {
        "seq": happening.seq,
        "wall_ms": happening.wall_ms,
        "kind": happening.kind,
        "source": source,
        "about": subject_of(happening.event),
        "what": text,
    }
    return Row(str(happening.seq), cells, data)


def timeline_rows(happenings: Iterable[Happening]) -> tuple[Row, ...]:
    return tuple(happening_row(h) for h in happenings)


def timeline_table(view: ClusterView) -> TableView:
    """Newest first."""
    rows = timeline_rows(reversed(view.happenings[-SHOWN:]))
    return TableView("Timeline, newest first", COLUMNS, rows, "nothing has happened yet")
