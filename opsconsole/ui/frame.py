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
from opsconsole.presenting.summary import drains_running, leader_cell, reach_cells
from opsconsole.presenting.text import clean, clock
from opsconsole.presenting.timeline import timeline_table
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import ACTIONS, shown_key
from opsconsole.ui.widgets.lines import Lines, joined
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.app import OpsConsoleApp

Builder = Callable[["OpsConsoleApp", ClusterView], TableView]


@dataclass(frozen=True, slots=True)
class Page:
    """A screen of the console: its tables by id, in the order in which Tab visits them."""

    name: str
    tables: dict[str, Builder] = field(default_factory=dict)

    def compose(self) -> ComposeResult:
        if self.name == "overview":
            yield Lines(id="figures")
            yield Table(id="o-budgets")
            yield Lines(id="map")
            yield Table(id="o-needs")
            yield Lines(id="queue-lines")
        else:
            for name in self.tables:
                yield Table(id=name)


PAGES: dict[str, Page] = {
    page.name: page
    for page in (
        Page(
            "overview",
            {
                "o-budgets": lambda app, view: budgets_table(view),
                "o-needs": lambda app, view: needs_table(view, dict(app.alerts.texts) | dict(view.alarms)),
            },
        ),
        Page("hosts", {"t-hosts": lambda app, view: hosts_table(view)}),
        Page(
            "queue",
            {"t-queue": lambda app, view: queue_table(view), "t-runs": lambda app, view: runs_table(view)},
        ),
        Page("budgets", {"t-budgets": lambda app, view: budgets_table(view)}),
        Page("drains", {"t-drains": lambda app, view: drains_table(view)}),
        Page("timeline", {"t-timeline": lambda app, view: timeline_table(view)}),
    )
}


def show_overview(app: OpsConsoleApp, view: ClusterView) -> None:
    """The parts of the overview that are no tables."""
    app.query_one("#figures", Lines).show_lines([figures(view)])
    app.query_one("#map", Lines).show_lines(host_map(view, max(20, app.size.width // 2 - 4)))
    app.query_one("#queue-lines", Lines).show_lines(queue_lines(view))
    titles = {
        "o-budgets": "Budgets",
        "o-needs": "Needs a person (oldest first)",
        "map": "Hosts",
        "queue-lines": "Queue",
    }
    for name, title in titles.items():
        app.query_one(f"#{name}").border_title = title


def header_cells(app: OpsConsoleApp, view: ClusterView | None) -> list[Cell]:
    """Where one is, what one may do, who leads, how fresh it all is. What is wrong is never left out."""
    notes = app.notes()
    alarm = (
        [Cell(f"! {clean(notes[0], 80)}{f' (+{len(notes) - 1})' if len(notes) > 1 else ''}", "bad")] if notes else []
    )
    if view is None:
        return joined([[Cell(app.page)], [Cell("reading the store …", "unknown")], alarm], app.size.width, [])
    parts = [
        [Cell(app.page, "accent")],
        [Cell(clean(view.cluster, 20))],
        [app.window.cell()],
        [leader_cell(view)],
        [Cell("ssh "), *reach_cells(view)],
        [Cell(f"drains {drains_running(view)}")],
        [Cell("PAUSED", "warn")] if app.paused else [],
        [Cell(clock(view.wall_ms), "dim")],
        alarm,
    ]
    return joined([part for part in parts if part], app.size.width, [1, 5])


def footer_cells(width: int) -> list[Cell]:
    """As many keys as fit; `?` tells the rest."""
    cells: list[Cell] = [Cell(" ")]
    used = 1
    for action in sorted((a for a in ACTIONS if a.short and a.keys), key=lambda a: a.name not in ("help", "quit")):
        text = f"{shown_key(action.keys[0])} {action.short}  "
        if used + len(text) > width:
            break
        cells += [Cell(shown_key(action.keys[0]), "accent"), Cell(f" {action.short}  ")]
        used += len(text)
    return cells
