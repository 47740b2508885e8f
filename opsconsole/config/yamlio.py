"""A careful reader of YAML: values with their lines, no surprises of YAML 1.1, every error of a file collected.

It keeps scalars as they were typed; what a field means decides how its text is read. So `no` can be a name, `010` is
never eight and `8:00` never 480. Readers return None where a value is absent or wrong; the problem is kept.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from opsconsole.config.document import read_document
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.scalars import (
    CONTROL,
    parse_boolean,
    parse_choice,
    parse_decimal,
    parse_integer,
    parse_text,
    shown,
    suggestion,
)
from opsconsole.config.units import (
    parse_instant_ms,
    parse_percent_ppm,
    parse_size_bytes,
    parse_span_between,
)

T = TypeVar("T")
MOST_BYTES = 64 << 20
MOST_PROBLEMS = 10_000
_EMPTY = ("", "~", "null", "Null", "NULL")


class Source:
    """One file being read."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.content = file, text
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    @classmethod
    def open(cls, path: str, most_bytes: int = MOST_BYTES) -> Source:
        """`-` is the standard input. Raises ConfigError where the file cannot be read as text."""
        name, raw = read_named(path, most_bytes)
        try:
            return cls(name, raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise ConfigError([Problem(name, line, "", "is not UTF-8 text", "save it as UTF-8")]) from None

    def fail(self, node: Node | None, field: str, what: str, fix: str = "") -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(self._problem(node, field, what, fix, warning=False))

    def warn(self, node: Node | None, field: str, what: str, fix: str = "") -> None:
        self.warnings.append(self._problem(node, field, what, fix, warning=True))

    def _problem(self, node: Node | None, field: str, what: str, fix: str, warning: bool) -> Problem:
        mark = node.start_mark if node is not None else None
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        return Problem(self.file, line, field, what, fix, column, warning)

    def check(self) -> None:
        """Raises ConfigError with all problems, if there are any."""
        if self.problems:
            raise ConfigError(self.problems)

    # -- structure -------------------------------------------------------------------------------------------------

    def root(self) -> Node:
        """The document. Raises ConfigError where it is not one well-formed, bounded YAML document."""
        return read_document(self.file, self.content)

    def mapping(self, node: Node | None, field: str, known: Iterable[str] | None = None) -> dict[str, Node]:
        """The entries of a mapping by key. Duplicate and unknown keys are problems; `known` None takes any key."""
        if node is None or not self._is(node, field, MappingNode, "keys and values", "write them as key: value"):
            return {}
        names = None if known is None else list(known)
        entries: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key_node, value in node.value:
            key = self._key(key_node, field)
            path = f"{field}.{key}" if field else str(key)
            if key is None:
                continue
            if key in lines:
                self.fail(key_node, path, "stands twice", f"first in line {lines[key]}; keep one")
            elif names is not None and key not in names:
                self.fail(key_node, path, "is not known", suggestion(key, names))
            else:
                entries[key] = value
            lines.setdefault(key, key_node.start_mark.line + 1)
        return entries

    def _key(self, node: Node, field: str) -> str | None:
        """A key as text; it becomes part of messages, so it is plain."""
        if not isinstance(node, ScalarNode):
            self.fail(node, field, "a key must be plain text", "put it into quotes if it holds brackets")
        elif node.value == "<<" and not node.style:
            self.fail(node, field, "merge keys (<<) are not read", "write the keys out here")
        elif not node.value or len(node.value) > 200 or CONTROL.search(node.value):
            self.fail(node, field, f"{shown(node.value)} is no key", "use up to 200 plain characters")
        else:
            return str(node.value)
        return None

    def sequence(self, node: Node | None, field: str) -> list[Node]:
        if node is None or not self._is(node, field, SequenceNode, "a list", "start each entry with a dash"):
            return []
        return list(node.value)

    def _is(self, node: Node, field: str, kind: type[Node], wanted: str, fix: str) -> bool:
        if isinstance(node, kind):
            return True
        if is_empty(node):
            self.fail(node, field, "has no value", "write one, or remove the key")
        else:
            self.fail(node, field, f"expected {wanted}, got {_kind(node)}", fix)
        return False

    # -- scalars ---------------------------------------------------------------------------------------------------

    def scalar(self, node: Node | None, field: str) -> str | None:
        """The text of a scalar as it was typed; an empty or null value is a problem."""
        if node is None or not self._is(node, field, ScalarNode, "one value", "write a single word or number"):
            return None
        if is_empty(node):
            self.fail(node, field, "has no value", "write one, or remove the key")
            return None
        return str(node.value)

    def parsed(self, node: Node | None, field: str, parse: Callable[[str], T]) -> T | None:
        """A scalar through a parser whose ValueError says what is wrong."""
        text = self.scalar(node, field)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            self.fail(node, field, what, fix)
            return None

    def text(self, node: Node | None, field: str) -> str | None:
        return self.parsed(node, field, parse_text)

    def boolean(self, node: Node | None, field: str) -> bool | None:
        return self.parsed(node, field, parse_boolean)

    def integer(self, node: Node | None, field: str, least: int, most: int) -> int | None:
        return self.parsed(node, field, lambda text: parse_integer(text, least, most))

    def decimal(self, node: Node | None, field: str, digits: int, most: int) -> Decimal | None:
        """A number of at least 0, exact to so many digits."""
        return self.parsed(node, field, lambda text: parse_decimal(text, digits, most))

    def span_ms(self, node: Node | None, field: str, least: int = 0, most: int | None = None) -> int | None:
        return self.parsed(node, field, lambda text: parse_span_between(text, least, most))

    def percent_ppm(self, node: Node | None, field: str) -> int | None:
        return self.parsed(node, field, parse_percent_ppm)

    def size_bytes(self, node: Node | None, field: str) -> int | None:
        return self.parsed(node, field, parse_size_bytes)

    def instant_ms(self, node: Node | None, field: str) -> int | None:
        return self.parsed(node, field, parse_instant_ms)

    def choice(self, node: Node | None, field: str, options: Iterable[str]) -> str | None:
        return self.parsed(node, field, lambda text: parse_choice(text, options))


def is_empty(node: Node) -> bool:
    """A key without value, or null: never taken for a default."""
    return isinstance(node, ScalarNode) and not node.style and node.value in _EMPTY


def read_named(path: str, most_bytes: int) -> tuple[str, bytes]:
    """(name for messages, content); `-` is the standard input. Raises ConfigError where it cannot be read."""
    name = "<stdin>" if path == "-" else path
    try:
        raw = sys.stdin.buffer.read(most_bytes + 1) if path == "-" else read_plain(Path(path), most_bytes)
        if raw is None:
            raise ValueError("is not a plain file; what another command writes is read from the standard input: -")
        if len(raw) > most_bytes:
            raise ValueError(f"is larger than {most_bytes >> 20} MiB; split it")
    except (OSError, ValueError) as error:
        what = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        fix = "check the path and its permissions" if isinstance(error, OSError) else ""
        raise ConfigError([Problem(name, 0, "", what, fix)]) from None
    return name, raw


def read_plain(path: Path, most_bytes: int) -> bytes | None:
    """One byte more where there is more. None: no plain file; a pipe or a device might never end, or never begin.

    Raises OSError.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(most_bytes + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None


def _kind(node: Node) -> str:
    if isinstance(node, SequenceNode):
        return "a list"
    return "keys and values" if isinstance(node, MappingNode) else shown(node.value)
