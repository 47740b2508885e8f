"""Which columns a table shows at a width, and how wide each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opsconsole.presenting.rows import Column

GAP = 1


class Placed(NamedTuple):
    """A column that is shown. `at` is its place among all columns."""

    at: int
    column: Column
    width: int


def layout(columns: Sequence[Column], width: int, outer: int, wide: bool = False) -> tuple[Placed, ...]:
    """At least the declared widths, of those that show at `outer` cells.

    Room that is left goes to columns that can use some, then to growing ones. `wide` shows every column, whatever the
    width; what does not fit is reached by moving sideways.
    """
    shown = [(at, column) for at, column in enumerate(columns) if wide or column.from_width <= outer]
    widths = [column.width for _, column in shown]
    spare = width - sum(widths) - GAP * max(0, len(widths) - 1)
    for n, (_, column) in enumerate(shown):
        more = max(0, min(spare, column.most - column.width))
        widths[n] += more
        spare -= more
    growing = [n for n, (_, column) in enumerate(shown) if column.grow]
    if growing and spare > 0:
        widths[growing[0]] += spare
    return tuple(Placed(at, column, w) for (at, column), w in zip(shown, widths, strict=True))


def total(placed: Sequence[Placed]) -> int:
    return sum(p.width for p in placed) + GAP * max(0, len(placed) - 1)
