"""The pages of the console: what each holds, and which keys its footer names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.widget import Widget

from opsconsole.presenting.budgets import budgets_table
from opsconsole.presenting.drain_detail import drain_runs, drain_steps
from opsconsole.presenting.drains import drains_table
from opsconsole.presenting.evidence import evidence_table
from opsconsole.presenting.facts import Line
from opsconsole.presenting.gpus import gpus_table
from opsconsole.presenting.host_detail import host_head, host_runs_table
from opsconsole.presenting.host_rows import hosts_table
from opsconsole.presenting.logbook import log_table
from opsconsole.presenting.needs import needs_table
from opsconsole.presenting.overview import figures, reasons_table
from opsconsole.presenting.queue import queue_table
from opsconsole.presenting.rows import TableView
from opsconsole.presenting.runs import runs_table
from opsconsole.presenting.timeline import timeline_table
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_detail import attempts_table, workload_head
from opsconsole.ui.widgets.lines import Lines
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.drawing import ConsolePages

Builder = Callable[["ConsolePages", ClusterView, str], TableView]
Head = Callable[["ConsolePages", ClusterView, str, int], list[Line]]
MAP = "o-map"
RUNS = "w-runs"
OUTPUT = "w-output"


@dataclass(frozen=True, slots=True)
class Page:
    """A screen of the console: its panes by id, in the order in which Tab visits them. The map alone is no table.

    What builds them gets the name that a detail is about. `head` makes the lines above them, at a width. `footer`: the
    keys that the footer names, the most useful first, for about seven fit on 80 columns. `follows`: the pane whose
    selected row the others are about.
    """

    name: str
    footer: str
    panes: dict[str, Builder | None]
    head: Head | None = None
    follows: str = ""

    @property
    def head_id(self) -> str:
        return f"{self.name}-head"

    def widgets(self) -> list[Widget]:
        head = [Lines(id=self.head_id, classes="head")] if self.head is not None else []
        kinds = ((name, Lines if build is None else Table) for name, build in self.panes.items())
        return [*head, *(kind(id=name, classes="pane") for name, kind in kinds)]


ALL = (
    Page(
        "overview",
        "help screens open explain command drain filter quit",
        {
            "o-needs": lambda app, view, of: needs_table(view, app.alerts.texts),
            "o-budgets": lambda app, view, of: budgets_table(view),
            MAP: None,
            "o-queue": lambda app, view, of: reasons_table(view, app.last_day.of(view)),
        },
        lambda app, view, of, width: figures(view, app.last_day.of(view), width),
    ),
    Page(
        "hosts",
        "help open explain drain cordon undrain filter command quit",
        {"t-hosts": lambda app, view, of: hosts_table(view)},
    ),
    Page(
        "host",
        "help back neighbour_after explain drain cordon undrain pane command quit",
        {
            "h-gpus": lambda app, view, of: gpus_table(view, of, app.trends),
            "h-runs": lambda app, view, of: host_runs_table(view, of),
            "h-evidence": lambda app, view, of: evidence_table(view, of),
        },
        lambda app, view, of, width: host_head(view, of, width),
    ),
    Page(
        "queue",
        "help open explain requeue cancel pane filter command quit",
        {
            "t-queue": lambda app, view, of: queue_table(view, app.moves.before(view)),
            "t-runs": lambda app, view, of: runs_table(view),
        },
    ),
    Page(
        "workload",
        "help back neighbour_after explain requeue cancel pane filter command quit",
        {
            RUNS: lambda app, view, of: attempts_table(view, of),
            OUTPUT: lambda app, view, of: app.output.table(),
        },
        lambda app, view, of, width: workload_head(view, of, width),
        RUNS,
    ),
    Page("budgets", "help explain filter command quit", {"t-budgets": lambda app, view, of: budgets_table(view)}),
    Page(
        "drains",
        "help open undrain explain pane filter command quit",
        {
            "t-drains": lambda app, view, of: drains_table(view),
            "d-runs": lambda app, view, of: drain_runs(view, app.selected("t-drains")),
            "d-steps": lambda app, view, of: drain_steps(view, app.selected("t-drains")),
        },
        follows="t-drains",
    ),
    Page(
        "timeline",
        "help open explain filter command pause quit",
        {"t-timeline": lambda app, view, of: timeline_table(view)},
    ),
    Page("log", "help filter command pause quit", {"t-log": lambda app, view, of: log_table(app.logbook)}),
)
PAGES: dict[str, Page] = {page.name: page for page in ALL}
