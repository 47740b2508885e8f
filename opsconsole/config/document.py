"""One YAML text to one tree of nodes, bounded in size, depth and growth before anybody walks it.

The tree is built here from the parser's events, without recursion and without YAML's guesses about types: a scalar
keeps the text that was typed. Aliases are allowed as long as the document, written out, stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.scalars import CONTROL, shown

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MOST_DEPTH = 40
MOST_NODES = 2_000_000
MOST_GROWTH = 10_000  # nodes that aliases may add
_BARE_RANGE = re.compile(r"\{.*:\s*([\w.-]+\[[\w,-]*\][\w.,\[\]-]*)\s*[,}]")  # {name: gpu[01-04], …
_LAYOUT = "\t\n\r\x85\ufeff\u2028\u2029"


def read_document(file: str, content: str) -> Node:
    """The only document of the text. Raises ConfigError where it is not well-formed or not bounded."""
    try:
        _no_control_characters(file, content)
        return _Composer(file).compose(yaml.parse(content, Loader=LOADER))
    except yaml.YAMLError as error:
        raise ConfigError([_syntax(file, content, error)]) from None


def _no_control_characters(file: str, content: str) -> None:
    for found in CONTROL.finditer(content):
        if found[0] not in _LAYOUT and (found[0] < "\x20" or found[0] == "\x7f"):
            line = content.count("\n", 0, found.start()) + 1
            fix = "remove it; is this a text file?"
            raise ConfigError([Problem(file, line, "", f"holds the control character {found[0]!r}", fix)])


def _syntax(file: str, content: str, error: yaml.YAMLError) -> Problem:
    """The parser's complaint, with the usual cause where it can be seen."""
    mark = getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
    lines = content.splitlines()
    near = lines[line - 1] if 0 < line <= len(lines) else ""
    if "\t" in near[: len(near) - len(near.lstrip()) + 1]:
        return Problem(file, line, "", "a tab is used for spacing, which YAML does not allow", "use spaces", column)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "is not well-formed"
    if near.lstrip().startswith(("%", "@", "`")) or ": %" in near or ": @" in near or ": `" in near:
        return Problem(file, line, "", what, "put the text into quotes", column)
    if (found := _BARE_RANGE.search(near)) is not None:
        return Problem(file, line, "", "brackets stand without quotes", f'write "{found[1]}"', column)
    return Problem(file, line, "", what, "check quotes, colons and indentation here", column)


class _Composer:
    """Events in, tree out. Refuses tags, second documents, undefined aliases, loops, and what has no bound."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Node | None = None
        self.open: list[Any] = []  # collections not yet closed, outermost first
        self.sizes: list[int] = []  # nodes in each of them, aliases written out
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.waiting: list[str | None] = []  # the anchors of the open collections
        self.nodes = self.documents = 0

    def compose(self, events: Iterator[Any]) -> Node:
        for event in events:
            if isinstance(event, yaml.events.NodeEvent):
                self._node(event)
            elif isinstance(event, yaml.events.CollectionEndEvent):
                self._close()
            elif isinstance(event, yaml.events.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    self._refuse(event, "holds a second document", "remove the line ---")
        if self.root is None or (isinstance(self.root, ScalarNode) and not self.root.value):
            raise ConfigError([Problem(self.file, 0, "", "is empty", "see docs/inventory.md for an example")])
        return self.root

    def _node(self, event: Any) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            self._refuse(event, f"holds more than {MOST_NODES} values", "split it")
        if isinstance(event, yaml.events.AliasEvent):
            self._alias(event)
            return
        if event.tag not in (None, "!"):
            self._refuse(event, f"the tag {shown(event.tag)} is not allowed", "remove it")
        if isinstance(event, yaml.events.ScalarEvent):
            self._scalar(event)
            return
        kind: type[Any] = SequenceNode if isinstance(event, yaml.events.SequenceStartEvent) else MappingNode
        self.open.append(kind("", [], event.start_mark, event.end_mark))
        self.sizes.append(1)
        self.waiting.append(event.anchor)
        if len(self.open) > MOST_DEPTH:
            self._refuse(event, f"is nested deeper than {MOST_DEPTH} levels", "flatten it")

    def _scalar(self, event: Any) -> None:
        node = ScalarNode("", event.value, event.start_mark, event.end_mark, style=event.style)
        if event.anchor:
            self.anchors[event.anchor] = (node, 1)
        self._add(node, 1)

    def _alias(self, event: Any) -> None:
        if event.anchor in self.waiting:
            self._refuse(event, f"the alias *{event.anchor} holds itself", "write the values out")
        if event.anchor not in self.anchors:
            self._refuse(event, f"the alias *{event.anchor} stands before its anchor, or there is none")
        node, size = self.anchors[event.anchor]
        if sum(self.sizes) + size - self.nodes > MOST_GROWTH:
            self._refuse(event, "aliases expand without bound", "write the values out")
        self._add(node, size)

    def _close(self) -> None:
        node, size, anchor = self.open.pop(), self.sizes.pop(), self.waiting.pop()
        if isinstance(node, MappingNode):
            node.value = list(zip(node.value[::2], node.value[1::2], strict=True))
        if anchor:
            self.anchors[anchor] = (node, size)
        self._add(node, size)

    def _add(self, node: Node, size: int) -> None:
        if self.open:
            self.open[-1].value.append(node)
            self.sizes[-1] += size
        else:
            self.root = node

    def _refuse(self, event: Any, what: str, fix: str = "") -> None:
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise ConfigError([Problem(self.file, line, "", what, fix, column)])
