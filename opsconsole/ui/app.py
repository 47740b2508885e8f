"""The console: what keys and commands do. Each name of the registry is one method here, or a plan, or a page.

Dialogs and the palette are imported when they are opened first: the first frame does not wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.command import Provider

from opsconsole.presenting.filtering import Filter, FilterError, parse_filter
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import BY_NAME, Action
from opsconsole.ui.base import ConsoleBase
from opsconsole.ui.commands import CommandError, parse_command, words_of
from opsconsole.ui.frame import PAGES
from opsconsole.ui.messages import LineEntered, LineLeft, LineTyped, RowOpened, RowsChanged
from opsconsole.ui.source import ConsoleSource
from opsconsole.ui.subjects import named, subjects
from opsconsole.ui.widgets.entry import Entry
from opsconsole.ui.widgets.table import Table
from opsconsole.ui.window import parse_window

if TYPE_CHECKING:
    from opsconsole.ui.screens.text import Text

HOW_TO_QUIT = "Ctrl-Q quits; runs and drains go on"


def _palette() -> type[Provider]:
    from opsconsole.ui.palette import RegistryCommands

    return RegistryCommands


class OpsConsoleApp(ConsoleBase):
    """`write_at_start` opens the write window ("15m reason"). Nothing here sends anything but `commit` and `lead`."""

    COMMANDS = {_palette}  # noqa: RUF012 - as Textual declares it

    def __init__(self, source: ConsoleSource, write_at_start: str = "") -> None:
        super().__init__(source)
        self._entry_for: Table | None = None
        self._write_at_start = write_at_start

    def on_mount(self) -> None:
        super().on_mount()
        if self._write_at_start:
            self._open_window(self._write_at_start)

    # -- keys and commands -----------------------------------------------------------------------------------------

    def action_do(self, name: str) -> None:
        """A key of the registry. A dialog has its own keys: behind it nothing happens."""
        if len(self.screen_stack) == 1 or name == "quit":
            self.perform(BY_NAME[name], "")

    def action_focus_next(self) -> None:
        """Textual binds Tab on the screen: on a page it goes to the next pane, in a dialog to the next field."""
        self._next_pane(1) if len(self.screen_stack) == 1 else super().action_focus_next()

    def action_focus_previous(self) -> None:
        self._next_pane(-1) if len(self.screen_stack) == 1 else super().action_focus_previous()

    async def action_quit(self) -> None:
        self.exit(0)

    def action_help_quit(self) -> None:
        """Ctrl-C, as Textual binds it."""
        self.say(HOW_TO_QUIT)

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
        if action.about:
            targets = named(words_of(words), action.about, view) if words else subjects(self.table, action.about, view)
        if not targets:
            self.say(f"{action.name}: select a {action.about} first, or name it: :{action.name} {action.usage}")
            return
        from opsconsole.ui.screens.plan import PlanScreen

        self.push_screen(PlanScreen(action, targets, view))
        self.call_after_refresh(self._fit, self.size.width, self.size.height)

    def commit(self, plan: Plan, reason: str) -> None:
        """Only a dialog calls this. The plan is carried out; its result is followed on the status line."""
        view = self.picture

        async def ask() -> None:
            assert view is not None
            await self.asking.ask(view, plan, reason)
            self.redraw()

        self.note = ""
        if not self.supervisor.once(f"{plan.action} {','.join(plan.targets)}", ask):
            self.say(f"{plan.action} is being asked for already")
        self.draw_lines()

    # -- moving ----------------------------------------------------------------------------------------------------

    def _do_previous(self, words: str) -> None:
        if self.past:
            self.go(self.past.pop(), remember=False)

    def _do_back(self, words: str) -> None:
        """The nearest thing first: what was said, the filter, the marks, zoom, the page."""
        table = self.table
        if self.note:
            self.say("")
        elif table is not None and table.rowset.filter.text:
            table.apply(Filter())
        elif table is not None and table.rowset.marks:
            table.rowset.marks.clear()
            table.refresh()
        elif self.zoomed:
            self._do_zoom("")
        else:
            self._do_previous(words)

    def _do_leave(self, words: str) -> None:
        if self.past:
            self._do_previous(words)
        else:
            self.say(HOW_TO_QUIT)

    def _do_neighbour_before(self, words: str) -> None:
        if self.table is not None:
            self.table.action_move(-1)

    def _do_neighbour_after(self, words: str) -> None:
        if self.table is not None:
            self.table.action_move(1)

    def _do_pane(self, words: str) -> None:
        self._next_pane(1)

    def _next_pane(self, by: int) -> None:
        names = list(PAGES[self.page].panes)
        self.show_pane(names[(names.index(self.pane) + by) % len(names)])
        self.draw()

    # -- views -----------------------------------------------------------------------------------------------------

    def _do_filter(self, words: str) -> None:
        if self.table is None:
            return
        if words:
            self._filter(words)
        else:
            self._ask("/", self.table.rowset.filter.text)

    def _do_command(self, words: str) -> None:
        self._ask(":")

    def _do_sort(self, words: str) -> None:
        """Without words it asks by which column, and says which there are."""
        if self.table is None:
            return
        if not words:
            self._ask(":", "sort ")
            self.query_one(Entry).hint(" ".join(self.table.sortable()))
        elif not self.table.sort_by(words):
            self.say(f"no column is called {words!r}: {' '.join(self.table.sortable())}")

    def _do_wide(self, words: str) -> None:
        if self.table is not None:
            wide = self.table.toggle_wide()
            self.say("all columns; h and l move sideways" if wide else "the columns that fit")

    def _do_zoom(self, words: str) -> None:
        self.zoomed = not self.zoomed
        self._fit(self.size.width, self.size.height)
        self.draw()

    def _do_pause(self, words: str) -> None:
        self.paused = not self.paused
        self.redraw()

    def _do_theme(self, words: str) -> None:
        if words in self.available_themes:
            self.theme = words
        else:
            self.say(f"themes: {BY_NAME['theme'].help}")

    # -- looking ---------------------------------------------------------------------------------------------------

    def _do_explain(self, words: str) -> None:
        """What is named, or under the cursor. It stays live, and `[ ]` go on to the neighbours."""
        row = self.table.cursor_row if self.table is not None else None
        key = words or (row.key if row is not None else "")
        if self.picture is None or not key:
            self.say("explain: select something first, or name it")
            return

        from opsconsole.ui.screens.text import TextScreen
        from opsconsole.ui.subjects import explained

        def live(view: ClusterView) -> Text:
            return explained(view, key, self.alerts.texts)

        neighbour = None if words else self._explain_neighbour
        self.push_screen(TextScreen(live(self.picture), live, neighbour))
        self.call_after_refresh(self._fit, self.size.width, self.size.height)

    def _explain_neighbour(self, by: int) -> None:
        if self.table is not None:
            self.table.action_move(by)
            self.pop_screen()
            self._do_explain("")

    def _do_results(self, words: str) -> None:
        from opsconsole.ui.screens.text import Text, TextScreen

        lines = ["".join(cell.text for cell in result.cells()) for result in self.asking.results]
        self.push_screen(TextScreen(Text("Asked for from here", lines or ["nothing yet"])))

    def _do_help(self, words: str) -> None:
        from opsconsole.ui.screens.help import help_text
        from opsconsole.ui.screens.text import TextScreen

        self.push_screen(TextScreen(help_text(self.page)))

    def _do_poll(self, words: str) -> None:
        self.source.poll_now()
        self.say("asked for fresh readings")
        self.redraw()

    def _do_whatif(self, words: str) -> None:
        self.say("what-if is not in this version: opsconsole plan previews a snapshot")

    def _do_whatif_from(self, words: str) -> None:
        self._do_whatif(words)

    def _do_log(self, words: str) -> None:
        self.say("the log screen is not in this version: opsconsole events -f shows what happens")

    # -- writing ---------------------------------------------------------------------------------------------------

    def _do_write(self, words: str) -> None:
        if words:
            self._open_window(words)
        else:
            self._ask(":", "write 15m ")

    def _open_window(self, words: str) -> None:
        if refused := self.source.write_refused:
            self.say(f"no write window: {refused}")
            return
        try:
            span_s, reason = parse_window(words)
        except ValueError as error:
            self.say(f"write: {error}")
            return
        self.window.begin(span_s, reason)
        self.say(f"write window open: {clean(reason, 80)}. D C U R K open plans; :readonly closes it")

    def _do_readonly(self, words: str) -> None:
        self.window.end()
        self.say("read-only")

    def _do_lead(self, words: str) -> None:
        if self.source.write_refused:
            self.say(f"not leading: {self.source.write_refused}")
        elif not self.window.open:
            self.say("leading changes the cluster: open a write window first, :write 15m why")
        elif not words:
            self._ask(":", "lead ")
        else:
            self.say("looking at every host before leading …")
            self.supervisor.once("lead", lambda: self.source.lead(words, self._confirm))

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

    def _ask(self, kind: str, text: str = "") -> None:
        self._entry_for = self.table
        self.query_one(Entry).ask("/" if kind == "/" else ":", text)

    def _filter(self, text: str) -> None:
        if self.table is not None:
            self.table.apply(parse_filter(text, self.table.rowset.view))
            self.draw()

    def on_line_typed(self, message: LineTyped) -> None:
        if message.kind == ":" or self._entry_for is None:
            return
        try:
            self._entry_for.apply(parse_filter(message.text, self._entry_for.rowset.view))
            self.query_one(Entry).hint("")
        except FilterError as error:
            self.query_one(Entry).hint(str(error), bad=True)

    def on_line_entered(self, message: LineEntered) -> None:
        self._refocus()
        try:
            if message.kind == ":" and message.text:
                self.perform(*parse_command(message.text))
            elif message.kind == "/":
                self._filter(message.text)
        except (CommandError, FilterError) as error:
            self.say(str(error))

    def on_line_left(self, message: LineLeft) -> None:
        if message.kind == "/" and self._entry_for is not None:
            self._entry_for.apply(Filter())
        self._refocus()

    def _refocus(self) -> None:
        """At once, as `Entry.ask` does: `focus` would come later than what the line has asked for."""
        if self._entry_for is not None and self._entry_for.is_mounted:
            self.screen_stack[0].set_focus(self._entry_for)

    def on_row_opened(self, message: RowOpened) -> None:
        kind, _, value = message.key.partition(":")
        if kind == "reason" and self.picture is not None:
            self.go("queue")
            self.show_pane("t-queue")
            self._filter(f"reason={value}")
        else:
            self._do_explain("")

    def on_rows_changed(self, message: RowsChanged) -> None:
        """Marks and filters stand in the titles; what was cut of a row, on the status line."""
        if self.table is not None:
            self.show_title(self.table)
            self.draw_lines()
