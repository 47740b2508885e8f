"""What one has asked to be told of, and what of that has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from opsconsole.presenting.rows import TableView
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.widgets.painting import entitle
from opsconsole.ui.widgets.table import Table

HOW = "Del: tell me no more of it   Esc: back"


class WatchesScreen(LiveScreen[None]):
    """`table` makes it anew, `drop` takes the key of a row."""

    DEFAULT_CSS = """
    WatchesScreen { align: center middle; }
    WatchesScreen > .dialog { width: 96%; max-width: 110; height: 60%; background: $surface; padding: 0 1; }
    WatchesScreen > .dialog { border: round $accent; border-title-color: $accent; }
    WatchesScreen Table { background: $surface; height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "back"), Binding("delete,n", "drop")]

    def __init__(self, table: Callable[[], TableView], drop: Callable[[str], None]) -> None:
        super().__init__()
        self.made, self.drop = table, drop

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Table(id="watches")
            yield Static(HOW, markup=False)

    def on_mount(self) -> None:
        self._show()
        self.query_one(Table).focus()

    def update_from(self, view: ClusterView) -> None:
        if self.is_mounted:
            self._show()

    def action_drop(self) -> None:
        row = self.query_one(Table).cursor_row
        if row is not None:
            self.drop(row.key)
            self._show()

    def _show(self) -> None:
        view = self.made()
        entitle(self.query_one(Vertical), view.title)
        self.query_one(Table).show(view)
