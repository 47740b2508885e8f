"""The filter line: words, and `key=value` with != > < >= <= ~. `!` turns a part of it round. All of it must hold.

    waited>2h gpus>=8 !budget=olmo/eval why~"no shape|max_gpus"

Keys are the columns of the table. Errors are for showing while it is typed, and say where they are.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opsconsole.presenting.amounts import read_amount
from opsconsole.presenting.rows import Column, TableView, find_column

TOKEN = re.compile(r'(?:[^\s"]|"[^"]*")+')
RUN_ID = re.compile(r"[\w.-]+~\d+(\.\d+)?")  # a word, though it has a sign in it
SIGNS = ("!=", ">=", "<=", "!~", "=", ">", "<", "~")  # longer ones first
TERM = re.compile(rf"(?P<no>!?)(?:(?P<key>[A-Za-z][\w.-]*)(?P<sign>{'|'.join(SIGNS)}))?(?P<value>.*)", re.S)
ORDER = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}
UNKNOWN = "?"  # as cells show it
LOOKED_AT = 500  # characters of a value, by patterns
LISTED = 12
Test = Callable[[Any], bool]  # of a value


class FilterError(ValueError):
    """What is wrong with a filter, for people. `start` and `end`: where it stands in what was typed."""

    def __init__(self, text: str, start: int, end: int) -> None:
        super().__init__(text)
        self.start, self.end = start, end


@dataclass(frozen=True, slots=True)
class Term:
    """`key` is a column's; none: any column will do."""

    test: Test
    key: str = ""
    negated: bool = False

    def of(self, view: TableView) -> Callable[[int], bool]:
        """Whether a row passes, by its place."""
        test, negated = self.test, self.negated
        if not self.key:
            readers = [view.reader(at) for at, column in enumerate(view.columns) if not (column.right and column.by)]
            return lambda n: any(test(read(n)) for read in readers) is not negated
        at = find_column(view.columns, self.key)
        if at is None:  # a table may have fewer columns than when this was typed
            return lambda n: False
        read = view.reader(at)
        return lambda n: test(read(n)) is not negated


@dataclass(frozen=True, slots=True)
class Filter:
    """`text` as typed. An empty filter lets all through."""

    text: str = ""
    terms: tuple[Term, ...] = ()

    def places(self, view: TableView) -> Sequence[int]:
        """Of the rows that pass."""
        places: Sequence[int] = range(len(view.rows))
        for term in self.terms:
            places = list(filter(term.of(view), places))
        return places


def parse_filter(text: str, columns: Sequence[Column]) -> Filter:
    """Raises FilterError, which names what it does not understand and what it could have been."""
    if text.count('"') % 2:
        raise FilterError("this quote is not closed", text.rindex('"'), len(text))
    return Filter(text.strip(), tuple(_term(token, columns) for token in TOKEN.finditer(text)))


def _term(token: re.Match[str], columns: Sequence[Column]) -> Term:
    match = TERM.fullmatch(token[0])
    assert match is not None
    try:
        return _read(match, columns)
    except ValueError as error:
        raise FilterError(f"{token[0]}: {error}", token.start(), token.end()) from None


def _read(match: re.Match[str], columns: Sequence[Column]) -> Term:
    """Raises ValueError."""
    negated, key, sign, wanted = bool(match["no"]), match["key"], match["sign"], match["value"].replace('"', "")
    at = find_column(columns, key or "")
    if key is None or (at is None and RUN_ID.fullmatch(match[0])):
        if negated and not wanted:
            raise ValueError("what is not wanted comes after it")
        return Term(_word(wanted if key is None else match[0]), "", negated)
    if at is None:
        raise ValueError(_no_key(key, columns))
    column = columns[at]
    if sign in ORDER:
        return Term(_compare(column, sign, wanted), column.key, negated)
    if not wanted:
        raise ValueError("a value comes after it")
    test = _pattern(wanted) if sign.endswith("~") else _equal(column, wanted)
    return Term(test, column.key, negated is not sign.startswith("!"))


def _no_key(key: str, columns: Sequence[Column]) -> str:
    known = [column.key for column in columns if column.key]
    begun = [name for name in known if name.startswith(key.lower())]
    near = begun or difflib.get_close_matches(key.lower(), known, 2)
    meant = f"did you mean {' or '.join(near)}?" if near else f"there are {' '.join(known[:LISTED])}"
    return f"no column {key!r}; {meant}"


def _word(wanted: str) -> Test:
    """In words of any column, in any case; numbers are asked for by their key."""
    folded = wanted.casefold()

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return folded in value.casefold()
        return isinstance(value, list | tuple | dict) and any(map(test, value))

    return test


def _equal(column: Column, wanted: str) -> Test:
    folded = wanted.casefold()
    try:
        amount: float | None = read_amount(column.by, wanted)
    except ValueError:
        amount = None

    def test(value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return folded in ((UNKNOWN,) if value is None else ("yes", "true") if value else ("no", "false"))
        if isinstance(value, int | float):
            return value == amount
        if isinstance(value, list | tuple | dict):
            return any(str(part).casefold() == folded for part in value)
        return str(value).casefold() == folded

    return test


def _compare(column: Column, sign: str, wanted: str) -> Test:
    """What is not known is neither more nor less. Raises ValueError."""
    if column.by.endswith("_ms"):
        raise ValueError(f"{column.key} is a time of day, which is neither more nor less")
    try:
        limit = read_amount(column.by, wanted)
    except ValueError as error:
        raise ValueError(f"{column.key} counts {error}") from None
    holds = ORDER[sign]

    def test(value: Any) -> bool:
        if isinstance(value, str):
            try:
                value = read_amount(column.by, value)
            except ValueError:
                return False
        return isinstance(value, int | float) and holds(value, limit)

    return test


def _pattern(wanted: str) -> Test:
    """RE2 takes a time that grows with the text alone, whatever the pattern is. Raises ValueError."""
    import re2

    options = re2.Options()
    options.case_sensitive, options.log_errors = False, False
    try:
        pattern = re2.compile(wanted, options)
    except re2.error as error:
        why = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise ValueError(f"this is no pattern: {why}") from None

    def test(value: Any) -> bool:
        if isinstance(value, list | tuple | dict):
            return any(map(test, value))
        text = value if isinstance(value, str) else "" if value is None else str(value)
        return text != "" and pattern.search(text[:LOOKED_AT]) is not None

    return test
