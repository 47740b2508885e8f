"""Rows of --format=csv: with a header or without, with units or without, torn, cut, and with messages between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from opsconsole.health.field import CUT, MOST_COLUMNS, Field, Gpu, failed_field, field, names_of, value_field
from opsconsole.hostkit.smi_text import cells_of, fitted, sentinel

MESSAGE = re.compile(
    r"\b(warning|error|failed|failure|fatal|can(no|')t|couldn't|could not|unable|not found|denied|timed?[- ]?out|"
    r"killed|segmentation|aborted|core dumped|no such|please|make sure|are you sure|unknown option|invalid|"
    r"not recogni[sz]ed|terminat(ed|ing)|is not|is lost|connection|no running|no mig-enabled|no compute|no gpu|"
    r"does not|deprecated|permissions?|reboot)\b|library version:",
    re.IGNORECASE,
)
PROSE = re.compile(r"(?:^|\s)[a-z]{2,}[.,;:]?(?=\s|$)")
OWNERS = ("gpu_uuid", "gpu_bus_id", "gpu_serial", "gpu_name")


def is_message(line: str) -> bool:
    """Words for people; a gap in a field is none, though it may use the same words."""
    cells = cells_of(line)
    said = " ".join(cell for cell in cells if sentinel(cell) is None)
    return bool(MESSAGE.search(said)) or (len(cells) == 1 and len(PROSE.findall(said)) > 2)


class Rows:
    """Feed lines, then `gpus` and `messages`. `asked`: the fields of the query, which then decide, not the header."""

    def __init__(self, lines: Sequence[str], asked: Sequence[str] | None = None, ended: bool = True) -> None:
        self.gpus: list[Gpu] = []
        self.messages: list[str] = []
        self.had_header = False
        self._asked, self._ended = asked, ended
        self._names: Sequence[str] | None = asked
        self._lines = list(lines)
        self._width = 0 if asked is None else len(asked)
        self._processes: dict[str, Gpu] = {}
        while self._lines:
            self._take()

    def _take(self) -> None:
        line = self._lines.pop(0)
        if self._header(line):
            return
        cells = cells_of(line)
        if self._names is None and not self._width:
            self._width = self._usual_width(cells)
        while self._lines and self._continues(line, cells):
            line += (" " if line.rstrip().endswith(",") else "") + self._lines.pop(0)
            cells = cells_of(line)
        names = self._names or [f"column_{n + 1}" for n in range(self._width)]
        whole = fitted(names, cells)
        if whole is not None and line.isprintable() and not (len(whole) == 1 and is_message(line)):
            self._add({name: self._field(name, cell) for name, cell in zip(names, whole, strict=True)})
        elif is_message(line) or not self._is_row(line, cells):
            self.messages.append(" ".join(line.split()))
        else:
            self._add(self._broken(names, cells, line))

    def _field(self, name: str, cell: str) -> Field:
        return field(name.partition("#")[0], cell)

    def _header(self, line: str) -> bool:
        """Also a second one, and one torn in two."""
        pieces = [line]
        while self._goes_on(pieces):
            pieces.append(self._lines.pop(0))
        whole = " ".join(pieces)
        if names_of(cells_of(whole.rstrip(", "))) is None:  # it did not go on
            whole, self._lines[:0] = line, pieces[1:]
        line, names = whole, names_of(cells_of(whole.rstrip(", ")))
        if names is None or is_message(line):
            return False
        while self._lines and not is_header(self._lines[0]) and (joined := self._joined(line)) is not None:
            line, names = joined
            self._lines.pop(0)
        self.had_header = True
        if self._asked is None:
            self._names, self._width = names, len(names)
        return True

    def _goes_on(self, pieces: list[str]) -> bool:
        """A header of which the last piece ends in a comma."""
        last = pieces[-1].rstrip()
        room = self._lines and len(pieces) < MOST_COLUMNS
        return bool(room) and last.endswith(",") and names_of(cells_of(last)[:-1]) is not None

    def _joined(self, line: str) -> tuple[str, list[str]] | None:
        """A header that goes on in the next line, in the middle of a word."""
        last = names_of([cells_of(line)[-1]])
        whole = names_of(cells_of(line + self._lines[0]))
        return (line + self._lines[0], whole) if last is None and whole is not None else None

    def _usual_width(self, cells: list[str]) -> int:
        """Without a header: as many columns as most lines have."""
        widths = [len(cells), *(len(cells_of(line)) for line in self._lines if not is_message(line))]
        return Counter(widths).most_common(1)[0][0]

    def _continues(self, line: str, cells: list[str]) -> bool:
        """The next line is the rest of this row: together they have no more cells than a row."""
        more = len(cells_of(self._lines[0]))
        both = len(cells) + more - 1
        return both <= self._width and more < self._width and not is_message(self._lines[0])

    def _is_row(self, line: str, cells: list[str]) -> bool:
        """What is left of one; words alone are none, unless the output ends there."""
        cut = not self._ended and not self._lines
        return line.isprintable() and (cut or len(cells) > 1 or re.search("[A-Za-z]{3}", line) is None)

    def _broken(self, names: Sequence[str], cells: list[str], line: str) -> Gpu:
        """A row that is cut tells what came before; of one that has too few or too many columns nothing is known."""
        if len(cells) < len(names) and not self._lines and not self._ended:
            whole = {name: self._field(name, cell) for name, cell in zip(names, cells[:-1], strict=False)}
            return whole | {name: failed_field(CUT) for name in names[len(whole) :]}
        return {name: failed_field(f"{len(cells)} columns of {len(names)}: {line}") for name in names}

    def _add(self, row: Gpu) -> None:
        if "pid" not in row:
            self.gpus.append(row)
            return
        owner = {name: row.pop(name) for name in OWNERS if name in row}
        key = str(next((one["value"] for one in owner.values() if one["state"] == "value"), owner))
        if key not in self._processes:
            self._processes[key] = {**owner, "processes": value_field([])}
            self.gpus.append(self._processes[key])
        self._processes[key]["processes"]["value"].append(row)


def is_header(line: str) -> bool:
    return names_of(cells_of(line)) is not None
