"""Rows for tables: keyed, with cells that carry a style token. Columns say how wide they are and when they may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload


class Column(NamedTuple):
    """`from_width`: shown only in tables at least so wide. `grow`: takes what width is left.

    `most`: it becomes so wide, before a growing column gets the rest. `by` names the key of a row's data that sorts
    the column; without one its cells' words do.
    """

    title: str
    width: int
    right: bool = False
    from_width: int = 0
    grow: bool = False
    by: str = ""
    most: int = 0


class Cell(NamedTuple):
    """`token` is a name of the theme: good, warn, bad, unknown, dim, accent, or plain."""

    text: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """`data` is the same for scripts: the keys of --json, and what filters and sorting look at besides the cells."""

    key: str
    cells: tuple[Cell, ...]
    data: dict[str, Any] = field(default_factory=dict)


class LazyRows(Sequence[Row]):
    """Rows that are made when they are looked at, each once: of thousands, a screen shows a few dozen."""

    def __init__(self, keys: Sequence[str], make: Callable[[int], Row]) -> None:
        self.keys, self._make = keys, make
        self._made: dict[int, Row] = {}

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(at, slice):
            return tuple(self[n] for n in range(*at.indices(len(self))))
        place = range(len(self.keys))[at]
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]


def keys_of(rows: Sequence[Row]) -> Sequence[str]:
    """Without making any row."""
    return rows.keys if isinstance(rows, LazyRows) else [row.key for row in rows]


@dataclass(frozen=True, slots=True)
class TableView:
    """`counted`: the title says how many rows there are."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    empty: str = "nothing here"
    counted: bool = True
