"""Sorting rows by a column. Unknown sorts worse than warning, and ties keep the order that they had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opsconsole.presenting.rows import Column, Row, TableView

SEVERITY = {"bad": 0, "unknown": 1, "warn": 2, "accent": 3, "": 4, "good": 4, "dim": 5}


def find_column(table: TableView, title: str) -> int | None:
    """Place of the column with that title, in any case; a beginning is enough where only one column has it."""
    wanted = title.strip().upper()
    exact = [n for n, column in enumerate(table.columns) if column.title == wanted]
    begun = [n for n, column in enumerate(table.columns) if wanted and column.title.startswith(wanted)]
    found = exact or begun
    return found[0] if len(found) == 1 else None


def sorted_rows(table: TableView, title: str, reverse: bool = False) -> Sequence[Row]:
    """Worst or smallest first; what is not known comes first among values, last among numbers only when reversed."""
    at = find_column(table, title)
    if at is None:
        return table.rows
    column = table.columns[at]
    return tuple(sorted(table.rows, key=lambda row: _key(column, at, row), reverse=reverse))


def _key(column: Column, at: int, row: Row) -> tuple[Any, ...]:
    cell = row.cells[at]
    if not column.by:
        return (SEVERITY.get(cell.token, 4), cell.text.casefold())
    value = row.data.get(column.by)
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, bool | int | float):
        return (1, float(value), "")
    return (2, 0.0, str(value).casefold())
