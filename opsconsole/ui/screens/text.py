"""Dialogs of text: explanations that stay live, help, a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from opsconsole.presenting.rows import TableView
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import ACTIONS, shown_key
from opsconsole.ui.widgets.table import Table

Live = Callable[[ClusterView], "Text"]


class Text:
    """What a dialog shows: lines, and a table below them where there is one."""

    def __init__(self, title: str, lines: Sequence[str], table: TableView | None = None) -> None:
        self.title, self.lines, self.table = clean(title, 120), [clean(line) for line in lines], table


class TextScreen(ModalScreen[None]):
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
        self.query_one(VerticalScroll).border_title = self.text.title.replace("[", "\\[")
        self.query_one("#text-lines", Static).update("\n".join(self.text.lines))
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

    def action_back(self) -> None:
        self.dismiss()


class ConfirmScreen(ModalScreen[bool]):
    """A question whose fresh Enter says no."""

    CSS_PATH = "text.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "no", "no")]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self.text = Text(title, lines)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self.text.title, markup=False)
            yield Static("\n".join(self.text.lines[:12]), markup=False)
            with Horizontal(classes="buttons"):
                yield Button("No", id="no", compact=True)
                yield Button("Yes", id="yes", compact=True)

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def action_no(self) -> None:
        self.dismiss(False)

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


def help_lines() -> list[str]:
    """Every key and command, from the registry."""
    lines = ["Nothing changes the cluster but D C U R K (and :hold :release), and those only open a plan.", ""]
    for group in dict.fromkeys(action.group for action in ACTIONS):
        lines.append(group.capitalize())
        for action in (a for a in ACTIONS if a.group == group):
            keys = " ".join(shown_key(key) for key in action.keys)
            lines.append(f"  {keys:14} :{(action.name + ' ' + action.usage).strip():24} {action.help}")
        lines.append("")
    return lines[:-1]
