"""Dialogs that arrange a table: by which columns it is sorted, which it shows, which view it is. What is chosen shows
at once behind them; Esc puts back what was."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from opsconsole.presenting.arranging import View
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.sorting import stepped
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import BY_NAME, table_bindings
from opsconsole.ui.messages import Rearranged, RowOpened
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.widgets.painting import entitle, sort_sign
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.arranging import Arranging

FRAME = 6  # lines of the dialog that are no rows
COLUMNS = (Column("", 3), Column("COLUMN", 16, grow=True), Column("KEY", 16))


class Choices(Table, inherit_bindings=False):
    """One moves in it; all other keys are the dialog's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding
        for binding in table_bindings()
        if isinstance(binding, Binding) and binding.id and BY_NAME[binding.id].group == "move"
    ]


class PickScreen(LiveScreen[None]):
    """`how` tells its keys. Subclasses say what can be picked, and what a key does with it."""

    DEFAULT_CSS = """
    PickScreen { align: center middle; background: $background 0%; }
    PickScreen > Vertical {
        width: 60; max-width: 96%; height: auto; max-height: 94%; background: $surface;
        border: round $accent; border-title-color: $accent; padding: 0 1;
    }
    PickScreen Table { height: auto; max-height: 100%; background: $surface; }
    PickScreen Static { color: $quiet; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave"),
        Binding("enter", "take"),
        Binding("space", "step"),
        Binding("backspace,delete", "reset"),
    ]
    TITLE = ""
    how = ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Choices(id="pick-table")
            yield Static(self.how, id="pick-how", markup=False)

    def on_mount(self) -> None:
        entitle(self.query_one(Vertical), self.TITLE)
        self.refill()
        self.list.focus()

    @property
    def list(self) -> Table:
        return self.query_one("#pick-table", Table)

    @property
    def picked(self) -> str:
        """The key of the row under the cursor; empty where there is none."""
        return self.list.rowset.cursor or ""

    def refill(self) -> None:
        view = self.rows()
        self.list.show(view)
        room = self.app.size.height - FRAME
        self.list.styles.height = max(2, min(len(view.rows) + 1, room))

    def on_resize(self) -> None:
        if self.is_mounted:
            self.refill()

    def update_from(self, view: ClusterView) -> None:
        if self.is_mounted:
            self.refill()

    def on_row_opened(self, message: RowOpened) -> None:
        message.stop()
        self.take(message.key)

    def on_rearranged(self, message: Rearranged) -> None:
        message.stop()

    def action_step(self) -> None:
        if self.picked:
            self.step(self.picked)
            self.refill()

    def action_take(self) -> None:
        if self.picked:
            self.take(self.picked)

    def action_reset(self) -> None:
        self.reset()
        self.refill()

    def action_leave(self) -> None:
        self.undo()
        self.dismiss()

    def rows(self) -> TableView:
        raise NotImplementedError

    def take(self, key: str) -> None:
        """Enter, or a double click."""

    def step(self, key: str) -> None:
        """Space."""

    def reset(self) -> None:
        """Backspace."""

    def undo(self) -> None:
        """Esc."""


class _Arranges(PickScreen):
    """Picks columns of a table."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        self.was = table.arrangement

    def rows(self) -> TableView:
        rows = tuple(
            Row(column.key, (Cell(self.sign(column.key), "accent"), Cell(column.title), Cell(column.key, "dim")))
            for column in self.table.rowset.view.columns
            if column.key
        )
        return TableView(self.TITLE, COLUMNS, rows)

    def sign(self, key: str) -> str:
        raise NotImplementedError

    def take(self, key: str) -> None:
        self.dismiss()
        self.table.post_message(Rearranged(self.table))


class SortScreen(_Arranges):
    """The first column that is chosen sorts, the next ones among what is equal."""

    TITLE = "Sort by"
    how = "Space: by this, then ▼, then not   Enter: by this, or as chosen   Backspace: natural   Esc: as it was"

    def sign(self, key: str) -> str:
        return sort_sign(self.table.rowset.order, key)

    def step(self, key: str) -> None:
        self.table.sort(stepped(self.table.rowset.order, key))

    def take(self, key: str) -> None:
        if self.table.rowset.order == self.was.order:
            self.table.sort(stepped(self.was.order if len(self.was.order) == 1 else (), key)[-1:])
        super().take(key)

    def reset(self) -> None:
        self.table.sort(())

    def undo(self) -> None:
        self.table.sort(self.was.order)


class ColumnsScreen(_Arranges):
    """Those that are chosen show at every width; what does not fit is reached sideways."""

    TITLE = "Columns"
    how = "Space: show or hide   Enter: keep   Backspace: the usual ones   Esc: as it was"

    def sign(self, key: str) -> str:
        return "✓" if key in self.table.shown() else ""

    def step(self, key: str) -> None:
        shown = self.table.shown()
        wanted = {*shown} ^ {key}
        if wanted:
            self.table.choose([column.key for column in self.table.rowset.view.columns if column.key in wanted])

    def reset(self) -> None:
        self.table.choose(())

    def undo(self) -> None:
        self.table.choose(self.was.columns)


class ViewsScreen(PickScreen):
    """The views that are kept."""

    TITLE = "Views"
    how = "Enter: show it   Del: delete it   Esc: back   :save_view NAME keeps what is shown now"
    COLUMNS = (Column("VIEW", 12, most=40), Column("OF", 8), Column("WHAT", 20, grow=True))

    def __init__(self, console: Arranging) -> None:
        super().__init__()
        self.console = console

    def rows(self) -> TableView:
        rows = tuple(self._row(name, view) for name, view in sorted(self.console.arrangements.kept.views.items()))
        return TableView(self.TITLE, self.COLUMNS, rows, "none is kept yet")

    def _row(self, name: str, view: View) -> Row:
        page, what = self.console.page_of(view.table), clean(view.arrangement.words())
        return Row(name, (Cell(clean(name)), Cell(page or "?", "dim"), Cell(what)))

    def take(self, key: str) -> None:
        self.dismiss()
        self.console.show_view(key)

    def reset(self) -> None:
        if self.picked:
            self.console.delete_view(self.picked)
