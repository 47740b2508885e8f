"""Dialogs that go on living: each new picture is shown to the one that is open."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

from opsconsole.presenting.view import ClusterView

Answer = TypeVar("Answer")


class LiveScreen(ModalScreen[Answer], Generic[Answer]):
    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Once, and only from the top: of keys in a burst the second finds it left or covered, and Textual would take
        whatever is on top then."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def update_from(self, view: ClusterView) -> None:
        """The picture moved on."""

    def takes(self, event: events.Key) -> bool:
        """Does it want this key, before any binding and before it is mounted?"""
        return False
