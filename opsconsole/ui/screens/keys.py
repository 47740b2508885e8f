"""The keymap editor: actions with their keys; a new key is pressed, not spelt. Clashes are refused with both names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.ui.actions import ACTIONS, BY_NAME
from opsconsole.ui.keymap import KeyClash, Keymap
from opsconsole.ui.messages import RowOpened
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.widgets.painting import entitle
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.base import ConsoleBase

COLUMNS = (Column("ACTION", 18), Column("KEYS", 16), Column("WHAT", 30, grow=True))
HOW = "Enter: another key for it   a: one more   Backspace: the usual ones   Del: none   Esc: back"


def keys_table(keymap: Keymap) -> TableView:
    """Own keys are told apart by a word, not only by a colour."""
    rows = []
    for action in ACTIONS:
        own = action.name in keymap.own
        keys = keymap.shown(action.name) or "–"
        cells = (Cell(action.name), Cell(f"{keys} (own)" if own else keys, "accent" if own else ""), Cell(action.help))
        rows.append(Row(action.name, cells, {"action": action.name, "keys": keys}))
    return TableView("Keys", COLUMNS, tuple(rows), "")


class KeysScreen(LiveScreen[None]):
    """What is changed counts at once and is written to the file at once."""

    DEFAULT_CSS = """
    KeysScreen { align: center middle; }
    KeysScreen > .dialog { width: 96%; max-width: 130; height: 94%; background: $surface; padding: 0 1; }
    KeysScreen > .dialog { border: round $accent; border-title-color: $accent; }
    KeysScreen Table { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back"),
        Binding("a", "press_key(True)"),
        Binding("backspace", "usual"),
        Binding("delete", "no_key"),
    ]

    def __init__(self, console: ConsoleBase) -> None:
        super().__init__()
        self.console = console
        self.waits_for = ""  # the action whose key is pressed next
        self.adds = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Table(id="keys-table")
            yield Static(HOW, id="keys-note", markup=False)

    def on_mount(self) -> None:
        entitle(self.query_one(Vertical), "Keys")
        self.table.styles.height = "1fr"
        self.table.show(keys_table(self.console.keymap))
        self.table.focus()

    @property
    def table(self) -> Table:
        return self.query_one("#keys-table", Table)

    def say(self, text: str) -> None:
        self.query_one("#keys-note", Static).update(text)

    def takes(self, event: events.Key) -> bool:
        """The key for the action that waits for one; Esc leaves it as it was."""
        name, self.waits_for = self.waits_for, ""
        if not name:
            return False
        if event.key == "escape":
            self.say(HOW)
            return True
        before = self.console.keymap.of(name) if self.adds else ()
        self._change(name, (*before, event.key))
        return True

    def on_row_opened(self, message: RowOpened) -> None:
        message.stop()
        self.action_press_key(False)

    def action_press_key(self, add: bool) -> None:
        row = self.table.cursor_row
        if row is not None:
            self.waits_for, self.adds = row.key, add
            self.say(
                f"Press the {'additional' if add else 'new'} key for {row.key}: {BY_NAME[row.key].help}. Esc: as it was"
            )

    def action_usual(self) -> None:
        if (row := self.table.cursor_row) is not None:
            self._change(row.key, BY_NAME[row.key].keys)

    def action_no_key(self) -> None:
        if (row := self.table.cursor_row) is not None:
            self._change(row.key, ())

    def _change(self, name: str, keys: tuple[str, ...]) -> None:
        try:
            keymap = self.console.keymap.changed(name, tuple(dict.fromkeys(keys)))
        except KeyClash as clash:
            self.say(f"Not changed: {clash}")
            return
        self.console.use_keys(keymap)
        self.table.show(keys_table(keymap))
        self.console.draw_lines()
        said = f"{name}: {keymap.shown(name) or 'no key'}"
        try:
            self.say(f"{said}; written to {self.console.desk.save_keys(keymap.written())}")
        except OSError as error:
            self.say(f"{said} until this console ends; not written: {error}")
