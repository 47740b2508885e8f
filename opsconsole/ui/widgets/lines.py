"""One-line widgets: the header, the status line and the footer. Text only; what does not fit is left out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import fit
from opsconsole.ui.themes import TOKENS


class Line(Widget):
    """Cells on one line, the whole of it clipped to the width."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{t}" for t in TOKENS}
    DEFAULT_CSS = """
    Line { height: 1; background: $panel; color: $foreground; }
    Line > .line--good { color: $success; }
    Line > .line--warn { color: $warning; }
    Line > .line--bad { color: $error; text-style: bold; }
    Line > .line--unknown { color: $unknown; }
    Line > .line--dim { color: $quiet; }
    Line > .line--accent { color: $accent; }
    """

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cells: tuple[Cell, ...] = ()

    def show(self, cells: Sequence[Cell]) -> None:
        """Repaints only what is different: from the first cell that is."""
        new = tuple(cells)
        if new != self.cells:
            left = _shared_width(self.cells, new)
            self.cells = new
            self.refresh(Region(left, 0, max(1, self.size.width - left), 1))

    def render_line(self, y: int) -> Strip:
        width, used, base = self.size.width, 0, self.rich_style
        segments = []
        for text, token in self.cells:
            if used >= width:
                break
            shown = text if used + cell_len(text) <= width else fit(text, width - used)
            segments.append(Segment(shown, base + self._token(token)))
            used += cell_len(shown)
        return Strip(segments, used).extend_cell_length(width, base)

    def _token(self, token: str) -> Style:
        return self.get_component_rich_style(f"line--{token}", partial=True) if token else Style()


class Lines(Line):
    """Several lines of cells."""

    DEFAULT_CSS = "Lines { height: auto; background: $background; }"

    def __init__(self, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id)
        self.set_classes(classes or "")
        self.lines: tuple[tuple[Cell, ...], ...] = ()

    def show_lines(self, lines: Sequence[Sequence[Cell]]) -> None:
        new = tuple(tuple(line) for line in lines)
        if new != self.lines:
            grown = len(new) != len(self.lines)
            self.lines = new
            self.refresh(layout=grown)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self.lines)

    def render_line(self, y: int) -> Strip:
        self.cells = self.lines[y] if y < len(self.lines) else ()
        return super().render_line(y)


def _shared_width(one: Sequence[Cell], other: Sequence[Cell]) -> int:
    """How wide the cells are with which both begin."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(cell_len(cell.text) for cell, _ in pairs)


def joined(parts: Sequence[Sequence[Cell]], width: int, droppable: Sequence[int]) -> list[Cell]:
    """Parts with ` | ` between; those at `droppable` places go, in that order, until the rest fits."""
    kept = dict(enumerate(parts))
    for place in [-1, *droppable]:
        kept.pop(place, None)
        kept = {n: part for n, part in kept.items() if part}
        cells: list[Cell] = []
        for part in kept.values():
            cells += [Cell(" | ", "dim"), *part] if cells else [Cell(" "), *part]
        if sum(cell_len(cell.text) for cell in cells) <= width:
            break
    return cells
