"""A plan of an action: what is asked for, whom it hits, what it costs, and the command line that does the same.

A plan is computed from the state of a moment and remembers the facts it rests on, so that commit sees what changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from opsconsole.presenting.rows import Column, TableView
from opsconsole.presenting.text import clean, count, day_clock, few, gpu_hours, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.observations import By, Observation

MOST = 6  # lines of one kind in a dialog
NOTHING = "nothing would change"  # of a plan without a row
PLAIN_COLUMNS = (Column("WHAT", 14, most=30), Column("NOW", 14, most=40), Column("THEN", 26, grow=True))


@dataclass(frozen=True, slots=True)
class Plan:
    """`facts` are what the plan rests on: a plan whose facts differ at commit comes back. `refused` tells why not.

    `lost_gpu_ms`: work that is thrown away, in GPU-thousandths x ms. `missing`: what must be said before it can be
    carried out. `undo`: the command that takes it back; empty where nothing does.
    """

    action: str
    targets: tuple[str, ...]
    table: TableView
    effect: tuple[str, ...]
    command: str
    facts: tuple[object, ...]
    observations: Callable[[By], list[Observation]]
    guarantees_broken: int = 0
    refused: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()  # targets whose facts are too old to act on
    done: str = ""  # all of it is so already, in a word for the one who asked
    lost_gpu_ms: int = 0
    missing: str = ""
    undo: str = ""

    @property
    def possible(self) -> bool:
        return bool(self.targets) and not self.refused and not self.done


def snug(table: TableView) -> TableView:
    """With columns little wider than what they hold, so that what becomes of it has the room."""
    cells = [[row.cells[n].text for row in table.rows] for n in range(len(table.columns))]
    needs = [max(map(cell_len, [column.title, *texts])) + 1 for column, texts in zip(table.columns, cells, strict=True)]
    fitted = [
        column._replace(width=min(column.width, need), most=min(column.most, need)) if column.most else column
        for column, need in zip(table.columns, needs, strict=True)
    ]
    return replace(table, columns=tuple(fitted))


def first_lines(lines: Sequence[str]) -> list[str]:
    """So many that the rest of the dialog has room; how many there are beside them."""
    more = len(lines) - MOST + 1
    return (
        [*lines] if len(lines) <= MOST else [*lines[: MOST - 1], f"and {count(more, 'more line')}: --dry-run shows all"]
    )


def refusals(whys: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Names and why nothing is done to each, a line for each reason."""
    named: dict[str, list[str]] = {}
    for name, why in whys:
        named.setdefault(why, []).append(clean(name, 60))
    return tuple(f"{few(names)}: {why}" for why, names in named.items())


def command_line(action: str, targets: Sequence[str], *more: str) -> str:
    """What does the same without the console; nothing where there is nothing to do it to."""
    return shlex.join(["opsconsole", action, *targets, *more, "--reason", "…"]) if targets else ""


def for_words(for_ms: int | None) -> tuple[str, ...]:
    """The option of what is asked for a while."""
    return () if for_ms is None else ("--for", span(for_ms))


def lifted(view: ClusterView, for_ms: int | None) -> str:
    """Until when, where it ends by itself."""
    return "" if for_ms is None else f", until {day_clock(view.wall_ms + for_ms, view.wall_ms)}"


def said(text: str) -> str:
    """What was typed and cannot be taken, before what is wanted."""
    return f"{clean(text, 60)!r} will not do: " if text else ""


def undone_by(action: str, targets: Sequence[str], *more: str) -> str:
    """The command of the console that takes it back."""
    return shlex.join([action, *targets, *more]) if targets else ""


def broken_line(guarantees: int) -> tuple[str, ...]:
    """The line of an effect that breaks guarantees; none where it breaks none."""
    return (f"breaks {count(guarantees, 'guarantee')}",) if guarantees else ()


def lost_line(amounts: Sequence[int]) -> tuple[str, ...]:
    """Work lost (GPU-thousandths x ms), where it is that of several and stands in no row."""
    return (f"{gpu_hours(sum(amounts))} GPU-h lost in all",) if len([a for a in amounts if a]) > 1 else ()
