"""Rows of presenting as Rich tables and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opsconsole.presenting.rows import Row, TableView

PIPED_WIDTH = 1000  # for grep: a row is a line
STYLES = {"good": "green", "warn": "yellow", "bad": "bold red", "unknown": "magenta", "dim": "dim", "accent": "cyan"}


class Output(Console):
    def on_broken_pipe(self) -> None:
        """Main knows what to do."""
        raise BrokenPipeError


def output() -> Console:
    """Standard output; where nobody looks at it, lines are not folded."""
    return Output(width=None if sys.stdout.isatty() else PIPED_WIDTH)


def print_table(view: TableView, console: Console | None = None) -> None:
    """Every column; text only, never markup."""
    console = console or output()
    if not view.rows:
        console.print(Text(view.empty))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in view.columns:
        table.add_column(column.title, justify="right" if column.right else "left", overflow="fold")
    for row in view.rows:
        table.add_row(*(Text(cell.text, style=STYLES.get(cell.token, "")) for cell in row.cells))
    console.print(table)


def print_json(rows: Iterable[Row]) -> None:
    """The data of rows, as one list."""
    json.dump([row.data for row in rows], sys.stdout, indent=2)
    sys.stdout.write("\n")
