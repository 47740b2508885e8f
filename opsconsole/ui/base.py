"""The console's life and drawing: one page of tables at a time between a header and a footer.

One frame per poll: a timer asks the source's version and shows a new picture only when there is one; ages tick from a
slower timer of their own, so that a source that has died shows. Drawing never takes more than a tenth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widgets import ContentSwitcher, Input

from opsconsole.presenting.moves import Moves
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.view import ClusterView
from opsconsole.settings import ASCII
from opsconsole.ui.actions import app_bindings
from opsconsole.ui.asking import Asking
from opsconsole.ui.commands import complete_command
from opsconsole.ui.desk import Desk
from opsconsole.ui.frame import (
    MAP,
    PAGES,
    alert_cells,
    footer_cells,
    header_cells,
    show_overview,
    status_cells,
    tab_cells,
)
from opsconsole.ui.keymap import Keymap
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.source import ConsoleSource
from opsconsole.ui.supervise import Alerts, Supervisor
from opsconsole.ui.terminal import Deadline, on_signals, tty_is_gone
from opsconsole.ui.themes import DARK, THEMES, Typewriter
from opsconsole.ui.widgets.entry import Entry
from opsconsole.ui.widgets.lines import Line, Lines
from opsconsole.ui.widgets.painting import entitle
from opsconsole.ui.widgets.table import Table
from opsconsole.ui.window import WriteWindow

LOOK_S = 0.25  # how often the source's version is asked
AGE_S = 1.0  # ages tick, whatever the source does
LEAST = (60, 15)
NARROW = 100
DRAW_SHARE = 10  # drawing waits so many times as long as it took


class ConsoleBase(App[int]):
    """Holds the picture and draws it. The exit status is the app's return value."""

    CSS_PATH = ["app.tcss", "screens/overview.tcss"]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = app_bindings()
    TITLE = "opsconsole"
    ENABLE_COMMAND_PALETTE = False  # Textual's: ours is an action of the registry

    def __init__(self, source: ConsoleSource, desk: Desk | None = None) -> None:
        super().__init__()
        self.desk = desk or Desk()
        self.settings = self.desk.settings
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = self.settings.theme  # before anything is mounted: later it would style everything twice
        self.animation_level = "none"
        if self.settings.marks == ASCII:
            self._filters.append(Typewriter())
        self.use_keys(self.desk.keymap)
        self.source = source
        self.alerts: Alerts = Alerts()
        self.supervisor = Supervisor(self.alerts)
        self.asking = Asking(source)
        self.window = WriteWindow()
        self.picture: ClusterView | None = None
        self.moves: Moves = Moves()
        self.paused = False
        self.zoomed = False
        self.note = ""
        self.page = self.settings.screen
        self.past: list[str] = []
        self._panes = {name: next(iter(page.panes)) for name, page in PAGES.items()}
        self.history: list[str] = []
        self._shown_version = -1
        self._draw_again_at = 0.0

    def compose(self) -> ComposeResult:
        yield Line(id="header")
        yield Line(id="alerts")
        yield Line(id="tabs")
        with ContentSwitcher(initial=self.page, id="pages"):
            for page in PAGES.values():
                with Vertical(id=page.name):
                    yield from page.compose()
        yield Line(id="status")
        yield Entry(self._complete, self.history)
        yield Line(id="footer")
        yield Container(Lines(id="too-small-text"), id="too-small")

    def _complete(self, kind: str, text: str) -> Sequence[str]:
        """What could stand where the cursor is."""
        return complete_command(text, self.picture)

    def use_keys(self, keymap: Keymap) -> None:
        self.keymap = keymap
        self.set_keymap(keymap.bindings())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables in themes that do not know them, such as ansi."""
        return dict(DARK.variables)

    # -- life ------------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self._remove_signals = on_signals(self._leave)
        self.supervisor.keep("source", self.source.run)
        self.set_interval(LOOK_S, self._look)
        self.set_interval(AGE_S, self._age)
        self.show_pane(self.pane)
        self.redraw()

    async def on_event(self, event: events.Event) -> None:
        """Keys that come in a burst, as over a slow line: each does its work before the next one is looked at.

        Textual hands a key to the widget that has the focus, whence it climbs back here, while the next one already
        goes to the same widget. So `:q` would zoom a pane. Where text is being typed its way is the right one.
        """
        if isinstance(event, events.Key) and not event.is_forwarded and await self._done_at_once(event):
            return
        await super().on_event(event)

    async def _done_at_once(self, event: events.Key) -> bool:
        self.asking.seen()
        if isinstance(self.focused, Input):
            return False
        if isinstance(screen := self.screen, LiveScreen):
            if screen.takes(event):
                return True
            await screen.stands()
        return await self._check_bindings(event.key)

    @property
    def failure(self) -> Exception | None:
        """The defect that ended the app: for the command line to tell, once the terminal is its own again."""
        return self._exception

    def _fatal_error(self) -> None:
        """Textual would print a traceback with all that its variables hold."""
        self._close_messages_no_wait()

    def _leave(self, status: int) -> None:
        """A signal: the terminal is left sane, within two seconds."""
        self.exit(status)

    async def _shutdown(self) -> None:
        """Leaving never hangs: what does not end in time is left behind, by force where there is a terminal."""
        deadline = None if self.is_headless else Deadline(self.return_value or 0)
        await self.supervisor.close()
        closing = Supervisor(self.alerts)
        closing.once("close", self.source.close)
        await closing.finish(1.5)
        await super()._shutdown()
        if deadline is not None:
            deadline.met()

    # -- showing ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if not self.is_headless and tty_is_gone():
            self.exit(129)
        elif not self.paused and self.source.version != self._shown_version and time.monotonic() >= self._draw_again_at:
            self.redraw()

    def _age(self) -> None:
        if time.monotonic() >= self._draw_again_at:
            self.redraw()

    def fresh_picture(self) -> ClusterView | None:
        """The world as it is at this moment. What fails is said, and the old picture stays."""
        try:
            self._shown_version = self.source.version
            self.picture = self.source.view()
            self.alerts.over("picture")
        except Exception as error:
            self.alerts.failed("picture", error)
        return self.picture

    def redraw(self) -> None:
        """Everything that is visible, from a new picture with ages as of now unless it is held still."""
        begun = time.monotonic()
        if not self.paused:
            self.fresh_picture()
        try:
            self.draw()
            self.alerts.over("drawing")
        except Exception as error:
            self.alerts.failed("drawing", error)
        self._draw_again_at = time.monotonic() + DRAW_SHARE * (time.monotonic() - begun)

    def draw(self) -> None:
        view = self.picture
        with self.batch_update():
            if view is not None:
                self.asking.look(view)
                self._draw_page(view)
            self.draw_lines()
            if view is None:
                return
            if isinstance(self.screen, LiveScreen):
                self.screen.update_from(view)

    def draw_lines(self) -> None:
        """Header, alerts, tabs, status and footer: they cost nothing and are always true."""
        if not self.query("#footer"):
            return  # the screen comes or goes
        alerts = alert_cells(self)
        self.query_one("#alerts", Line).display = bool(alerts)
        self.query_one("#alerts", Line).show(alerts)
        self.query_one("#header", Line).show(header_cells(self, self.picture))
        self.query_one("#tabs", Line).show(tab_cells(self))
        self.query_one("#status", Line).show(status_cells(self))
        self.query_one("#footer", Line).show(footer_cells(self.page, self.size.width, self.keymap))

    def _draw_page(self, view: ClusterView) -> None:
        trouble = "" if view.state.hosts else "nothing is known yet: no leader has written anything"
        if MAP in PAGES[self.page].panes:
            show_overview(self, view)
        for name, build in PAGES[self.page].panes.items():
            if build is not None:
                table = self.query_one(f"#{name}", Table)
                table.show(build(self, view), trouble)
                self.show_title(table)

    def show_title(self, table: Table) -> None:
        """What it holds, how many rows are shown and marked, and the filter."""
        rows = table.rowset
        counted = f" ({rows.summary()})" if rows.view.counted or rows.filter.text or rows.marks else ""
        filtered = f"  /{rows.filter.text}" if rows.filter.text else ""
        entitle(table, f"{rows.view.title}{counted}{filtered}".replace("[", "\\["))

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.width, event.size.height)
        self.draw()

    def _fit(self, width: int, height: int) -> None:
        """Every screen of the stack knows whether it is narrow, or too small to be of use."""
        small = width < LEAST[0] or height < LEAST[1]
        for screen in self.screen_stack:
            screen.set_class(small, "-small")
            screen.set_class(width < NARROW, "-narrow")
            screen.set_class(height < 30, "-short")
        self._lay_panes()
        text = f"needs at least {LEAST[0]}×{LEAST[1]}, this is {width}×{height}"
        self.query_one("#too-small-text", Lines).show_lines([[Cell(text, "warn")]])

    # -- pages -----------------------------------------------------------------------------------------------------

    def go(self, name: str, remember: bool = True) -> None:
        """To a page; its first table takes the keys."""
        if remember and name != self.page:
            self.past.append(self.page)
            del self.past[:-20]
        self.page, self.note = name, ""
        self.query_one("#pages", ContentSwitcher).current = name
        self.show_pane(self.pane)
        self.draw()

    # -- panes: side by side, or one at a time as tabs ---------------------------------------------------------

    @property
    def pane(self) -> str:
        """The pane that keys go to."""
        return self._panes[self.page]

    @property
    def table(self) -> Table | None:
        """The table that keys go to; None in a pane that is none, and while the screen comes or goes."""
        return next(iter(self.query(f"#{self.pane}").results(Table)), None)

    def show_pane(self, name: str) -> None:
        self._panes[self.page] = name
        for other in PAGES[self.page].panes:
            self.query_one(f"#{other}").set_class(other == name, "-current").refresh()
        pane = self.query_one(f"#{name}")
        self.screen_stack[0].set_focus(pane if pane.can_focus else None)
        self._lay_panes()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click chooses a pane too."""
        name = event.widget.id or ""
        if name in PAGES[self.page].panes and name != self.pane:
            self.show_pane(name)
            self.draw_lines()

    def _lay_panes(self) -> None:
        """One at a time where there is no room for more, or where one is zoomed."""
        narrow = self.screen_stack[0].has_class("-narrow")
        single = len(PAGES[self.page].panes) > 1 and (self.zoomed or narrow)
        self.query_one("#pages").set_class(single, "-single")
        self.query_one("#tabs").display = single

    def say(self, text: str) -> None:
        """One line on the status line, until the next key that says something or changes the page."""
        self.note = text
        self.draw_lines()
