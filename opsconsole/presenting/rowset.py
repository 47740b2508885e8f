"""The rows of a table as a person arranged them: filtered, sorted, marked, with a cursor. By key, never by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from opsconsole.presenting.filtering import Filter
from opsconsole.presenting.rows import PickedRows, Row, TableView, keys_of
from opsconsole.presenting.sorting import sorted_places

NOTHING = TableView("", (), ())


@dataclass
class RowSet:
    """`rows` are what is shown now. A cursor whose row is gone moves next door; marks outlive filters, not rows.

    `order`: keys of the columns that sort, the first one first; `-` before one turns it round.
    """

    view: TableView = NOTHING
    filter: Filter = field(default_factory=Filter)
    order: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    place: dict[str, int] = field(default_factory=dict)
    cursor: str | None = None
    marks: dict[str, None] = field(default_factory=dict)
    anchor: str | None = None  # where a range of marks begins

    @property
    def at(self) -> int:
        """The place of the cursor; 0 where nothing is shown."""
        return self.place.get(self.cursor, 0) if self.cursor is not None else 0

    @property
    def current(self) -> Row | None:
        return self.rows[self.at] if self.rows else None

    def show(self, view: TableView) -> None:
        self.view = view
        self.arrange()

    def arrange(self) -> None:
        """Filters and sorts again. The cursor stays with its row; if that is gone, at its place."""
        was = self.at
        self.rows = self.view.rows
        if self.filter.terms or self.order:
            places = sorted_places(self.view, self.filter.places(self.view), self.order)
            self.rows = PickedRows(self.view.rows, places)
        keys = keys_of(self.rows)
        self.place = {key: n for n, key in enumerate(keys)}
        if self.cursor not in self.place:
            self.cursor = keys[min(was, len(keys) - 1)] if keys else None
        if self.marks:
            there = set(keys_of(self.view.rows))
            self.marks = {key: None for key in self.marks if key in there}

    def move_to(self, at: int) -> None:
        if self.rows:
            self.cursor = keys_of(self.rows)[max(0, min(at, len(self.rows) - 1))]

    def toggle(self) -> None:
        """Marks the row under the cursor, or takes its mark away."""
        if self.cursor is None:
            return
        if self.cursor in self.marks:
            del self.marks[self.cursor]
        else:
            self.marks[self.cursor] = None
        self.anchor = self.cursor

    def mark_range(self) -> bool:
        """From the row marked last to the cursor. False where no range has been begun: then it begins here."""
        if self.cursor is None:
            return False
        if self.anchor not in self.place:
            self.anchor = self.cursor
            self.marks[self.cursor] = None
            return False
        first, last = sorted((self.place[self.anchor or ""], self.at))
        self.marks |= dict.fromkeys(keys_of(self.rows)[first : last + 1])
        return True

    def mark_all(self) -> None:
        """All that the filter shows; again: none of these. Marks that it hides stay."""
        shown: dict[str, None] = dict.fromkeys(keys_of(self.rows))
        if shown.keys() <= self.marks.keys():
            self.marks = {key: None for key in self.marks if key not in shown}
        else:
            self.marks |= shown
        self.anchor = None

    @property
    def hidden(self) -> int:
        """Marked rows that the filter hides."""
        return sum(1 for key in self.marks if key not in self.place)

    def chosen(self) -> tuple[str, ...]:
        """What an action is about: the marked rows, else the one under the cursor."""
        return tuple(self.marks) or ((self.cursor,) if self.cursor is not None else ())

    def marked_words(self) -> str:
        """`, the marked ones (1 hidden by the filter)`; empty where none is marked."""
        hidden = f" ({self.hidden} hidden by the filter)" if self.hidden else ""
        return f", the marked ones{hidden}" if self.marks else ""

    def summary(self) -> str:
        """`12 of 41, 3 marked (1 hidden)`."""
        total, shown = len(self.view.rows), len(self.rows)
        parts = [f"{shown} of {total}" if shown != total else str(total)]
        if self.marks:
            parts.append(f"{len(self.marks)} marked" + (f" ({self.hidden} hidden)" if self.hidden else ""))
        return ", ".join(parts)
