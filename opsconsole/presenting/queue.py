"""The queue: every waiting workload in order, each with its one reason. Rows are made when they are looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from opsconsole.presenting.rows import Cell, Column, LazyRows, Row, TableView
from opsconsole.presenting.text import clean, day_clock, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.explain import Explainer, Hold, HoldKind
from scheduler_core.ids import WorkloadId
from scheduler_core.queueing import queue_order
from scheduler_core.state import WorkloadRecord

POSITION = Column("POS", 4, right=True, by="position")
MOVE = Column("MOVE", 4, right=True, from_width=90, by="move")
REST = (
    Column("WORKLOAD", 14, by="name", most=30),
    Column("BUDGET", 12, by="budget", most=24),
    Column("OWNER", 8, from_width=90, by="owner", most=12),
    Column("GPUS", 4, right=True, by="gpus"),
    Column("MIN", 6, right=True, by="min_runtime_s"),
    Column("WAITED", 6, right=True, by="waited_s"),
    Column("WHY", 20, grow=True, by="reason"),
    Column("STARTS BY", 9, right=True, from_width=100, by="until_ms"),
)
COLUMNS = (POSITION, *REST)
MOVING = (POSITION, MOVE, *REST)
TOKENS = {
    HoldKind.PROTECTED: "accent",
    HoldKind.VICTIM_STOPPING: "accent",
    HoldKind.HELD: "warn",
    HoldKind.NO_SHAPE: "bad",
    HoldKind.TOO_SMALL: "bad",
    HoldKind.HOST_HEALTH: "warn",
    HoldKind.READINGS_UNKNOWN: "unknown",
    HoldKind.FOREIGN_PROCESS: "warn",
}


def queue_table(view: ClusterView, before: Mapping[str, int] | None = None) -> TableView:
    """`before`: earlier positions by workload, for a column that tells how far each has moved since."""
    order = queue_order(view.state)
    explainer = Explainer(view.state)

    def make(at: int) -> Row:
        record = view.state.workloads[order[at]]
        return _row(view, at + 1, record, explainer.hold(record), before)

    return TableView("Waiting", COLUMNS if before is None else MOVING, LazyRows(order, make), "nobody waits")


def _row(view: ClusterView, position: int, record: WorkloadRecord, hold: Hold, before: Mapping[str, int] | None) -> Row:
    w, state = record.workload, view.state
    waited = state.now - w.submitted_at
    was = (before or {}).get(w.id)
    cells = (
        Cell(str(position), "dim"),
        *(() if before is None else (_move(position, was),)),
        Cell(workload_label(w.id, w.name)),
        Cell(clean(state.budgets.paths[w.budget], 60)),
        Cell(clean(w.owner, 30)),
        Cell(str(w.gpus)),
        Cell(span(w.min_runtime_ms) if w.allocated else "free", "" if w.allocated else "dim"),
        Cell(span(waited)),
        Cell(clean(hold.text), TOKENS.get(hold.kind, "")),
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
    if before is not None:
        data["move"] = None if was is None else was - position
    return Row(w.id, cells, data)


def _move(position: int, was: int | None) -> Cell:
    """Up is nearer to the start."""
    if was is None:
        return Cell("new", "dim")
    if was == position:
        return Cell("–", "dim")
    return Cell(f"▲{was - position}", "good") if was > position else Cell(f"▼{position - was}", "warn")


def workload_label(wid: WorkloadId, name: str) -> str:
    """The name that its owner gave it, with the id."""
    return clean(f"{name} {wid}" if name and name != wid else wid, 80)


def why_counts(view: ClusterView) -> dict[str, int]:
    """How many wait for which kind of reason, the most frequent first."""
    explainer = Explainer(view.state)
    counts = Counter(explainer.hold(view.state.workloads[wid]).kind.value for wid in queue_order(view.state))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
