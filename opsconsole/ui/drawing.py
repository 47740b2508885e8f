"""What the console shows: one page of tables at a time between a header and a footer, on panes or as tabs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widgets import ContentSwitcher

from opsconsole.presenting.history import LastDay
from opsconsole.presenting.logbook import Logbook
from opsconsole.presenting.moves import Moves
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.summary import is_current
from opsconsole.presenting.text import clock
from opsconsole.presenting.trends import Trends
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_detail import written
from opsconsole.settings import ASCII
from opsconsole.ui.actions import app_bindings
from opsconsole.ui.asking import Asking
from opsconsole.ui.completing import complete_command
from opsconsole.ui.desk import Desk
from opsconsole.ui.frame import (
    alert_cells,
    footer_cells,
    header_cells,
    show_map,
    status_cells,
    tab_cells,
)
from opsconsole.ui.keymap import Keymap
from opsconsole.ui.output import Output
from opsconsole.ui.pages import MAP, OUTPUT, PAGES, RUNS
from opsconsole.ui.places import Place
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.source import ConsoleSource
from opsconsole.ui.supervise import Alerts, Supervisor
from opsconsole.ui.themes import DARK, THEMES, Typewriter
from opsconsole.ui.widgets.entry import Entry
from opsconsole.ui.widgets.lines import Line, Lines
from opsconsole.ui.widgets.painting import entitle
from opsconsole.ui.widgets.table import Table
from opsconsole.ui.window import WriteWindow

LEAST = (60, 15)
NARROW = 100
CUT = (Cell(" … x tells the rest", "dim"),)


class ConsolePages(App[int]):
    """Draws the picture, wherever that comes from. The exit status is the app's return value."""

    CSS_PATH = ["app.tcss", "screens/pages.tcss"]  # noqa: RUF012 - as Textual declares it
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
        self.trends: Trends = Trends()
        self.last_day: LastDay = LastDay()
        self.logbook: Logbook = Logbook()
        self.output: Output = Output(source, self._output_came)
        self.paused_at: float | None = None
        self.zoomed = False
        self.note = ""
        self.place = Place(self.settings.screen)
        self.past: list[Place] = []
        self._panes = {name: next(iter(page.panes)) for name, page in PAGES.items()}
        self._of: dict[str, str] = {}  # whose detail each page showed last
        self.history: list[str] = []
        self._shown_version = -1
        self._draw_again_at = 0.0

    def compose(self) -> ComposeResult:
        yield Line(id="header")
        yield Line(id="alerts")
        yield Line(id="tabs")
        with ContentSwitcher(initial=self.page, id="pages"):
            yield Vertical(*PAGES[self.page].widgets(), id=self.page)
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

    @property
    def page(self) -> str:
        return self.place.page

    @property
    def paused(self) -> bool:
        return self.paused_at is not None

    @property
    def paused_ms(self) -> int:
        """For how long the picture has been held still."""
        return 0 if self.paused_at is None else int((time.monotonic() - self.paused_at) * 1000)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """All of it. A defect in drawing is shown and ends nothing."""
        if self._drawn(self._draw):
            self.alerts.over("drawing")

    def draw_lines(self) -> None:
        """Header, alerts, tabs, status and footer: they cost nothing and are always true."""
        self._drawn(self._draw_lines)

    def _drawn(self, draw: Callable[[], None]) -> bool:
        try:
            draw()
        except Exception as error:
            self.alerts.failed("drawing", error)
            return False
        return True

    def _draw(self) -> None:
        view = self.picture
        with self.batch_update():
            if view is not None:
                self.asking.look(view)
                self._draw_page(view)
            self._draw_lines()
            if view is not None and isinstance(self.screen, LiveScreen):
                self.screen.update_from(view)

    def _draw_lines(self) -> None:
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
        page = PAGES[self.page]
        self._look_closely(view)
        if page.head is not None:
            head = self.query_one(f"#{page.head_id}", Lines)
            lines, room = page.head(self, view, self.place.subject, self.size.width), max(3, self.size.height // 3)
            head.show_lines(lines if len(lines) <= room else [*lines[: room - 1], CUT])
        if MAP in page.panes:
            show_map(self, view)
        for name, build in page.panes.items():
            if build is not None:
                table = self.query_one(f"#{name}", Table)
                newest = self._newest(name, table)
                table.show(build(self, view, self.place.subject), trouble if name != OUTPUT else "")
                if newest and table.rowset.at != self._at_newest(name, table):
                    table.move_to(self._at_newest(name, table))
                self.show_title(table)

    def _newest(self, name: str, table: Table) -> bool:
        """Is the cursor on the newest row, of what grows while one looks on? Then it goes on to what is newer."""
        return name in (OUTPUT, RUNS) and table.rowset.at == self._at_newest(name, table)

    def _at_newest(self, name: str, table: Table) -> int:
        return max(0, len(table.rowset.rows) - 1) if name == OUTPUT else 0

    def _look_closely(self, view: ClusterView) -> None:
        """What is kept or read only while the detail of a host or a workload is open."""
        if self.page == "host":
            self.trends.look(view, self.place.subject)
        run = written(view, self.place.subject, self.selected(RUNS)) if self.page == "workload" else None
        self.output.want(*(run or ()))

    def _output_came(self) -> None:
        """Drawn with the next look, so that a chatty run does not paint more often than anything else."""
        self._shown_version = -1

    def selected(self, name: str) -> str | None:
        """Key of the row that is selected in a pane of this page."""
        return self.query_one(f"#{name}", Table).rowset.cursor

    def show_title(self, table: Table) -> None:
        """What it holds, how many rows are shown and marked, and the filter."""
        rows = table.rowset
        counted = f" ({rows.summary()})" if rows.view.counted or rows.filter.text or rows.marks else ""
        filtered = f"  /{rows.filter.text}" if rows.filter.text else ""
        entitle(table, f"{rows.view.title}{counted}{filtered}{self._as_of()}")

    def _as_of(self) -> str:
        """When it was so, where nobody keeps the picture true or it is held still."""
        view = self.picture
        if view is None or (is_current(view) and not self.paused):
            return ""
        return f"  as of {clock(view.wall_ms - int(view.lag_s * 1000))}"

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.width, event.size.height)
        self.call_after_refresh(self.draw)  # the app itself knows its new size only then

    def _fit(self, width: int, height: int) -> None:
        """Every screen of the stack knows whether it is narrow, or too small to be of use."""
        small = width < LEAST[0] or height < LEAST[1]
        for screen in self.screen_stack:
            screen.set_class(small, "-small")
            screen.set_class(width < NARROW, "-narrow")
        self._lay_panes()
        text = f"needs at least {LEAST[0]}×{LEAST[1]}, this is {width}×{height}"
        self.query_one("#too-small-text", Lines).show_lines([[Cell(text, "warn")]])

    # -- pages -----------------------------------------------------------------------------------------------------

    def go(self, name: str, subject: str = "", remember: bool = True) -> None:
        """To a page, and whose where it is a detail; the pane that had the keys there has them again."""
        place = Place(name, subject)
        if remember and place != self.place:
            self.past.append(self.place)
            del self.past[:-20]
        self._make(name)
        self.place, self.note = place, ""
        if self._of.get(name, subject) != subject:
            for pane in PAGES[name].panes:
                self.query_one(f"#{pane}", Table).forget()
        self._of[name] = subject
        self.query_one("#pages", ContentSwitcher).current = name
        self.show_pane(self.pane)
        self.draw()

    def _make(self, name: str) -> None:
        """Pages are made when they are opened first: the first frame does not wait for them."""
        pages = self.query_one("#pages", ContentSwitcher)
        if not pages.query_children(f"#{name}"):
            page = Vertical(id=name)
            page.display = False
            pages.mount(page)
            page.mount(*PAGES[name].widgets())

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
        if text:
            self.logbook.note("said", text)
        self.draw_lines()
