"""Which columns a table shows at a width, and how wide each is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from opsconsole.presenting.rows import Column

GAP = 1


class Placed(NamedTuple):
    """A column that is shown. `at` is its place among all columns."""

    at: int
    column: Column
    width: int


def layout(
    columns: Sequence[Column], width: int, outer: int, wide: bool = False, chosen: Collection[str] = ()
) -> tuple[Placed, ...]:
    """At least the declared widths, of those that show at `outer` cells.

    Room that is left is shared, a cell in turn, by the growing column and all that can use more; then the growing one
    takes the rest. `wide` shows every column, whatever the width, and `chosen` those with these keys, where there are
    any; what does not fit is reached by moving sideways.
    """
    known = [column.key for column in columns if column.key in chosen]
    shown = [(at, column) for at, column in enumerate(columns) if is_shown(column, outer, wide, known)]
    widths = [column.width for _, column in shown]
    spare = width - sum(widths) - GAP * max(0, len(widths) - 1)
    growing = next((n for n, (_, column) in enumerate(shown) if column.grow), None)
    while spare > 0:
        takers = [n for n, (_, column) in enumerate(shown) if n == growing or widths[n] < column.most][:spare]
        if not takers:
            break
        for n in takers:
            widths[n] += 1
        spare -= len(takers)
    return tuple(Placed(at, column, w) for (at, column), w in zip(shown, widths, strict=True))


def total(placed: Sequence[Placed]) -> int:
    return sum(p.width for p in placed) + GAP * max(0, len(placed) - 1)


def is_shown(column: Column, outer: int, wide: bool = False, chosen: Collection[str] = ()) -> bool:
    if chosen:
        return column.key in chosen
    return not column.extra and (wide or column.from_width <= outer)


def column_at(placed: Sequence[Placed], x: int) -> str:
    """The key of the column that covers that cell; empty where none does."""
    begun = 0
    for p in placed:
        if begun <= x < begun + p.width:
            return p.column.key
        begun += p.width + GAP
    return ""
