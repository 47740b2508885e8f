"""Rows for tables: keyed, with cells that carry a style token. Columns say how wide they are and when they may go."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, overload

Subject = TypeVar("Subject")


class Column(NamedTuple):
    """The one place where a column is described: how it looks, sorts and is asked for.

    `from_width`: shown only in tables at least so wide. `extra`: shown only where it is chosen. `grow`: takes what
    width is left. `most`: it becomes so wide, before a growing column gets the rest. `by` names the key of a row's data
    that sorts and filters the column, and its ending the unit; several where it shows several; without one its cells'
    words do. `order`: what it can say, the worst first, where letters would not sort it.
    """

    title: str
    width: int
    right: bool = False
    from_width: int = 0
    grow: bool = False
    by: str = ""
    most: int = 0
    extra: bool = False
    order: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What people type for it: `p90_wait`."""
        return re.sub(r"[^a-z0-9]+", "_", self.title.lower()).strip("_")


class Cell(NamedTuple):
    """`token` is a name of the theme: good, warn, bad, unknown, dim, accent, or plain."""

    text: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """`data` is the same for scripts: the keys of --json, and what sorts and filters columns that name one of them."""

    key: str
    cells: tuple[Cell, ...]
    data: dict[str, Any] = field(default_factory=dict)


class Rows(Sequence[Row]):
    """Rows that are not made before they are looked at: of thousands, a screen shows a few dozen."""

    keys: Sequence[str]

    @abstractmethod
    def row(self, at: int) -> Row:
        """The one at a place that there is."""

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        places = range(len(self.keys))[at]
        return self.row(places) if isinstance(places, int) else tuple(map(self.row, places))


class LazyRows(Rows, Generic[Subject]):
    """`subject` makes what the row at a place is about, `cells` and `values` what is shown and known of it.

    Each value can be read for all rows without making any of them.
    """

    def __init__(
        self,
        keys: Sequence[str],
        subject: Callable[[int], Subject],
        cells: Callable[[Subject], tuple[Cell, ...]],
        values: Mapping[str, Callable[[Subject], Any]],
    ) -> None:
        self.keys, self._cells, self._values = keys, cells, values
        self._make = subject
        self._subjects: list[Subject | None] = [None] * len(keys)
        self._rows: dict[int, Row] = {}

    def row(self, at: int) -> Row:
        if at not in self._rows:
            subject = self._subject(at)
            data = {name: read(subject) for name, read in self._values.items()}
            self._rows[at] = Row(self.keys[at], self._cells(subject), data)
        return self._rows[at]

    def reader(self, name: str) -> Callable[[int], Any]:
        """The value that each row has of that name; None where rows have none."""
        read = self._values.get(name)
        return (lambda at: None) if read is None else lambda at: read(self._subject(at))

    def _subject(self, at: int) -> Subject:
        found = self._subjects[at]
        if found is None:
            found = self._subjects[at] = self._make(at)
        return found


class PickedRows(Rows):
    """Some rows of others, in an order of their own."""

    def __init__(self, rows: Sequence[Row], places: Sequence[int]) -> None:
        self._of, self._places = rows, places
        keys = keys_of(rows)
        self.keys = [keys[at] for at in places]

    def row(self, at: int) -> Row:
        return self._of[self._places[at]]


def keys_of(rows: Sequence[Row]) -> Sequence[str]:
    """Without making any row."""
    return rows.keys if isinstance(rows, Rows) else [row.key for row in rows]


@dataclass(frozen=True, slots=True)
class TableView:
    """`counted`: the title says how many rows there are."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    empty: str = "nothing here"
    counted: bool = True

    def reader(self, at: int) -> Callable[[int], Any]:
        """What the column at a place says of each row, by the row's place: its value, else the words of its cell."""
        rows, by = self.rows, self.columns[at].by
        if not by:
            return lambda n: rows[n].cells[at].text
        readers = [self._named(name) for name in by.split()]
        return readers[0] if len(readers) == 1 else lambda n: tuple(read(n) for read in readers)

    def _named(self, name: str) -> Callable[[int], Any]:
        rows = self.rows
        return rows.reader(name) if isinstance(rows, LazyRows) else lambda n: rows[n].data.get(name)


def find_column(columns: Sequence[Column], word: str) -> int | None:
    """Place of the column that is called so by its title, or by its key, in any case; a beginning is enough where only
    one column has it."""
    wanted = word.strip().lower()
    ways: tuple[Callable[[Column], bool], ...] = (
        lambda c: wanted in (c.title.lower(), c.key),
        lambda c: wanted in c.by.split(),
        lambda c: any(name.startswith(wanted) for name in (c.key, *c.by.split())),
    )
    for fits in ways if wanted else ():
        found = [at for at, column in enumerate(columns) if fits(column)]
        if found:
            return found[0] if len(found) == 1 else None
    return None
