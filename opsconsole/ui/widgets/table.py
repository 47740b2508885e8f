"""The table: knows rows by key, and takes keys and clicks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import BindingType

from opsconsole.presenting.arranging import Arrangement
from opsconsole.presenting.filtering import Filter
from opsconsole.presenting.layout import column_at
from opsconsole.presenting.sorting import DOWN, stepped
from opsconsole.ui.actions import table_bindings
from opsconsole.ui.messages import Rearranged, RowOpened
from opsconsole.ui.widgets.drawnrows import DrawnRows
from opsconsole.ui.widgets.painting import MARGIN

SIDE_STEP = 8


class Table(DrawnRows, can_focus=True):
    """Rows that a person moves in, marks, filters, sorts and opens."""

    BINDINGS: ClassVar[list[BindingType]] = table_bindings()

    # -- how it is arranged ----------------------------------------------------------------------------------------

    def apply(self, filter: Filter) -> None:
        self.rowset.filter = filter
        self._rearranged()

    def sort(self, order: Sequence[str]) -> None:
        """By the keys of columns, the first one first; `-` before one turns it round. None: as it is by itself."""
        self.rowset.order = tuple(order)
        self._rearranged()

    def choose(self, columns: Sequence[str]) -> None:
        """Shows the columns with these keys alone. None: as it is by itself."""
        self.columns = tuple(columns)
        self._lay_out()

    def show_as(self, filter: Filter, order: Sequence[str], columns: Sequence[str]) -> None:
        """All at once, as a view or an earlier start has kept it."""
        self.rowset.filter, self.rowset.order = filter, tuple(order)
        self._rearranged()
        self.choose(columns)

    @property
    def arrangement(self) -> Arrangement:
        return Arrangement(self.rowset.filter.text, self.rowset.order, self.columns)

    def shown(self) -> tuple[str, ...]:
        """Keys of the columns that are shown now."""
        return tuple(p.column.key for p in self._placed)

    def toggle_wide(self) -> bool:
        self.wide = not self.wide
        self._lay_out()
        return self.wide

    def cut(self) -> str:
        """The words of the selected row that its cells had no room for."""
        row = self.cursor_row
        if row is None:
            return ""
        cells = ((p.column.title, row.cells[p.at].text, p.width) for p in self._placed if p.at < len(row.cells))
        return "  ".join(f"{title}: {text}" for title, text, width in cells if cell_len(text) > width)

    def _rearranged(self) -> None:
        self.rowset.arrange()
        self._resize_virtual()
        self._reveal()
        self._moved()
        self.refresh()

    # -- keys and mouse --------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Where the cursor was, what was marked and filtered: the rows will be of another thing."""
        self.rowset.cursor, self.rowset.anchor, self.rowset.filter = None, None, Filter()
        self.rowset.marks.clear()

    def move_to(self, at: int) -> None:
        self.rowset.move_to(at)
        self._reveal()
        self._repaint_changed()
        self._moved()

    def move_to_key(self, key: str) -> bool:
        """False where the filter hides it or it is gone."""
        if key not in self.rowset.place:
            return False
        self.move_to(self.rowset.place[key])
        return True

    def action_move(self, by: int) -> None:
        self.move_to(self.rowset.at + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.rowset.at + by * max(1, self._body - 1))

    def action_end(self, last: bool) -> None:
        self.move_to(len(self.rowset.rows) - 1 if last else 0)

    def action_aside(self, by: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + by * SIDE_STEP, animate=False, immediate=True)

    def action_mark(self) -> None:
        self.rowset.toggle()
        self.move_to(self.rowset.at + 1)

    def action_mark_range(self) -> None:
        self.rowset.mark_range()
        self.move_to(self.rowset.at)

    def action_mark_all(self) -> None:
        self.rowset.mark_all()
        self.move_to(self.rowset.at)

    def action_open(self) -> None:
        if self.rowset.cursor is not None:
            self.post_message(RowOpened(self.rowset.cursor))

    def on_click(self, event: events.Click) -> None:
        inside = event.get_content_offset(self)  # a frame is no row
        if inside is None or event.button != 1:
            return
        if inside.y == 0:
            self._sort_at(inside.x + round(self.scroll_offset.x) - MARGIN)
            return
        at = self._top + inside.y - 1
        if at >= len(self.rowset.rows):
            return
        self.move_to(at)
        if event.chain == 2:
            self.action_open()

    def _sort_at(self, x: int) -> None:
        """A click on a header: by that column alone; again the other way round; again as it was by itself."""
        key = column_at(self._placed, x)
        if key and self.can_focus:
            alone = self.rowset.order if [k.lstrip(DOWN) for k in self.rowset.order] == [key] else ()
            self.sort(stepped(alone, key))
            self.post_message(Rearranged(self))
