"""Dialogs that go on living: each new picture is shown to the one that is open."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual import events
from textual.screen import ModalScreen

from opsconsole.presenting.view import ClusterView

Answer = TypeVar("Answer")


class LiveScreen(ModalScreen[Answer], Generic[Answer]):
    def update_from(self, view: ClusterView) -> None:
        """The picture moved on."""

    def takes(self, event: events.Key) -> bool:
        """Does it want this key, before any binding and before it is mounted?"""
        return False
