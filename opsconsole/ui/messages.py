"""Messages between widgets and screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from opsconsole.ui.widgets.table import Table


@dataclass
class RowOpened(Message):
    """Enter or a double click on a row of a table."""

    key: str
    """Key of the row."""


@dataclass
class RowsChanged(Message):
    """The cursor, the marks, the filter or the order of a table are different now."""

    summary: str
    """How many rows are shown and marked, for a title."""


@dataclass
class Rearranged(Message):
    """A person sorted a table, or chose its columns: to be remembered."""

    table: Table
    """Which one."""


@dataclass
class LineEntered(Message):
    """A command or a filter was typed and confirmed with Enter."""

    kind: str
    """`:` for a command, `/` for a filter."""
    text: str
    """What was typed, without the first character."""


@dataclass
class LineTyped(Message):
    """A filter as it is being typed."""

    kind: str
    """`:` or `/`."""
    text: str
    """What stands there now."""


@dataclass
class LineLeft(Message):
    """Esc in the line."""

    kind: str
    """`:` or `/`."""
