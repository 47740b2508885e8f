"""The palette (Ctrl-P): everything of the registry, and hosts, workloads, budgets, views and themes by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, cast

from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.text import clean
from opsconsole.ui.actions import ACTIONS, BY_NAME
from opsconsole.ui.commands import HIDDEN
from opsconsole.ui.themes import THEMES

if TYPE_CHECKING:
    from opsconsole.ui.app import OpsConsoleApp

MOST_NAMES = 2000
Entry = tuple[str, str, Callable[[], None]]


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

    def _actions(self) -> Iterator[Entry]:
        for action in ACTIONS:
            if action.where == "app" and action.name not in HIDDEN:
                keys = self.console.keymap.shown(action.name)
                text = action.name + (f"  ({keys})" if keys else "")
                yield text, action.help, partial(self.console.perform, action, "")

    def _names(self) -> Iterator[Entry]:
        """Enter on a name opens it; on a budget, explains it; on a view or a theme, shows it."""
        view = self.console.picture
        if view is not None:
            yield from self._those("go", "host", ((name, name) for name in sorted(view.state.hosts)))
            live = (r.workload for r in view.state.workloads.values() if r.outcome is None)
            yield from self._those("go", "workload", ((w.id, workload_label(w.id, w.name)) for w in live))
            yield from self._those("explain", "budget", ((path, path) for path in view.state.budgets.paths.values()))
        yield from self._those("view", "view", ((name, name) for name in self.console.arrangements.kept.views))
        yield from self._those("theme", "theme", ((name, name) for name in THEMES))

    def _those(self, action: str, kind: str, named: Iterable[tuple[str, str]]) -> Iterator[Entry]:
        """At most so many of a kind. `named`: what is given to the action, and how it is called."""
        for name, label in islice(named, MOST_NAMES):
            yield clean(label, 80), kind, partial(self.console.perform, BY_NAME[action], name)
