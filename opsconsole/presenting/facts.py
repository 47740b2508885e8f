"""Lines of facts above the tables of a detail: a word, and what there is to say of it, on as many lines as it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells

from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, fit

Line = list[Cell]
TERM = 9  # cells of a word
MOST_LINES = 3  # of one fact: an explanation (x) has room for the rest
Fact = tuple[str, Sequence[Cell]]


def fact_lines(facts: Iterable[Fact], width: int) -> list[Line]:
    """Facts with nothing to say are left out."""
    lines: list[Line] = []
    for term, said in facts:
        for n, part in enumerate(wrapped([cell for cell in said if cell.text], width - TERM - 2)):
            lines.append([Cell(f" {fit(term if not n else '', TERM)} ", "dim"), *part])
    return lines


def wrapped(cells: Sequence[Cell], width: int) -> list[Line]:
    """Between words; each keeps its colour. What does not fit in `MOST_LINES` ends in an ellipsis."""
    lines: list[Line] = [[]] if cells else []
    room = width
    for text, token in cells:
        for word in _words(text, max(1, width)):
            if cell_len(word.rstrip()) > room and lines[-1]:
                if len(lines) == MOST_LINES:
                    lines[-1].append(Cell("…", "dim"))
                    return lines
                lines[-1][-1] = Cell(lines[-1][-1].text.rstrip(), lines[-1][-1].token)
                lines.append([])
                room = width
            lines[-1].append(Cell(word, token))
            room -= cell_len(word)
    return lines


def folded(lines: Sequence[Sequence[Cell]], width: int, room: int) -> list[Line]:
    """Each on as many lines as it needs, where all of them fit into `room` lines; else each on one."""
    all_of_them = [part for line in lines for part in wrapped(line, width)]
    return all_of_them if len(all_of_them) <= room else [list(line) for line in lines]


def _words(text: str, width: int) -> list[str]:
    """With the blanks behind them; what is longer than a line is cut."""
    words = clean(text, 1000).replace(" ", " \n").split("\n")
    return [part for word in words for part in (chop_cells(word, width) if cell_len(word) > width else [word])]
