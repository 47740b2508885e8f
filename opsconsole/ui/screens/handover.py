"""The handover as it is written down: to read, and to take along."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from opsconsole.ui.screens.text import Text, TextScreen
from opsconsole.ui.widgets.painting import entitle


class HandoverScreen(TextScreen):
    """`copy` says where the text went."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "copy")]

    def __init__(self, markdown: str, copy: Callable[[str], str]) -> None:
        super().__init__(Text("Handover (y copies it)", markdown.splitlines()))
        self.markdown, self.copy = markdown, copy

    def action_copy(self) -> None:
        entitle(self.query_one(VerticalScroll), self.copy(self.markdown))
