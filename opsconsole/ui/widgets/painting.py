"""Cells to segments: exactly as wide as the column, in the colours of the theme. No markup is ever parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.widget import Widget

from opsconsole.presenting.layout import GAP, Placed
from opsconsole.presenting.rows import Row
from opsconsole.presenting.sorting import DOWN
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


def paint_header(placed: Sequence[Placed], style: Style, order: Sequence[str]) -> list[Segment]:
    """`order`: keys of the columns that sort. An arrow tells which way, and from the second on a number which one."""
    segments = [Segment(" " * MARGIN, style)]
    signs = {key.removeprefix(DOWN): sort_sign(order, key.removeprefix(DOWN)) for key in order}
    for n, (_, column, width) in enumerate(placed):
        sign = signs.get(column.key, "")
        title = column.title[: max(0, width - len(sign))]
        segments.append(Segment((" " * GAP if n else "") + fit(title + sign, width, column.right), style))
    return segments


def sort_sign(order: Sequence[str], key: str) -> str:
    """▲ or ▼, with its place in the order where several columns sort; empty where this one does not."""
    at = next((at for at, k in enumerate(order) if k.removeprefix(DOWN) == key), None)
    if at is None:
        return ""
    return ("▼" if order[at].startswith(DOWN) else "▲") + (str(at + 1) if len(order) > 1 else "")


def entitle(widget: Widget, text: str) -> None:
    """Sets the title of a frame where it differs: Textual repaints the whole widget whenever a title is set."""
    title = Content(text)
    if widget.border_title != title.markup:
        widget.border_title = title
