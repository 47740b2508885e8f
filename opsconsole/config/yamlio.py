"""A careful reader of YAML: values with their lines, no surprises of YAML 1.1, every error of a file collected.

It works on PyYAML's nodes and keeps scalars as they were typed; what a field means decides how its text is read. So
`no` can be a name, `010` is never eight and `8:00` never 480.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.units import parse_instant_ms, parse_percent_ppm, parse_size_bytes, parse_span_ms

T = TypeVar("T")
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MOST_BYTES = 64 << 20
MOST_DEPTH = 40
MOST_NODES = 2_000_000
MOST_TEXT = 1000
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


class Source:
    """One file being read. Readers return None where a value is wrong, and the problem is kept."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.content = file, text
        self.problems: list[Problem] = []

    @classmethod
    def open(cls, path: str) -> Source:
        """`-` is the standard input. Raises ConfigError where the file cannot be read as text."""
        name = "<stdin>" if path == "-" else path
        try:
            raw = sys.stdin.buffer.read(MOST_BYTES + 1) if path == "-" else _read(Path(path))
            if len(raw) > MOST_BYTES:
                raise ValueError(f"is larger than {MOST_BYTES >> 20} MiB")
            return cls(name, raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            what, fix = f"is not UTF-8 text (byte {error.start})", "save it as UTF-8"
        except OSError as error:
            what, fix = f"cannot be read: {error.strerror}", "check the path and its permissions"
        except ValueError as error:
            what, fix = str(error), "split it"
        raise ConfigError([Problem(name, 0, "", what, fix)])

    def fail(self, node: Node | None, field: str, what: str, fix: str = "") -> None:
        line = node.start_mark.line + 1 if node is not None else 0
        self.problems.append(Problem(self.file, line, field, what, fix))

    def check(self) -> None:
        """Raises ConfigError with all problems, if there are any."""
        if self.problems:
            raise ConfigError(self.problems)

    # -- structure -------------------------------------------------------------------------------------------------

    def root(self) -> Node:
        """The document. Raises ConfigError where it is not one well-formed, bounded YAML document."""
        try:
            self._check_events()
            node: Node | None = yaml.compose(self.content, Loader=LOADER)
        except yaml.YAMLError as error:
            self._syntax(error)
            node = None
        if node is None and not self.problems:
            self.fail(None, "", "is empty", "see docs/inventory.md for an example")
        self.check()
        assert node is not None
        self._check_size(node)
        self.check()
        return node

    def _check_events(self) -> None:
        """Depth, tags and number of documents, before anything recursive runs."""
        depth = documents = 0
        for event in yaml.parse(self.content, Loader=LOADER):
            if isinstance(event, yaml.events.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.events.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.events.DocumentStartEvent):
                documents += 1
            tag = getattr(event, "tag", None)
            line = event.start_mark.line + 1 if event.start_mark else 0
            if depth > MOST_DEPTH:
                self.problems.append(Problem(self.file, line, "", f"is nested deeper than {MOST_DEPTH} levels"))
            elif documents > 1:
                self.problems.append(Problem(self.file, line, "", "holds a second document", "remove the line ---"))
            elif tag not in (None, "!"):
                self.problems.append(Problem(self.file, line, "", f"the tag {tag} is not allowed", "remove it"))
            self.check()

    def _check_size(self, node: Node) -> None:
        """Walks the document as it would be expanded: aliases must not blow it up, or hold themselves."""
        seen, pending = 0, [(node, 0)]
        while pending:
            at, depth = pending.pop()
            seen += 1
            if seen > MOST_NODES or depth > MOST_DEPTH:
                self.fail(at, "", "aliases expand without bound", "write the values out")
                return
            if isinstance(at, SequenceNode):
                pending.extend((child, depth + 1) for child in at.value)
            elif isinstance(at, MappingNode):
                pending.extend((child, depth + 1) for pair in at.value for child in pair)

    def _syntax(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        lines = self.content.splitlines()
        near = lines[line - 1] if 0 < line <= len(lines) else ""
        if "\t" in near:
            what, fix = "a tab is used for spacing, which YAML does not allow", "use spaces"
        else:
            fix = "check quotes, colons and indentation here"
        self.problems.append(Problem(self.file, line, "", what, fix))

    def mapping(self, node: Node | None, field: str, known: Iterable[str] | None = None) -> dict[str, Node]:
        """The entries of a mapping by key. Duplicate and unknown keys are problems; `known` None takes any key."""
        if not isinstance(node, MappingNode):
            if node is not None:
                self.fail(node, field, f"expected keys and values, got {_kind(node)}")
            return {}
        names = None if known is None else list(known)
        entries: dict[str, Node] = {}
        for key_node, value in node.value:
            key = key_node.value if isinstance(key_node, ScalarNode) else None
            path = f"{field}.{key}" if field else str(key)
            if key is None:
                self.fail(key_node, field, "a key must be plain text")
            elif key in entries:
                self.fail(key_node, path, "stands twice", f"first in line {entries[key].start_mark.line + 1}; keep one")
            elif names is not None and key not in names:
                self.fail(key_node, path, "is not known", suggestion(key, names))
            else:
                entries[key] = value
        return entries

    def sequence(self, node: Node | None, field: str) -> list[Node]:
        if isinstance(node, SequenceNode):
            return list(node.value)
        if node is not None:
            self.fail(node, field, f"expected a list, got {_kind(node)}", "start each entry with a dash")
        return []

    # -- scalars ---------------------------------------------------------------------------------------------------

    def scalar(self, node: Node | None, field: str) -> str | None:
        """The text of a scalar as it was typed; an empty or null value is a problem."""
        if node is None:
            return None
        if not isinstance(node, ScalarNode):
            self.fail(node, field, f"expected one value, got {_kind(node)}")
            return None
        if node.style is None and node.value in ("", "~", "null", "Null", "NULL"):
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
        return self.parsed(node, field, _plain)

    def boolean(self, node: Node | None, field: str) -> bool | None:
        return self.parsed(node, field, _boolean)

    def integer(self, node: Node | None, field: str, least: int, most: int) -> int | None:
        return self.parsed(node, field, lambda text: parse_integer(text, least, most))

    def decimal(self, node: Node | None, field: str, digits: int, most: int) -> Decimal | None:
        """A number of at least 0, exact to so many digits."""
        return self.parsed(node, field, lambda text: parse_decimal(text, digits, most))

    def span_ms(self, node: Node | None, field: str, least: int = 0, most: int | None = None) -> int | None:
        return self.parsed(node, field, lambda text: _bounded_span(text, least, most))

    def percent_ppm(self, node: Node | None, field: str) -> int | None:
        return self.parsed(node, field, parse_percent_ppm)

    def size_bytes(self, node: Node | None, field: str) -> int | None:
        return self.parsed(node, field, parse_size_bytes)

    def instant_ms(self, node: Node | None, field: str) -> int | None:
        return self.parsed(node, field, parse_instant_ms)

    def choice(self, node: Node | None, field: str, options: Iterable[str]) -> str | None:
        return self.parsed(node, field, lambda text: parse_choice(text, list(options)))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


def _kind(node: Node) -> str:
    if isinstance(node, SequenceNode):
        return "a list"
    return "keys and values" if isinstance(node, MappingNode) else repr(node.value)


def suggestion(word: str, known: Iterable[str]) -> str:
    """What may have been meant; else what there is."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(names[:30])
    return f"known: {shown}{', …' if len(names) > 30 else ''}" if names else "there are none"


def _plain(text: str) -> str:
    if len(text) > MOST_TEXT:
        raise ValueError(f"is longer than {MOST_TEXT} characters")
    if _CONTROL.search(text):
        raise ValueError("holds control characters; remove them")
    return text


def _boolean(text: str) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise ValueError(f"expected true or false, got {text!r}")


def parse_integer(text: str, least: int, most: int) -> int:
    """A plain decimal number between the bounds. Raises ValueError."""
    if re.fullmatch(r"-?0[0-7_]+", text) or re.fullmatch(r"0[xob].*", text):
        raise ValueError(f"{text!r} reads as another base in YAML; write a plain decimal number")
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"expected a whole number, got {text!r}")
    value = int(text)
    if not least <= value <= most:
        raise ValueError(f"{value} is outside {least} to {most}")
    return value


def parse_decimal(text: str, digits: int, most: int) -> Decimal:
    """A number from 0 to `most` with at most so many digits behind the point. Raises ValueError."""
    if not re.fullmatch(rf"\d{{1,15}}(\.\d{{1,{digits}}})?", text) or (len(text) > 1 and re.match(r"0\d", text)):
        raise ValueError(f"expected a number of at least 0 with at most {digits} digits behind the point, got {text!r}")
    value = Decimal(text)
    if value > most:
        raise ValueError(f"{text} is more than {most}")
    return value


def parse_choice(text: str, options: list[str]) -> str:
    if text in options:
        return text
    raise ValueError(f"{text!r} is none of {', '.join(options)}")


def _bounded_span(text: str, least: int, most: int | None) -> int:
    from opsconsole.config.units import format_span

    value = parse_span_ms(text)
    if value < least or (most is not None and value > most):
        upper = f" to {format_span(most)}" if most is not None else " or more"
        raise ValueError(f"{text} is outside {format_span(least)}{upper}")
    return value
