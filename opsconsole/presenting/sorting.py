"""Sorting rows by columns. Unknown sorts worse than warning, and ties keep the order that they had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opsconsole.presenting.rows import Column, TableView, find_column

SEVERITY = {"bad": 0, "unknown": 1, "warn": 2, "accent": 3, "": 4, "good": 4, "dim": 5}
DOWN = "-"  # before a key: the other way round


def sorted_places(view: TableView, places: Sequence[int], order: Sequence[str]) -> Sequence[int]:
    """`order`: keys of columns, the first one first. Worst or smallest first; what is not known comes before that.

    Keys that no column has are passed over: a table may have fewer columns than when the order was chosen.
    """
    found = [(find_column(view.columns, key.removeprefix(DOWN)), key.startswith(DOWN)) for key in order]
    for at, reverse in reversed(found):
        if at is not None:
            places = sorted(places, key=_key(view, at), reverse=reverse)
    return places


def stepped(order: Sequence[str], key: str) -> tuple[str, ...]:
    """The order with that column last in it; if it is in it already, the other way round; then without it."""
    if key in order:
        return tuple(DOWN + k if k == key else k for k in order)
    return tuple(k for k in order if k != DOWN + key) if DOWN + key in order else (*order, key)


def read_order(words: str, columns: Sequence[Column]) -> tuple[str, ...]:
    """`-waited budget`: names of columns, or their beginnings, as keys. Raises ValueError with those that there are."""
    order = []
    for word in words.replace(",", " ").split():
        at = find_column(columns, word.removeprefix(DOWN))
        if at is None:
            known = " ".join(column.key for column in columns if column.key)
            raise ValueError(f"no column is called {word.removeprefix(DOWN)!r}: {known}")
        order.append((DOWN if word.startswith(DOWN) else "") + columns[at].key)
    return tuple(dict.fromkeys(order))


def _key(view: TableView, at: int) -> Callable[[int], Any]:
    column, rows, read = view.columns[at], view.rows, view.reader(at)
    if not column.by:
        return lambda n: (SEVERITY.get(rows[n].cells[at].token, 4), rows[n].cells[at].text.casefold())
    if column.order:
        rank = {value: place for place, value in enumerate(column.order)}
        return lambda n: rank.get(_first(read(n)), -1)
    return lambda n: _rank(read(n))


def _rank(value: Any) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, bool | int | float):
        return (1, float(value), "")
    return (2, 0.0, str(value).casefold())


def _first(value: Any) -> Any:
    """Of a column that shows several."""
    return value[0] if isinstance(value, tuple) else value
