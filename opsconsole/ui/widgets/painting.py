"""Cells to segments: exactly as wide as the column, in the colours of the theme. No markup is ever parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.widget import Widget

from opsconsole.presenting.layout import GAP, Placed
from opsconsole.presenting.rows import Row
from opsconsole.presenting.text import fit

MARGIN = 2  # cursor and mark stand before the first column
NOTHING = Style()


def paint_row(
    row: Row, placed: Sequence[Placed], styles: Mapping[str, Style], base: Style, cursor: bool, marked: bool
) -> list[Segment]:
    """The cursor and the mark are signs, not only colours."""
    segments = [Segment((">" if cursor else " ") + ("*" if marked else " "), base + styles.get("accent", NOTHING))]
    gap = Segment(" " * GAP, base)
    for n, (at, column, width) in enumerate(placed):
        text, token = row.cells[at] if at < len(row.cells) else ("", "")
        if n:
            segments.append(gap)
        segments.append(Segment(fit(text, width, column.right), base + styles.get(token, NOTHING)))
    return segments


def paint_header(placed: Sequence[Placed], style: Style, sort: str, reverse: bool) -> list[Segment]:
    segments = [Segment(" " * MARGIN, style)]
    for n, (_, column, width) in enumerate(placed):
        arrow = ("▼" if reverse else "▲") if column.title == sort and sort else ""
        title = column.title if len(column.title) + len(arrow) <= width else column.title[: width - len(arrow)]
        segments.append(Segment((" " * GAP if n else "") + fit(title + arrow, width, column.right), style))
    return segments


def entitle(widget: Widget, markup: str) -> None:
    """Sets the title of a frame where it differs: Textual repaints the whole widget whenever a title is set."""
    if widget.border_title != Content.from_markup(markup).markup:
        widget.border_title = markup
