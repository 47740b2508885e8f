"""A RowSet on the screen: draws visible rows only, and sends nothing for what did not change.

Theory of operation. A RowSet holds what is shown and where the cursor is. `show` takes a new TableView, compares the
lines that are on the screen with those drawn last, and asks for a repaint of what differs. `render_line` builds a
Strip at most once for each (row, cursor, mark).
"""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from opsconsole.presenting.layout import GAP, Placed, layout, total
from opsconsole.presenting.rows import Row, TableView
from opsconsole.presenting.rowset import RowSet
from opsconsole.presenting.text import fit
from opsconsole.ui.messages import RowsChanged
from opsconsole.ui.themes import TOKENS
from opsconsole.ui.widgets.painting import MARGIN, paint_header, paint_row

Signature = tuple[Row, bool, bool]


class DrawnRows(ScrollView):
    """Rows of presenting. `trouble` is what stands instead of "nothing here" while nothing is known."""

    ALLOW_SELECT = False  # dragging does nothing
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--header",
        "table--cursor",
        "table--note",
        *(f"table--{t}" for t in TOKENS),
    }
    DEFAULT_CSS = """
    DrawnRows { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; background: $background; }
    DrawnRows > .table--header { color: $secondary; text-style: bold; background: $panel; }
    DrawnRows > .table--cursor { background: $cursor; }
    DrawnRows > .table--note { color: $quiet; text-style: italic; }
    DrawnRows > .table--good { color: $success; }
    DrawnRows > .table--warn { color: $warning; }
    DrawnRows > .table--bad { color: $error; text-style: bold; }
    DrawnRows > .table--unknown { color: $unknown; }
    DrawnRows > .table--dim { color: $quiet; }
    DrawnRows > .table--accent { color: $accent; }
    """

    def __init__(self, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rowset = RowSet()
        self.columns: tuple[str, ...] = ()  # keys of those that were chosen; none: as it is by itself
        self.wide = False
        self.trouble = ""
        self._placed: tuple[Placed, ...] = ()
        self._styles: dict[str, Style] = {}
        self._strips: dict[str, tuple[Signature, Strip]] = {}
        self._drawn: list[Signature | None] = []

    # -- what it shows ---------------------------------------------------------------------------------------------

    def show(self, view: TableView, trouble: str = "") -> None:
        """New data. The cursor stays on its row and the row on its line, as far as the table allows."""
        relayout = view.columns is not self.rowset.view.columns
        before, offset = len(self.rowset.rows), self.rowset.at - self._top
        empty_note = (self.trouble, self.rowset.view.empty)
        self.trouble = trouble
        self.rowset.show(view)
        if relayout:
            self._lay_out()
        elif before != len(self.rowset.rows):
            self._resize_virtual()
        self._keep_line(offset)
        if not self.rowset.rows and (before or empty_note != (trouble, view.empty)):
            self.refresh()
        self._repaint_changed()

    @property
    def pointed(self) -> bool:
        """Does it show its cursor? Of the panes of a page, only the one that keys go to."""
        return self.can_focus and (not self.has_class("pane") or self.has_class("-current"))

    @property
    def cursor_row(self) -> Row | None:
        return self.rowset.current

    def _moved(self) -> None:
        self.post_message(RowsChanged(self.rowset.summary()))

    # -- geometry --------------------------------------------------------------------------------------------------

    @property
    def _top(self) -> int:
        return round(self.scroll_offset.y)

    @property
    def _body(self) -> int:
        """Lines below the header."""
        return max(0, self.scrollable_content_region.height - 1)

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()
        self._reveal()
        self._moved()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        columns = self.rowset.view.columns
        self._placed = layout(columns, width - MARGIN, self.size.width, self.wide, self.columns)
        self._strips.clear()
        self._drawn = []  # nothing is known to be on the screen: what Textual keeps of it goes too
        self.refresh()
        self._resize_virtual()

    def _resize_virtual(self) -> None:
        """As wide as what is reached by moving sideways, if anything is."""
        needed = total(self._placed) + MARGIN if self.wide or self.columns else 0
        self.virtual_size = Size(needed, len(self.rowset.rows) + 1)

    def watch_show_vertical_scrollbar(self) -> None:
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """A scroll bar came or went. One that comes after the rows does not know where they are."""
        self._lay_out()
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self._top

    def _keep_line(self, offset: int) -> None:
        """The cursor's row stays on the line where it was."""
        if 0 <= offset < self._body and self.rowset.at - offset != self._top:
            self._scroll(self.rowset.at - offset)

    def _reveal(self) -> None:
        at, top, body = self.rowset.at, self._top, self._body
        if at < top:
            self._scroll(at)
        elif body and at >= top + body:
            self._scroll(at - body + 1)

    def _scroll(self, top: int) -> None:
        most = max(0, len(self.rowset.rows) - self._body)
        self.scroll_to(y=max(0, min(top, most)), animate=False, force=True, immediate=True)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}
        self._strips.clear()

    def _style(self, name: str) -> Style:
        """Of a component; tokens give the foreground only, so that they show on the cursor's row too."""
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(f"table--{name}", partial=name in TOKENS)
        return self._styles[name]

    def _signature(self, at: int) -> Signature | None:
        rows = self.rowset.rows
        if not 0 <= at < len(rows):
            return None
        row = rows[at]
        return row, row.key == self.rowset.cursor and self.pointed, row.key in self.rowset.marks

    def _repaint_changed(self) -> None:
        """Cells on the screen that differ from what was drawn there: of a line, from the first to the last of them."""
        for y, drawn in enumerate(self._drawn):
            now = self._signature(self._top + y)
            if not _same(drawn, now):
                left, right = self._differing(drawn, now)
                self.refresh(Region(left, y + 1, right - left, 1))

    def _differing(self, one: Signature | None, other: Signature | None) -> tuple[int, int]:
        """From where to where a line is another; the whole of it where more than cells are."""
        width = self.size.width
        if one is None or other is None or one[1:] != other[1:] or one[0].key != other[0].key:
            return 0, width
        cells = (one[0].cells, other[0].cells)
        at, found = MARGIN - round(self.scroll_offset.x), []
        for place in self._placed:
            before, now = (row[place.at] if place.at < len(row) else None for row in cells)
            if before != now:
                found += [at, at + place.width]
            at += place.width + GAP
        return (max(0, found[0]), min(width, found[-1])) if found and found[-1] > 0 and found[0] < width else (0, width)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        left = round(self.scroll_offset.x)
        if y == 0:
            header = paint_header(self._placed, self._style("header"), self.rowset.order)
            strip = Strip(header)
            return strip.extend_cell_length(max(width, strip.cell_length), self._style("header")).crop(
                left, left + width
            )
        signature = self._signature(self._top + y - 1)
        self._drawn += [None] * (y - len(self._drawn))
        self._drawn[y - 1] = signature
        if signature is None:
            return self._note(width) if y == 1 and not self.rowset.rows else Strip.blank(width, self.rich_style)
        return self._strip(signature, width).crop(left, left + width)

    def _strip(self, signature: Signature, width: int) -> Strip:
        row, cursor, marked = signature
        cached = self._strips.get(row.key)
        if cached is not None and _same(cached[0], signature):
            return cached[1]
        base = self.rich_style + self._style("cursor") if cursor else self.rich_style
        styles = {token: self._style(token) for token in TOKENS}
        strip = Strip(paint_row(row, self._placed, styles, base, cursor, marked))
        strip = strip.extend_cell_length(max(width, self.virtual_size.width), base)
        if len(self._strips) > 4 * max(50, self._body):
            self._strips.clear()
        self._strips[row.key] = (signature, strip)
        return strip

    def _note(self, width: int) -> Strip:
        """Why there is nothing: an outage is not an empty table, and neither is a filter."""
        total_rows = len(self.rowset.view.rows)
        text = self.trouble or (
            f"none of {total_rows} passes the filter {self.rowset.filter.text!r}: Esc clears it"
            if total_rows
            else self.rowset.view.empty
        )
        style = self._style("bad") if self.trouble else self._style("note")
        return Strip([Segment(fit(" " * MARGIN + text, width), self.rich_style + style)])


def _same(one: Signature | None, other: Signature | None) -> bool:
    """Rows are equal when their cells are: data that is not shown does not repaint."""
    if one is None or other is None:
        return one is other
    a, b = one[0], other[0]
    return one[1:] == other[1:] and (a is b or (a.key == b.key and a.cells == b.cells))
