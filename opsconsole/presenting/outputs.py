"""What a run writes, as rows: foreign bytes become lines of text, the newest are kept."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from opsconsole.presenting.rows import Cell, Column, LazyRows, TableView
from opsconsole.presenting.text import clean, count

KEPT = 5000  # lines
LONGEST = 2000  # characters of a line
COLUMNS = (Column("LINE", 6, right=True, by="line"), Column("OUTPUT", 40, grow=True))
# Colours, movements of the cursor, titles: what terminals obey is not for ours to obey.
ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\)|[ -/]*[0-~])", re.S)


class OutputLine(NamedTuple):
    """`number` counts from the first line that was read, from 1."""

    number: int
    text: str


class OutputText:
    """The newest lines of one run on one host. A line that has not ended yet is shown as far as it has come."""

    def __init__(self) -> None:
        self.lines: deque[OutputLine] = deque(maxlen=KEPT)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._begun = ""  # of the line that has not ended
        self._number = 0

    def feed(self, data: bytes) -> None:
        *whole, begun = (self._begun + self._decode(data)).split("\n")
        if self._begun and self.lines:
            self.lines.pop()
            self._number -= 1
        for line in whole:
            self._add(line)
        self._begun = begun[-4 * LONGEST :]
        if begun:
            self._add(self._begun)

    def _add(self, line: str) -> None:
        """A progress bar that is drawn over itself counts as it is drawn last."""
        self._number += 1
        shown = ESCAPE.sub("", line).rstrip("\r").rpartition("\r")[2]
        self.lines.append(OutputLine(self._number, clean(shown.expandtabs(), LONGEST)))

    def table(self, title: str, empty: str) -> TableView:
        """Oldest first: what is new comes below."""
        lines = tuple(self.lines)
        keys = [f"line:{line.number}" for line in lines]
        dropped = self._number - len(lines)
        more = f", {count(dropped, 'older line')} no longer kept here" if dropped else ""
        rows = LazyRows(keys, lines.__getitem__, _cells, VALUES)
        return TableView(f"{title}{more}", COLUMNS, rows, empty, counted=False)


VALUES: dict[str, Callable[[OutputLine], Any]] = {
    "line": lambda line: line.number,
    "text": lambda line: line.text,
}


def _cells(line: OutputLine) -> tuple[Cell, ...]:
    return Cell(str(line.number), "dim"), Cell(line.text)
