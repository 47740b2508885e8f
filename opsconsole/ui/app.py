"""The console: what keys and commands do. Each name of the registry is a method here or in the views, a plan, a page.

Dialogs and the palette are imported when they are opened first: the first frame does not wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from textual.command import Provider

from opsconsole.presenting.filtering import Filter, FilterError
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView, OpenPlan
from opsconsole.ui.actions import ANYWHERE, BY_NAME, Action
from opsconsole.ui.commands import CommandError, parse_command, words_of
from opsconsole.ui.desk import Desk
from opsconsole.ui.given import given
from opsconsole.ui.messages import LineEntered, LineLeft, RowsChanged
from opsconsole.ui.outside import ConsoleOutside
from opsconsole.ui.pages import PAGES
from opsconsole.ui.source import ConsoleSource
from opsconsole.ui.subjects import named, subjects
from opsconsole.ui.widgets.entry import Entry
from opsconsole.ui.widgets.table import Table
from opsconsole.ui.window import parse_window


def _palette() -> type[Provider]:
    from opsconsole.ui.palette import RegistryCommands

    return RegistryCommands


class OpsConsoleApp(ConsoleOutside):
    """`write_at_start` opens the write window ("15m reason"). Nothing here sends anything but `commit` and `lead`."""

    COMMANDS = {_palette}  # noqa: RUF012 - as Textual declares it

    def __init__(self, source: ConsoleSource, write_at_start: str = "", desk: Desk | None = None) -> None:
        super().__init__(source, desk)
        self._write_at_start = write_at_start

    def on_mount(self) -> None:
        """Textual calls it before those of the classes below."""
        if self._write_at_start:
            self._open_window(self._write_at_start)

    # -- keys and commands -----------------------------------------------------------------------------------------

    def action_do(self, name: str) -> None:
        """A key of the registry. A dialog has its own keys: behind it nothing happens."""
        if len(self.screen_stack) == 1 or name in ANYWHERE:
            self.perform(BY_NAME[name], "")

    def action_focus_next(self) -> None:
        """Textual binds Tab on the screen: on a page it goes to the next pane, in a dialog to the next field."""
        self._next_pane(1) if len(self.screen_stack) == 1 else super().action_focus_next()

    def action_focus_previous(self) -> None:
        self._next_pane(-1) if len(self.screen_stack) == 1 else super().action_focus_previous()

    def _do_palette(self, words: str) -> None:
        from opsconsole.ui.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    async def action_quit(self) -> None:
        self.exit(0)

    def action_help_quit(self) -> None:
        """Ctrl-C, as Textual binds it."""
        self.say(self.how_to_quit)

    def perform(self, action: Action, words: str) -> None:
        """The one way for keys, commands and the palette."""
        if action.plan is not None:
            self._plan(action, words)
        elif action.name in PAGES:
            self.go(action.name)
        else:
            do: Callable[[str], None] = getattr(self, f"_do_{action.name}")
            do(words)

    def _plan(self, action: Action, words: str) -> None:
        """Opens a plan for what is named, marked, or under the cursor. Nothing is sent before it is confirmed."""
        view = self.fresh_picture()
        if view is None:
            self.say("there is no picture of the cluster yet")
            return
        targets = [view.cluster]
        known = given(action, words_of(words))
        marked = ""
        if action.about:
            targets = named(known.targets, action.about, view) or self._chosen(action.about, view)
            if self.table is not None and not known.targets and targets == subjects(self.table, action.about, view):
                marked = self.table.rowset.marked_words()
        if not targets:
            self.say(f"{action.name}: select a {action.about} first, or name it: :{action.name} {action.usage}")
            return
        from opsconsole.ui.screens.plan import PlanScreen

        self.source.tell_plan(OpenPlan(self.source.actor, action.name, tuple(targets), view.wall_ms))
        self.push_screen(PlanScreen(action, targets, view, known, marked), lambda _: self.source.tell_plan(None))
        self.call_after_refresh(self._fit, self.size.width, self.size.height)

    def _chosen(self, about: str, view: ClusterView) -> list[str]:
        """The rows that are marked or selected. Where they are of another kind: whose detail it is, or the row that all
        of the page is about.
        """
        if found := subjects(self.table, about, view):
            return found
        if self.page == about:
            return [self.place.subject]
        leading = PAGES[self.page].follows
        return subjects(self.query_one(f"#{leading}", Table), about, view) if leading else []

    def commit(self, plan: Plan, reason: str, ticket: str) -> None:
        """Only a dialog calls this. The plan is carried out; its result is followed on the status line."""
        view = self.picture

        async def ask() -> None:
            assert view is not None
            result = await self.asking.ask(view, plan, reason, ticket)
            words = "".join(cell.text for cell in result.cells())
            self.logbook.note("request", words, "bad" if result.problem else "")
            self.redraw()

        self.note = ""
        if not self.supervisor.once(f"{plan.action} {','.join(plan.targets)}", ask):
            self.say(f"{plan.action} is being asked for already")
        self.draw_lines()

    def _do_undo(self, words: str) -> None:
        """Only ever opens the plan that takes it back."""
        command = self.asking.undo()
        if command:
            self.perform(*parse_command(command))
        else:
            self.say("nothing that was done from here can be taken back")

    # -- writing ---------------------------------------------------------------------------------------------------

    @property
    def write_refused(self) -> str:
        """Why no write window may be opened here; empty where one may."""
        return self.source.write_refused or ("read_only is set" if self.settings.read_only else "")

    def _do_write(self, words: str) -> None:
        if words:
            self._open_window(words)
        else:
            self._ask(":", "write 15m ")

    def _open_window(self, words: str) -> None:
        if refused := self.write_refused:
            self.say(f"no write window: {refused}")
            return
        try:
            span_s, reason = parse_window(words)
        except ValueError as error:
            self.say(f"write: {error}")
            return
        self.window.begin(span_s, reason)
        self.say(f"write window open: {clean(reason, 80)}. ? says what opens plans; :readonly closes it")

    def _do_readonly(self, words: str) -> None:
        self.window.end()
        self.say("read-only")

    def _do_lead(self, words: str) -> None:
        if refused := self.write_refused:
            self.say(f"not leading: {refused}")
        elif self.picture is not None and self.picture.leading:
            self.say("this console leads already")
        elif not self.window.open:
            self.say("leading changes the cluster: open a write window first, :write 15m why")
        elif not words:
            self._ask(":", "lead ")
        else:
            self.say("looking at every host before leading …")
            self.supervisor.once("lead", lambda: self._lead(words))

    async def _lead(self, reason: str) -> None:
        """What becomes of it is said: here, or as an alert."""
        said = ""
        try:
            await self.source.lead(reason, self._confirm)
            said = "this console leads now, until it quits"
        finally:
            self.say(said)

    async def _confirm(self, lines: Sequence[str]) -> bool:
        from opsconsole.ui.screens.text import ConfirmScreen

        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def answered(yes: bool | None) -> None:
            if not answer.done():
                answer.set_result(bool(yes))

        await self.push_screen(ConfirmScreen("Lead this cluster? At once:", list(lines)), answered)
        return await answer

    def _do_quit(self, words: str) -> None:
        self.exit(0)

    # -- the line --------------------------------------------------------------------------------------------------

    def on_line_entered(self, message: LineEntered) -> None:
        self._refocus()
        try:
            if message.kind == ":" and message.text:
                self.perform(*parse_command(message.text))
            elif message.kind == "/":
                self._filter(message.text)
        except CommandError as error:
            self.say(str(error))
        except FilterError as error:
            self._ask("/", message.text)
            self.query_one(Entry).hint(str(error), (error.start, error.end))

    def on_line_left(self, message: LineLeft) -> None:
        if message.kind == "/" and self._entry_for is not None:
            self._entry_for.apply(Filter())
        self._refocus()

    def _refocus(self) -> None:
        """At once, as `Entry.ask` does: `focus` would come later than what the line has asked for."""
        if self._entry_for is not None and self._entry_for.is_mounted:
            self.screen_stack[0].set_focus(self._entry_for)

    def on_rows_changed(self, message: RowsChanged) -> None:
        """Marks and filters stand in the titles; what was cut of a row, on the status line."""
        if self.table is not None:
            self.show_title(self.table)
            self.draw() if PAGES[self.page].follows else self.draw_lines()
