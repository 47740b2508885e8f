"""Dialogs of text: explanations that stay live, help, a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text as Plain
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Static

from opsconsole.presenting.rows import TableView
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.widgets.choice import Choice
from opsconsole.ui.widgets.painting import entitle
from opsconsole.ui.widgets.table import Table

TERM = 26  # cells of a term
MOST = 1000  # of a line: what to do stands at the end of it
Live = Callable[[ClusterView], "Text"]


Part = str | tuple[str, str]


class Text:
    """What a dialog shows: lines, and a table below them where there is one.

    A part of two words is a term and what is to be said of it, which stands beside it on as many lines as it needs.
    """

    def __init__(self, title: str, parts: Sequence[Part], table: TableView | None = None) -> None:
        self.title, self.table = clean(title, 120), table
        self.parts: list[Part] = [clean(p, MOST) if isinstance(p, str) else (clean(p[0]), clean(p[1])) for p in parts]

    def drawn(self) -> Group:
        """As text, never as markup."""
        return Group(*(Plain(part) if isinstance(part, str) else _beside(*part) for part in self.parts))


def _beside(term: str, said: str) -> Grid:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=TERM)
    grid.add_column(ratio=1)
    grid.add_row(Plain(term, style="bold"), Plain(said))
    return grid


class TextScreen(LiveScreen[None]):
    """Lines to read; any of the usual keys goes back. With `live` it is made anew from every picture."""

    CSS_PATH = "text.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,x,question_mark", "back", "back"),
        Binding("up,k", "scroll(-1)"),
        Binding("down,j", "scroll(1)"),
        Binding("pageup", "scroll(-10)"),
        Binding("pagedown,space", "scroll(10)"),
        Binding("left_square_bracket", "neighbour(-1)"),
        Binding("right_square_bracket", "neighbour(1)"),
    ]

    def __init__(self, text: Text, live: Live | None = None, neighbour: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self.text, self.live, self.neighbour = text, live, neighbour
        self._drawn: list[Part] = []

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog"):
            yield Static("", id="text-lines", markup=False)
            table = Table(id="text-table")
            table.can_focus = False
            yield table

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._show()

    def update_from(self, view: ClusterView) -> None:
        if self.live is not None and self.is_mounted:
            self.text = self.live(view)
            self._show()

    def _show(self) -> None:
        entitle(self.query_one(VerticalScroll), self.text.title)
        if self.text.parts != self._drawn:
            self._drawn = self.text.parts
            self.query_one("#text-lines", Static).update(self.text.drawn())
        table = self.query_one("#text-table", Table)
        table.set_class(self.text.table is not None, "-shown")
        if self.text.table is not None:
            table.show(self.text.table)
            table.styles.height = min(max(1, len(self.text.table.rows)), 64) + 1
            table.styles.max_height = 65

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_neighbour(self, by: int) -> None:
        if self.neighbour is not None:
            self.neighbour(by)


class ConfirmScreen(LiveScreen[bool]):
    """A question whose fresh Enter says no."""

    CSS_PATH = "text.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "no", "no")]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self.text = Text(title, lines[:12])

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self.text.title, markup=False)
            yield Static(self.text.drawn())
            with Horizontal(classes="buttons"):
                yield Choice("No", "no")
                yield Choice("Yes", "yes")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def action_no(self) -> None:
        self.dismiss(False)

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")
