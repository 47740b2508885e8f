"""A button of a dialog. That it has the focus is a sign, not only a colour."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Button


class Choice(Button):
    """`[ Cancel ]`, and `[>Cancel<]` while Enter would press it."""

    DEFAULT_CSS = """
    Choice { margin: 0 0 0 2; min-width: 12; height: 1; border: none; background: $panel; color: $foreground; }
    Choice:focus { background: $primary; color: $background; text-style: bold !important; }
    """

    def __init__(self, word: str, id: str) -> None:
        super().__init__(Content(f"[ {word} ]"), id=id, compact=True)
        self.word = word
        self.active_effect_duration = 0  # while it lasted, a second press would be lost

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.label = Content(f"[>{self.word}<]" if has_focus else f"[ {self.word} ]")
