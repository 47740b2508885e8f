"""What each page holds, and the lines around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from opsconsole.presenting.budgets import budgets_table
from opsconsole.presenting.drains import drains_table
from opsconsole.presenting.hosts import hosts_table
from opsconsole.presenting.overview import figures, host_map, needs_table, queue_lines
from opsconsole.presenting.queue import queue_table
from opsconsole.presenting.rows import Cell, TableView
from opsconsole.presenting.runs import runs_table
from opsconsole.presenting.summary import drains_running, health_line, leader_cell, reach_cells
from opsconsole.presenting.text import clean, clock
from opsconsole.presenting.timeline import timeline_table
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import BY_NAME, shown_key
from opsconsole.ui.widgets.lines import Lines, joined
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.base import ConsoleBase

Builder = Callable[["ConsoleBase", ClusterView], TableView]
NEEDS = "Needs a person, oldest first"


@dataclass(frozen=True, slots=True)
class Page:
    """A screen of the console: its tables by id, with title and rows, in the order in which Tab visits them."""

    name: str
    tables: dict[str, tuple[str, Builder]] = field(default_factory=dict)

    def compose(self) -> ComposeResult:
        if self.name == "overview":
            yield Lines(id="figures")
        for name in self.tables:
            yield Table(id=name)
        if self.name == "overview":
            yield Lines(id="map")
            yield Lines(id="queue-lines")


def _page(name: str, **tables: tuple[str, Builder]) -> Page:
    return Page(name, {key.replace("_", "-"): value for key, value in tables.items()})


PAGES: dict[str, Page] = {
    page.name: page
    for page in (
        _page(
            "overview",
            o_needs=(NEEDS, lambda app, view: needs_table(view, dict(app.alerts.texts) | dict(view.alarms))),
            o_budgets=("Budgets", lambda app, view: budgets_table(view)),
        ),
        _page("hosts", t_hosts=("Hosts", lambda app, view: hosts_table(view))),
        _page(
            "queue",
            t_queue=("Waiting", lambda app, view: queue_table(view)),
            t_runs=("Running", lambda app, view: runs_table(view)),
        ),
        _page("budgets", t_budgets=("Budgets", lambda app, view: budgets_table(view))),
        _page("drains", t_drains=("Drains", lambda app, view: drains_table(view))),
        _page("timeline", t_timeline=("Timeline, newest first", lambda app, view: timeline_table(view))),
    )
}
# What the footer shows on each page, the most useful first: about seven keys fit on 80 columns.
FOOTER = {
    "overview": "help screens explain command drain filter quit",
    "hosts": "help explain drain cordon undrain filter command quit",
    "queue": "help explain requeue cancel pane filter command quit",
    "budgets": "help explain filter command quit",
    "drains": "help explain undrain filter command quit",
    "timeline": "help explain filter command pause quit",
}


def show_overview(app: ConsoleBase, view: ClusterView) -> None:
    """The parts of the overview that are no tables."""
    app.query_one("#figures", Lines).show_lines([figures(view)])
    half = app.size.width if app.size.width < 100 else app.size.width // 2
    hosts = app.query_one("#map", Lines)
    hosts.show_lines([*host_map(view, max(20, half - 4))[:24], [Cell(health_line(view), "dim")]])
    hosts.border_title = "Hosts: ● live ◐ late ○ stale ✖ lost ▽ draining ▼ out"
    queue = app.query_one("#queue-lines", Lines)
    queue.show_lines(queue_lines(view))
    queue.border_title = "Queue"


def alert_cells(app: ConsoleBase) -> list[Cell]:
    """What stands against the console or the leader, the newest words first; how many there are."""
    texts = [*app.alerts.texts.values()]
    if app.picture is not None:
        texts += [f"{about}: {text}" for about, text in app.picture.alarms.items()]
    if not texts:
        return []
    more = f" (+{len(texts) - 1} on the overview)" if len(texts) > 1 else ""
    return [Cell(f" ✖ {clean(texts[-1])}{more}", "bad")]


def header_cells(app: ConsoleBase, view: ClusterView | None) -> list[Cell]:
    """Where one is, what one may do, who leads, how fresh it all is. What is wrong is never left out."""
    if view is None:
        return joined([[Cell(app.page, "accent")], [Cell("reading the store …", "unknown")]], app.size.width, [])
    alerts = len(app.alerts.texts) + len(view.alarms)
    parts = [
        [Cell(app.page, "accent")],
        [Cell(clean(view.cluster, 20))],
        [app.window.cell()],
        [leader_cell(view)],
        [Cell("ssh "), *spaced(reach_cells(view))],
        [Cell("PAUSED", "warn")] if app.paused else [Cell(f"drains {drains_running(view)}")],
        [Cell(f"alerts {alerts}", "bad")] if alerts else [],
        [Cell(clock(view.wall_ms), "dim")],
    ]
    return joined(parts, app.size.width, [1, 7])


def spaced(cells: list[Cell]) -> list[Cell]:
    return [part for cell in cells for part in (cell, Cell(" "))][:-1]


def status_cells(app: ConsoleBase) -> list[Cell]:
    """What was just said; else how far the newest action has come. It stays."""
    if app.note:
        return [Cell(f" {clean(app.note)}")]
    newest = app.asking.newest()
    return [Cell(" "), *newest.cells()] if newest is not None else []


def footer_cells(page: str, width: int) -> list[Cell]:
    """As many keys as fit; `?` tells the rest."""
    cells: list[Cell] = [Cell(" ")]
    used = 1
    for name in FOOTER[page].split():
        key, short = ("1-8", "screens") if name == "screens" else (shown_key(BY_NAME[name].keys[0]), _short(name))
        used += len(key) + len(short) + 3
        if used > width:
            break
        cells += [Cell(key, "accent"), Cell(f" {short}  ")]
    return cells


def _short(name: str) -> str:
    return BY_NAME[name].short or name
