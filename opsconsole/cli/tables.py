"""Rows of presenting as lines and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from opsconsole.presenting.rows import Column, Row, TableView
from opsconsole.presenting.text import fit

PIPED_WIDTH = 1000  # for grep: a row is a line
STYLES = {"good": "green", "warn": "yellow", "bad": "bold red", "unknown": "magenta", "dim": "dim", "accent": "cyan"}
GAP, INDENT = "  ", "    "
LEAST = 8  # cells of a column that is cut


class Output(Console):
    def on_broken_pipe(self) -> None:
        """Main knows what to do."""
        raise BrokenPipeError


def output() -> Console:
    """Standard output; where nobody looks at it, lines are not folded."""
    return Output(width=None if sys.stdout.isatty() else PIPED_WIDTH)


def print_table(view: TableView, console: Console | None = None) -> None:
    """A line for each row; text only, never markup. What does not fit there stands whole below it."""
    console = console or output()
    if not view.rows:
        console.print(Text(view.empty))
        return
    widths, below = fitted(view, console.width)
    columns = [view.columns[at] for at in widths]
    console.print(_line([(c.title, "bold") for c in columns], columns, widths.values()), no_wrap=True, crop=False)
    for row in view.rows:
        cells = [(row.cells[at].text, STYLES.get(row.cells[at].token, "")) for at in widths]
        console.print(_line(cells, columns, widths.values()), no_wrap=True, crop=False)
        for at in below:
            text = row.cells[at].text
            if cell_len(text) > widths.get(at, 0):
                print_below(console, Text.assemble((f"{view.columns[at].title}: ", "dim"), text))


def print_below(console: Console, text: Text) -> None:
    """Indented, folded at words."""
    for line in text.wrap(console, max(20, console.width - len(INDENT))):
        line.rstrip()
        console.print(Text(INDENT) + line, no_wrap=True, crop=False)


def fitted(view: TableView, room: int) -> tuple[dict[int, int], list[int]]:
    """The columns that have room in a line, by place, with their widths; and those of which something stands below.

    A column is as wide as its cells. Where that is too much, those go that only wide tables have; then columns are
    cut, the growing ones first, the first one last. One of which every cell would be cut stands below altogether.
    """
    natural = {at: _natural(view.rows, at, column) for at, column in enumerate(view.columns) if not column.extra}
    if _total(natural) > room:
        natural = {at: width for at, width in natural.items() if view.columns[at].from_width <= room}
    below: list[int] = []
    while True:
        widths = {at: width for at, width in natural.items() if at not in below}
        cut = _cut(view, widths, room)
        gone = [at for at in cut if all(cell_len(row.cells[at].text) > widths[at] for row in view.rows)]
        if not gone:
            return widths, sorted([*below, *cut])
        below.append(gone[0])


def _cut(view: TableView, widths: dict[int, int], room: int) -> list[int]:
    """Makes columns narrower until they fit; returns which."""
    cut = []
    for at in sorted(widths, key=lambda at: (at == 0, not view.columns[at].grow, -widths[at])):
        over = _total(widths) - room
        if over > 0 and widths[at] > LEAST:
            widths[at] = max(LEAST, widths[at] - over)
            cut.append(at)
    return cut


def _natural(rows: Sequence[Row], at: int, column: Column) -> int:
    return max(cell_len(column.title), *(cell_len(row.cells[at].text) for row in rows))


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _line(cells: Iterable[tuple[str, str]], columns: Iterable[Column], widths: Iterable[int]) -> Text:
    parts = [
        Text(fit(text, width, column.right), style)
        for (text, style), column, width in zip(cells, columns, widths, strict=True)
    ]
    line = Text(GAP).join(parts)
    line.rstrip()
    return line


def print_json(rows: Iterable[Row]) -> None:
    """The data of rows, as one list."""
    json.dump([row.data for row in rows], sys.stdout, indent=2)
    sys.stdout.write("\n")
