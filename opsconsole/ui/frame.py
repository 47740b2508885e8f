"""What each page holds, and the lines around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content

from opsconsole.presenting.budgets import budgets_table
from opsconsole.presenting.drains import drains_table
from opsconsole.presenting.host_rows import hosts_table
from opsconsole.presenting.needs import needs_table
from opsconsole.presenting.overview import figures, host_map, hosts_title, reasons_table
from opsconsole.presenting.queue import queue_table
from opsconsole.presenting.rows import Cell, TableView
from opsconsole.presenting.runs import runs_table
from opsconsole.presenting.summary import drains_running, leader_cell, reach_cells
from opsconsole.presenting.text import clean, clock
from opsconsole.presenting.timeline import timeline_table
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import BY_NAME
from opsconsole.ui.keymap import Keymap, shown_key
from opsconsole.ui.widgets.lines import Lines, joined
from opsconsole.ui.widgets.painting import entitle
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.base import ConsoleBase

Builder = Callable[["ConsoleBase", ClusterView], TableView]
MAP = "o-map"


@dataclass(frozen=True, slots=True)
class Page:
    """A screen of the console: its panes by id, in the order in which Tab visits them. The map alone is no table."""

    name: str
    panes: dict[str, Builder | None] = field(default_factory=dict)

    def compose(self) -> ComposeResult:
        if MAP in self.panes:
            yield Lines(id="figures")
        for name, build in self.panes.items():
            yield Table(id=name, classes="pane") if build is not None else Lines(id=name, classes="pane")


def _page(name: str, **panes: Builder | None) -> Page:
    return Page(name, {key.replace("_", "-"): value for key, value in panes.items()})


PAGES: dict[str, Page] = {
    page.name: page
    for page in (
        _page(
            "overview",
            o_needs=lambda app, view: needs_table(view, app.alerts.texts),
            o_budgets=lambda app, view: budgets_table(view),
            o_map=None,
            o_queue=lambda app, view: reasons_table(view),
        ),
        _page("hosts", t_hosts=lambda app, view: hosts_table(view)),
        _page(
            "queue",
            t_queue=lambda app, view: queue_table(view, app.moves.before(view)),
            t_runs=lambda app, view: runs_table(view),
        ),
        _page("budgets", t_budgets=lambda app, view: budgets_table(view)),
        _page("drains", t_drains=lambda app, view: drains_table(view)),
        _page("timeline", t_timeline=lambda app, view: timeline_table(view)),
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
    pane = app.query_one(f"#{MAP}", Lines)
    size = pane.content_size
    pane.show_lines(host_map(view, max(20, size.width), size.height or 3))
    entitle(pane, hosts_title(view))


def tab_cells(app: ConsoleBase) -> list[Cell]:
    """The panes of a page of which one is shown at a time; that one stands in brackets."""
    cells = [Cell(" ")]
    for name in PAGES[app.page].panes:
        title = Content.from_markup(str(app.query_one(f"#{name}").border_title or name)).plain
        here = name == app.pane
        cells += [
            Cell(f"[{title}]" if here else f" {title.partition(':')[0]} ", "accent" if here else "dim"),
            Cell(" "),
        ]
    return cells


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
    return joined(parts, app.size.width, [1, 7, 5])


def spaced(cells: list[Cell]) -> list[Cell]:
    return [part for cell in cells for part in (cell, Cell(" "))][:-1]


def status_cells(app: ConsoleBase) -> list[Cell]:
    """What was just said; else how far the newest action has come; else what the selected row had no room for."""
    if app.note:
        return [Cell(f" {clean(app.note)}")]
    if told := app.asking.cells():
        return [Cell(" "), *told]
    cut = app.table.cut() if app.table is not None else ""
    return [Cell(f" {clean(cut)}", "dim")] if cut else []


def footer_cells(page: str, width: int, keymap: Keymap) -> list[Cell]:
    """As many keys as fit; `?` tells the rest."""
    cells: list[Cell] = [Cell(" ")]
    used = 1
    for name in FOOTER[page].split():
        if name != "screens" and not keymap.of(name):
            continue
        key, short = ("1-7", "screens") if name == "screens" else (shown_key(keymap.of(name)[0]), _short(name))
        used += len(key) + len(short) + 3
        if used > width:
            break
        cells += [Cell(key, "accent"), Cell(f" {short}  ")]
    return cells


def _short(name: str) -> str:
    return BY_NAME[name].short or name
