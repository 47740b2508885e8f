"""The palette (Ctrl-P): everything of the registry, and hosts and workloads by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.text import clean
from opsconsole.ui.actions import ACTIONS, BY_NAME
from opsconsole.ui.commands import HIDDEN

if TYPE_CHECKING:
    from opsconsole.ui.app import OpsConsoleApp

MOST_NAMES = 2000


class Palette(CommandPalette):
    """On a terminal that has no room for its list the keys that move in it do nothing: Textual falls over them."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)

    def dismiss(self, result: None = None) -> AwaitComplete:
        """As in `LiveScreen`: once, and only from the top."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class RegistryCommands(Provider):
    """Names are shown as text, never as markup."""

    @property
    def console(self) -> OpsConsoleApp:
        return cast("OpsConsoleApp", self.app)

    async def discover(self) -> Hits:
        for text, help_text, do in self._actions():
            yield DiscoveryHit(Content(text), do, text, help_text)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for text, help_text, do in (*self._actions(), *self._names()):
            if (score := matcher.match(text)) > 0:
                yield Hit(score, Content(text), do, text, help_text)

    def _actions(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        for action in ACTIONS:
            if action.where == "app" and action.name not in HIDDEN:
                keys = self.console.keymap.shown(action.name)
                text = action.name + (f"  ({keys})" if keys else "")
                yield text, action.help, lambda a=action: self.console.perform(a, "")  # type: ignore[misc]

    def _names(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        """Enter on a name explains it."""
        view = self.console.picture
        if view is None:
            return
        explain = BY_NAME["explain"]
        for name in sorted(view.state.hosts)[:MOST_NAMES]:
            yield clean(name, 80), "host", lambda n=name: self.console.perform(explain, n)  # type: ignore[misc]
        live = [w for w in view.state.workloads.values() if w.outcome is None]
        for record in live[:MOST_NAMES]:
            wid, text = record.workload.id, workload_label(record.workload.id, record.workload.name)
            yield text, "workload", lambda n=wid: self.console.perform(explain, n)  # type: ignore[misc]
