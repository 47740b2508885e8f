"""The queue: every waiting workload in order, each with its one reason."""

from __future__ import annotations

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, day_clock, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.explain import Explainer, Hold, HoldKind
from scheduler_core.ids import WorkloadId
from scheduler_core.planner import queue_order
from scheduler_core.state import WorkloadRecord

COLUMNS = (
    Column("POS", 4, right=True, by="position"),
    Column("WORKLOAD", 14, by="name", most=30),
    Column("BUDGET", 12, by="budget", most=24),
    Column("OWNER", 8, from_width=90, by="owner", most=12),
    Column("GPUS", 4, right=True, by="gpus"),
    Column("MIN", 6, right=True, by="min_runtime_s"),
    Column("WAITED", 6, right=True, by="waited_s"),
    Column("WHY", 26, grow=True, by="reason"),
    Column("STARTS BY", 9, right=True, from_width=100, by="until_ms"),
)
SHORT = {
    HoldKind.PROTECTED: "accent",
    HoldKind.VICTIM_STOPPING: "accent",
    HoldKind.HELD: "warn",
    HoldKind.NO_SHAPE: "bad",
    HoldKind.TOO_SMALL: "bad",
    HoldKind.HOST_HEALTH: "warn",
    HoldKind.READINGS_UNKNOWN: "unknown",
    HoldKind.FOREIGN_PROCESS: "warn",
}


def queue_rows(view: ClusterView) -> list[tuple[int, WorkloadRecord, Hold]]:
    """Position, workload and reason of all that wait."""
    explainer = Explainer(view.state)
    records = (view.state.workloads[wid] for wid in queue_order(view.state))
    return [(position, record, explainer.hold(record)) for position, record in enumerate(records, start=1)]


def queue_table(view: ClusterView) -> TableView:
    rows = tuple(_row(view, *entry) for entry in queue_rows(view))
    return TableView("Queue", COLUMNS, rows, "nobody waits")


def _row(view: ClusterView, position: int, record: WorkloadRecord, hold: Hold) -> Row:
    w, state = record.workload, view.state
    waited = state.now - w.submitted_at
    cells = (
        Cell(str(position), "dim"),
        Cell(workload_label(w.id, w.name)),
        Cell(clean(state.budgets.paths[w.budget], 60)),
        Cell(clean(w.owner, 30)),
        Cell(str(w.gpus)),
        Cell(span(w.min_runtime_ms) if w.allocated else "free", "" if w.allocated else "dim"),
        Cell(span(waited)),
        Cell(clean(hold.text), SHORT.get(hold.kind, "")),
        Cell("" if hold.until is None else day_clock(view.wall(hold.until), view.wall_ms)),
    )
    data = {
        "position": position,
        "workload": w.id,
        "name": w.name,
        "budget": state.budgets.paths[w.budget],
        "owner": w.owner,
        "gpus": w.gpus,
        "min_runtime_s": w.min_runtime_ms / 1000,
        "waited_s": waited / 1000,
        "reason": hold.kind.value,
        "why": hold.text,
        "until_ms": None if hold.until is None else view.wall(hold.until),
        "attempt": record.attempt,
    }
    return Row(w.id, cells, data)


def workload_label(wid: WorkloadId, name: str) -> str:
    """The name that its owner gave it, with the id."""
    return clean(f"{name} {wid}" if name and name != wid else wid, 80)


def why_counts(view: ClusterView) -> dict[str, int]:
    """How many wait for which kind of reason."""
    counts: dict[str, int] = {}
    for _, _, hold in queue_rows(view):
        counts[hold.kind.value] = counts.get(hold.kind.value, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
