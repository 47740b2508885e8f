"""For slow links: of what Textual would write again, only what differs from what the terminal shows already.

Textual repaints lines of a widget whole, up to the last cell that may have changed. Here each piece of a line that was
written is remembered, and of a new one the segments are written that stand elsewhere or are others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import Segment
from textual._compositor import ChopsUpdate, CompositorUpdate
from textual.strip import Strip


class Sparing:
    """What the terminal shows, by line and piece. A line that is cut into other pieces than before is not known."""

    def __init__(self) -> None:
        self._cuts: dict[int, tuple[int, ...]] = {}
        self._shown: dict[int, dict[int, set[tuple[int, Segment]]]] = {}

    def forget(self) -> None:
        """The terminal may show anything."""
        self._cuts.clear()
        self._shown.clear()

    def of(self, update: Any) -> Any:
        """Instead of an update. What is not known to be a part of what is shown is written as it is."""
        if isinstance(update, ChopsUpdate):
            return Spared(self, update)
        self.forget()
        return update

    def write(self, update: ChopsUpdate, console: Console) -> str:
        return "".join(self._pieces(update, console))

    def _pieces(self, update: ChopsUpdate, console: Console) -> Iterator[str]:
        for y, left, right in update.spans:
            ends = tuple(update.chop_ends[y])
            if self._cuts.get(y) != ends:
                self._cuts[y], self._shown[y] = ends, {}
            for end, (x, strip) in zip(ends, update.chops[y].items(), strict=False):
                if strip is not None and x <= right and end > left:
                    yield from self._piece(y, x, end, right, strip, console)

    def _piece(self, y: int, x: int, end: int, right: int, strip: Strip, console: Console) -> Iterator[str]:
        if strip.cell_length != end - x:  # a part of it: as Textual would
            self._shown[y].pop(x, None)
            yield _at(x, y) + strip.crop(0, min(end, right) - x).render(console)
            return
        before = self._shown[y].get(x, set())
        now = list(_placed(strip, x))
        self._shown[y][x] = set(now)
        run: list[Segment] = []
        begins = x
        for at, segment in now:
            if (at, segment) in before:
                if run:
                    yield _at(begins, y) + Strip(run).render(console)
                run = []
            else:
                begins = begins if run else at
                run.append(segment)
        if run:
            yield _at(begins, y) + Strip(run).render(console)


class Spared(CompositorUpdate):
    """An update that is worked out when it is written, and only then."""

    def __init__(self, sparing: Sparing, update: ChopsUpdate) -> None:
        self.sparing, self.update = sparing, update

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.update.__rich_console__(console, options)

    def render_segments(self, console: Console) -> str:
        return self.sparing.write(self.update, console)


def _at(x: int, y: int) -> str:
    return Control.move_to(x, y).segment.text


def _placed(strip: Strip, x: int) -> Iterator[tuple[int, Segment]]:
    for segment in strip:
        yield x, segment
        x += segment.cell_length
