"""Dialogs of text: explanations, help, a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from opsconsole.ui.actions import ACTIONS, shown_key


class TextScreen(ModalScreen[None]):
    """Lines to read; any of the usual keys goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,x,question_mark", "back", "back")]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self.text_title, self.lines = title, list(lines)

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as box:
            box.border_title = self.text_title
            yield Static("\n".join(self.lines), markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_back(self) -> None:
        self.dismiss()


class ConfirmScreen(ModalScreen[bool]):
    """A question whose fresh Enter says no."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "no", "no")]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self.text_title, self.lines = title, list(lines)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self.text_title
            yield Static("\n".join(self.lines), markup=False)
            with Horizontal(classes="buttons"):
                yield Button("No", id="no", variant="primary")
                yield Button("Yes", id="yes", variant="error")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def action_no(self) -> None:
        self.dismiss(False)

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


def help_lines() -> list[str]:
    """Every key and command, from the registry."""
    lines = []
    for group in dict.fromkeys(action.group for action in ACTIONS):
        lines += ["", group.capitalize()]
        for action in (a for a in ACTIONS if a.group == group):
            keys = " ".join(shown_key(key) for key in action.keys)
            lines.append(f"  {keys:12} :{action.name:16} {action.help}")
    return lines[1:]
