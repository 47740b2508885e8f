"""Dialogs that go on living: each new picture is shown to the one that is open."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Generic, TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

from opsconsole.presenting.view import ClusterView
from opsconsole.ui.messages import RowsChanged

MADE_S = 2.0
Answer = TypeVar("Answer")


class LiveScreen(ModalScreen[Answer], Generic[Answer]):
    def __init__(self) -> None:
        super().__init__()
        self._stands = asyncio.Event()

    def on_mount(self) -> None:
        """Textual calls it after the subclass's own."""
        self._stands.set()

    async def stands(self) -> None:
        """Until it can be worked with: keys in a burst come sooner. One that is never made is waited for in vain."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stands.wait(), MADE_S)

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Once, and only from the top: of keys in a burst the second finds it left or covered, and Textual would take
        whatever is on top then."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def update_from(self, view: ClusterView) -> None:
        """The picture moved on."""

    def on_rows_changed(self, message: RowsChanged) -> None:
        """Of a table in the dialog: nothing to the page behind it."""
        message.stop()

    def action_back(self) -> None:
        self.dismiss()

    def takes(self, event: events.Key) -> bool:
        """Does it want this key, before any binding and before it is mounted?"""
        return False
