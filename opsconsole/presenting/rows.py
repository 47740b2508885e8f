"""Rows for tables: keyed, with cells that carry a style token. Columns say how wide they are and when they may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


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


@dataclass(frozen=True, slots=True)
class TableView:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str = "nothing here"
