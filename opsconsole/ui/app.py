"""The console: header, one page of tables at a time, a line for commands, a footer. It draws from a ConsoleSource.

One frame per poll: a timer asks the source's version and shows a new picture only when there is one; ages tick from a
slower timer of their own, so that a source that has died shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widgets import ContentSwitcher

from opsconsole.presenting.explaining import explain_anything
from opsconsole.presenting.filtering import FilterError, parse_filter
from opsconsole.presenting.overview import about_host
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import BY_NAME, Action, app_bindings
from opsconsole.ui.asking import Asking
from opsconsole.ui.commands import CommandError, complete_command, parse_command, words_of
from opsconsole.ui.frame import PAGES, footer_cells, header_cells, show_overview
from opsconsole.ui.messages import LineEntered, LineLeft, LineTyped, RowOpened
from opsconsole.ui.screens.plan import PlanScreen
from opsconsole.ui.screens.text import ConfirmScreen, TextScreen, help_lines
from opsconsole.ui.source import ConsoleSource
from opsconsole.ui.supervise import Alerts, Supervisor
from opsconsole.ui.terminal import Deadline, on_signals, tty_is_gone
from opsconsole.ui.themes import DARK, THEMES
from opsconsole.ui.widgets.entry import Entry
from opsconsole.ui.widgets.lines import Line, Lines
from opsconsole.ui.widgets.table import Table
from opsconsole.ui.window import WriteWindow, parse_window

LOOK_S = 0.25  # how often the source's version is asked
AGE_S = 1.0  # ages tick, whatever the source does
LEAST = (60, 15)
NARROW = 100


class OpsConsoleApp(App[int]):
    """`write_at_start` opens the write window ("15m reason"). The exit status is the app's return value."""

    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = app_bindings()
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, source: ConsoleSource, write_at_start: str = "") -> None:
        super().__init__()
        self.source = source
        self.alerts: Alerts = Alerts()
        self.supervisor = Supervisor(self.alerts)
        self.asking = Asking(source)
        self.window = WriteWindow()
        self.picture: ClusterView | None = None
        self.paused = False
        self.page = "overview"
        self.past: list[str] = []
        self.history: list[str] = []
        self._shown_version = -1
        self._entry_for: Table | None = None
        self._write_at_start = write_at_start

    def compose(self) -> ComposeResult:
        yield Line(id="header")
        with ContentSwitcher(initial="overview", id="pages"):
            for page in PAGES.values():
                with Vertical(id=page.name):
                    yield from page.compose()
        yield Line(id="status")
        yield Entry(lambda kind, text: complete_command(text, self.picture) if kind == ":" else (), self.history)
        yield Line(id="footer")
        yield Container(Lines(id="too-small-text"), id="too-small")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables in themes that do not know them, such as ansi."""
        return dict(DARK.variables)

    # -- life ------------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "ops-dark"
        self._remove_signals = on_signals(self._leave)
        self.supervisor.keep("source", self.source.run)
        self.set_interval(LOOK_S, self._look)
        self.set_interval(AGE_S, self._tick)
        if self._write_at_start:
            self._open_window(self._write_at_start)
        self._go("overview", remember=False)
        self._tick()

    def _leave(self, status: int) -> None:
        """A signal: the terminal is left sane, within two seconds."""
        self.exit(status)

    async def action_quit(self) -> None:
        self.exit(0)

    async def _shutdown(self) -> None:
        deadline = Deadline(self.return_value or 0)
        await self.supervisor.close()
        await self.source.close()
        deadline.met()
        await super()._shutdown()

    # -- showing ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if tty_is_gone():
            self.exit(129)
        elif not self.paused and self.source.version != self._shown_version:
            self._tick()

    def _tick(self) -> None:
        """A new picture with ages as of now. What fails is said in the header, and the old picture stays."""
        if not self.paused:
            try:
                self._shown_version = self.source.version
                self.picture = self.source.view()
                self.alerts.over("picture")
            except Exception as error:
                self.alerts.failed("picture", error)
        self._draw()

    def _draw(self) -> None:
        view = self.picture
        with self.batch_update():
            self.query_one("#header", Line).show(header_cells(self, view))
            self.query_one("#footer", Line).show(footer_cells(self.size.width))
            if view is None:
                return
            self.asking.look(view)
            newest = self.asking.newest()
            self.query_one("#status", Line).show(newest.cells() if newest is not None else [])
            self._draw_page(view)
        if isinstance(self.screen, PlanScreen):
            self.screen.update_plan(view)

    def _draw_page(self, view: ClusterView) -> None:
        page = PAGES[self.page]
        trouble = "" if view.state.hosts else "nothing is known yet: no leader has written anything"
        if self.page == "overview":
            show_overview(self, view)
        for name, build in page.tables.items():
            self.query_one(f"#{name}", Table).show(build(self, view), trouble)

    def on_resize(self, event: events.Resize) -> None:
        small = event.size.width < LEAST[0] or event.size.height < LEAST[1]
        self.screen.set_class(small, "-small")
        self.screen.set_class(event.size.width < NARROW, "-narrow")
        text = f"needs at least {LEAST[0]}×{LEAST[1]}, this is {event.size.width}×{event.size.height}"
        from opsconsole.presenting.rows import Cell

        self.query_one("#too-small-text", Lines).show_lines([[Cell(text, "warn")]])
        self._draw()

    # -- pages -----------------------------------------------------------------------------------------------------

    def _go(self, name: str, remember: bool = True) -> None:
        if remember and name != self.page:
            self.past.append(self.page)
        self.page = name
        self.query_one("#pages", ContentSwitcher).current = name
        if self.picture is not None:
            self._draw_page(self.picture)
        tables = list(self.query(f"#{name} Table").results(Table))
        if tables:
            tables[0].focus()
        self._draw()

    @property
    def table(self) -> Table | None:
        """The table that keys go to."""
        if isinstance(self.focused, Table):
            return self.focused
        tables = list(self.query(f"#{self.page} Table").results(Table))
        return tables[0] if tables else None

    # -- actions ---------------------------------------------------------------------------------------------------

    def action_do(self, name: str) -> None:
        """A key of the registry."""
        self.perform(BY_NAME[name], "")

    def perform(self, action: Action, words: str) -> None:
        """The one way for keys and commands."""
        if action.plan is not None:
            self._plan(action, words)
        elif action.name in PAGES:
            self._go(action.name)
        else:
            getattr(self, f"_do_{action.name}", self._not_yet)(words or action.help)

    def _not_yet(self, words: str) -> None:
        self.say(f"{words}")

    def say(self, text: str) -> None:
        """One line that stays until the next."""
        self.alerts.say("note", text)
        self._draw()

    def _plan(self, action: Action, words: str) -> None:
        """Opens a plan for what is named, marked, or under the cursor. Nothing is sent before it is confirmed."""
        view = self.picture
        if view is None or isinstance(self.screen, PlanScreen):
            return
        targets = words_of(words) if words else self._targets(action, view)
        if not targets:
            self.say(f"{action.name}: select a {action.about} first")
            return
        self.push_screen(PlanScreen(action, targets, view))

    def _targets(self, action: Action, view: ClusterView) -> list[str]:
        """Keys that the action can be about: marked rows, else the one under the cursor."""
        table = self.table
        if table is None:
            return []
        marked = [key for key in table.rowset.marks if key]
        current = [table.cursor_row.key] if table.cursor_row is not None else []
        found = []
        for key in marked or current:
            found += self._subject(action.about, key, view)
        return list(dict.fromkeys(found))

    def _subject(self, about: str, key: str, view: ClusterView) -> list[str]:
        if about == "host":
            host = key if key in view.state.hosts else about_host(view, key)
            drain = view.state.drains.get(key)  # type: ignore[call-overload]
            return [host] if host else [drain.host] if drain is not None else []
        workload = key if key in view.state.workloads else key.rpartition("~")[0]
        return [workload] if workload in view.state.workloads else []

    def _do_previous(self, words: str) -> None:
        if self.past:
            self._go(self.past.pop(), remember=False)

    def _do_back(self, words: str) -> None:
        table = self.table
        if table is not None and table.rowset.filter.text:
            table.apply(parse_filter("", table.rowset.view))
        elif table is not None and table.rowset.marks:
            table.rowset.marks.clear()
            table.refresh()
        else:
            self._do_previous(words)
        self.alerts.over("note")
        self._draw()

    def _do_leave(self, words: str) -> None:
        if self.page == "overview" or not self.past:
            self.say("Ctrl-Q quits; runs and drains go on")
        else:
            self._do_previous(words)

    def _do_neighbour_before(self, words: str) -> None:
        if self.table is not None:
            self.table.action_move(-1)

    def _do_neighbour_after(self, words: str) -> None:
        if self.table is not None:
            self.table.action_move(1)

    def _do_pane(self, words: str) -> None:
        self.screen.focus_next(Table)

    def _do_filter(self, words: str) -> None:
        if self.table is not None:
            self._entry_for = self.table
            self.query_one(Entry).ask("/", self.table.rowset.filter.text)

    def _do_command(self, words: str) -> None:
        self._entry_for = self.table
        self.query_one(Entry).ask(":")

    def _do_sort(self, words: str) -> None:
        if self.table is not None and (words == BY_NAME["sort"].help or not self.table.sort_by(words)):
            self.say(f"sorted by {self.table.sort_next() or 'the natural order'}")

    def _do_wide(self, words: str) -> None:
        if self.table is not None:
            self.table.toggle_wide()

    def _do_zoom(self, words: str) -> None:
        page = self.query_one(f"#{self.page}")
        zoomed = not page.has_class("-zoomed")
        page.set_class(zoomed, "-zoomed")
        for table in page.query(Table):
            table.set_class(zoomed and table is self.table, "-alone")

    def _do_pause(self, words: str) -> None:
        self.paused = not self.paused
        self._tick()

    def _do_explain(self, words: str) -> None:
        view = self.picture
        row = self.table.cursor_row if self.table is not None else None
        name = words if words != BY_NAME["explain"].help else row.key if row is not None else ""
        lines = self._explained(view, name) if view is not None and name else None
        self.push_screen(
            TextScreen(f"Explain {clean(name, 60)}", lines or [f"nothing is known of {clean(name, 60)!r}"])
        )

    def _explained(self, view: ClusterView, name: str) -> list[str] | None:
        if name in view.state.budgets.by_id:
            name = view.state.budgets.paths[name]  # type: ignore[index]
        return explain_anything(view, name) or explain_anything(view, about_host(view, name))

    def _do_write(self, words: str) -> None:
        if words == BY_NAME["write"].help:
            self._entry_for = self.table
            self.query_one(Entry).ask(":", "write 15m ")
        else:
            self._open_window(words)

    def _open_window(self, words: str) -> None:
        if refused := self.source.write_refused:
            self.say(f"no write window: {refused}")
            return
        try:
            self.window.begin(*parse_window(words))
        except ValueError as error:
            self.say(f"write: {error}")
        self._draw()

    def _do_readonly(self, words: str) -> None:
        self.window.end()
        self._draw()

    def _do_lead(self, words: str) -> None:
        reason = words if words != BY_NAME["lead"].help else ""
        if not self.window.open:
            self.say("leading changes the cluster: open a write window first, :write 15m why")
        elif not reason:
            self.say("say why: lead REASON")
        else:
            self.supervisor.once("lead", lambda: self.source.lead(reason, self._confirm))

    async def _confirm(self, lines: Sequence[str]) -> bool:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        await self.push_screen(
            ConfirmScreen("Lead this cluster?", list(lines)), lambda yes: answer.set_result(bool(yes))
        )
        return await answer

    def _do_results(self, words: str) -> None:
        lines = ["".join(cell.text for cell in result.cells()) for result in self.asking.results]
        self.push_screen(TextScreen("Asked for from here", lines or ["nothing yet"]))

    def _do_poll(self, words: str) -> None:
        self.source.poll_now()
        self._tick()

    def _do_theme(self, words: str) -> None:
        if words in self.available_themes:
            self.theme = words
        else:
            self.say(f"themes: {BY_NAME['theme'].help}")

    def _do_help(self, words: str) -> None:
        self.push_screen(TextScreen("Help", help_lines()))

    def _do_quit(self, words: str) -> None:
        self.exit(0)

    def _do_whatif(self, words: str) -> None:
        self.say("what-if is not in this version: opsconsole plan previews a snapshot")

    _do_whatif_from = _do_whatif

    def _do_log(self, words: str) -> None:
        self.say("the log screen is not in this version: opsconsole events -f shows what happens")

    # -- the line --------------------------------------------------------------------------------------------------

    def on_line_typed(self, message: LineTyped) -> None:
        entry, table = self.query_one(Entry), self.table
        if message.kind == ":":
            return
        try:
            if table is not None:
                parse_filter(message.text, table.rowset.view)
            entry.hint("")
        except FilterError as error:
            entry.hint(str(error), bad=True)

    def on_line_entered(self, message: LineEntered) -> None:
        self._refocus()
        try:
            if message.kind == ":":
                if message.text:
                    self.perform(*parse_command(message.text))
            elif self.table is not None:
                self.table.apply(parse_filter(message.text, self.table.rowset.view))
        except (CommandError, FilterError) as error:
            self.say(str(error))

    def on_line_left(self, message: LineLeft) -> None:
        self._refocus()

    def _refocus(self) -> None:
        if self._entry_for is not None and self._entry_for.is_mounted:
            self._entry_for.focus()

    def on_row_opened(self, message: RowOpened) -> None:
        self._do_explain(message.key)

    def commit(self, screen: PlanScreen) -> None:
        """The plan of an open dialog is carried out; its result is followed on the status line."""
        view = self.picture
        if view is None:
            return
        plan, reason = screen.plan, screen.reason

        async def ask() -> None:
            await self.asking.ask(view, plan, reason)

        if not self.supervisor.once(f"ask {plan.action} {','.join(plan.targets)}", ask):
            self.say(f"{plan.action} is being asked for already")

    def notes(self) -> list[str]:
        """What stands against the console or the leader, for the header."""
        found = list(self.alerts.texts.values())
        if self.picture is not None:
            found += [f"{about}: {text}" for about, text in self.picture.alarms.items()]
        return found
