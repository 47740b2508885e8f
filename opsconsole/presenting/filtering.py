"""The filter line: words, and `key=value` with != > < >= <= ~. All of it must hold.

Errors are for showing while it is typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from opsconsole.presenting.rows import Row, TableView
from opsconsole.spans import parse_span_ms

TERM = re.compile(r"([A-Za-z][\w. -]*?)(!=|>=|<=|=|>|<|~)(.*)", re.S)
SPLIT = re.compile(r'(?:[^\s"]|"[^"]*")+')
SUFFIXES = ("", "_s", "_gpu_h", "_gpus", "_c", "_percent", "_ms")
Test = Callable[[Row], bool]


class FilterError(ValueError):
    """What is wrong with a filter, for people."""


@dataclass(frozen=True, slots=True)
class Filter:
    """`text` as typed. An empty filter lets all through."""

    text: str = ""
    tests: tuple[Test, ...] = ()

    def passes(self, row: Row) -> bool:
        return all(test(row) for test in self.tests)

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The same rows where nothing is filtered."""
        return tuple(row for row in rows if self.passes(row)) if self.tests else rows


def parse_filter(text: str, table: TableView) -> Filter:
    """Raises FilterError, which names what it does not understand and what it could have been."""
    return Filter(text.strip(), tuple(_term(part, table) for part in SPLIT.findall(text)))


def filter_keys(table: TableView) -> tuple[str, ...]:
    """What can stand before an operator: columns, and the keys of the rows' data."""
    names = [column.title.lower().replace(" ", "_") for column in table.columns]
    data = table.rows[0].data if table.rows else {}
    return tuple(dict.fromkeys([*names, *data]))


def _term(part: str, table: TableView) -> Test:
    match = TERM.fullmatch(part)
    if match is None:
        return _word(part)
    key, operator, wanted = match[1].strip().lower(), match[2], match[3].strip('"')
    if not wanted:
        raise FilterError(f"{key}{operator} needs a value")
    read = _reader(key, table)
    if operator == "~":
        return _pattern(read, wanted)
    if operator in ("=", "!="):
        same = _equal(read, wanted)
        return same if operator == "=" else lambda row: not same(row)
    return _compare(read, key, operator, wanted)


def _word(part: str) -> Test:
    """Anywhere in the cells or in the data, in any case."""
    wanted = part.strip('"').casefold()

    def test(row: Row) -> bool:
        return any(wanted in cell.text.casefold() for cell in row.cells) or any(
            wanted in value.casefold() for value in row.data.values() if isinstance(value, str)
        )

    return test


def _reader(key: str, table: TableView) -> Callable[[Row], Any]:
    """How a key is read off a row: its data first, else the words of the column with that title."""
    data = table.rows[0].data if table.rows else {}
    for name in (key + suffix for suffix in SUFFIXES):
        if name in data:
            return lambda row: row.data.get(name)
    for at, column in enumerate(table.columns):
        if column.title.lower().replace(" ", "_") == key:
            if column.by and column.by in data:
                return lambda row: row.data.get(column.by)
            return lambda row: row.cells[at].text
    if not table.rows:
        return lambda row: row.data.get(key)
    raise FilterError(f"no key {key!r}; there are {', '.join(filter_keys(table)[:12])}")


def _equal(read: Callable[[Row], Any], wanted: str) -> Test:
    number = _number(wanted)

    def test(row: Row) -> bool:
        value = read(row)
        if isinstance(value, bool):
            return wanted.lower() in (("true", "yes") if value else ("false", "no"))
        if isinstance(value, int | float) and number is not None:
            return float(value) == number
        if isinstance(value, list | tuple | dict):
            return wanted in value
        return value is not None and str(value).casefold() == wanted.casefold()

    return test


def _compare(read: Callable[[Row], Any], key: str, operator: str, wanted: str) -> Test:
    limit = _number(wanted)
    if limit is None:
        raise FilterError(f"{key}{operator}{wanted}: {wanted!r} is neither a number nor a time such as 2h")
    over, equal = operator.startswith(">"), operator.endswith("=")

    def test(row: Row) -> bool:
        """What is not known is neither more nor less."""
        value = read(row)
        number = float(value) if isinstance(value, int | float) else _number(str(value)) if value is not None else None
        if number is None:
            return False
        return (number > limit if over else number < limit) or (equal and number == limit)

    return test


def _pattern(read: Callable[[Row], Any], wanted: str) -> Test:
    try:
        pattern = re.compile(wanted, re.I)
    except re.error as error:
        raise FilterError(f"{wanted!r} is no pattern: {error}") from None
    return lambda row: (value := read(row)) is not None and pattern.search(str(value)[:500]) is not None


def _number(text: str) -> float | None:
    """A number, or a span such as 90s, 2h, 1d12h, in seconds; `%` and `C` may follow."""
    text = text.strip().lower()
    with suppress(ValueError):
        return parse_span_ms(text) / 1000
    match = re.fullmatch(r"(-?\d+(\.\d+)?)(%|c|k)?", text)
    if match is None:
        return None
    return float(match[1]) * (1000 if match[3] == "k" else 1)
