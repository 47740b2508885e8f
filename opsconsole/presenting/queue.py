"""The queue: every waiting workload in order, each with its one reason. Rows are made when they are looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opsconsole.presenting.rows import Cell, Column, LazyRows, TableView
from opsconsole.presenting.text import clean, day_clock, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.explain import Explainer, Hold, HoldKind
from scheduler_core.ids import WorkloadId
from scheduler_core.queueing import queue_order
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.workload import Workload, WorkloadPhase

COLUMNS = (
    Column("POS", 4, right=True, by="position"),
    Column("WORKLOAD", 14, by="name workload", most=30),
    Column("BUDGET", 12, by="budget", most=24),
    Column("OWNER", 8, from_width=90, by="owner", most=12),
    Column("GPUS", 4, right=True, by="gpus"),
    Column("MIN", 6, right=True, by="min_runtime_s"),
    Column("WAITED", 6, right=True, by="waited_s"),
    Column("WHY", 20, grow=True, by="why"),
    Column("STARTS BY", 10, right=True, from_width=100, by="starts_in_s"),
    Column("REASON", 17, by="reason", extra=True),
    Column("ATTEMPT", 7, right=True, by="attempt", extra=True),
)
MOVE = Column("MOVE", 4, right=True, from_width=90, by="move")
MOVING = (COLUMNS[0], MOVE, *COLUMNS[1:])
NOT_A_START = (HoldKind.HELD, HoldKind.RETRY_DELAY, HoldKind.BLAST)  # when these end it waits for GPUs
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


@dataclass
class Waiting:
    """What a row of the queue is about."""

    view: ClusterView
    position: int
    record: WorkloadRecord
    explainer: Explainer
    before: Mapping[str, int] | None

    @cached_property
    def hold(self) -> Hold:
        return self.explainer.hold(self.record)

    @property
    def budget(self) -> str:
        return self.view.state.budgets.paths[self.record.workload.budget]

    @property
    def waited_ms(self) -> int:
        return self.view.state.now - self.record.workload.submitted_at

    @property
    def moved(self) -> int | None:
        """Places nearer to the start; None where it is new."""
        was = (self.before or {}).get(self.record.workload.id)
        return None if was is None else was - self.position


def _starts_at(w: Waiting) -> int | None:
    """When it starts: at the latest, where that is promised (rule 21), else as far as known now."""
    return w.hold.until if w.hold.kind not in NOT_A_START else None


def _starts_in_s(w: Waiting) -> float | None:
    at = _starts_at(w)
    return None if at is None else max(0, at - w.view.state.now) / 1000


def _starts_by(w: Waiting) -> Cell:
    until = w.hold.until
    if until is None:
        return Cell("")
    sign = "" if w.record.reserved is not None else ">" if w.hold.kind in NOT_A_START else "~"
    return Cell(sign + day_clock(w.view.wall(until), w.view.wall_ms))


VALUES: dict[str, Callable[[Waiting], Any]] = {
    "position": lambda w: w.position,
    "workload": lambda w: w.record.workload.id,
    "name": lambda w: w.record.workload.name,
    "budget": lambda w: w.budget,
    "owner": lambda w: w.record.workload.owner,
    "gpus": lambda w: w.record.workload.gpus,
    "min_runtime_s": lambda w: w.record.workload.min_runtime_ms / 1000,
    "waited_s": lambda w: w.waited_ms / 1000,
    "reason": lambda w: w.hold.kind.value,
    "why": lambda w: w.hold.text,
    "until_ms": lambda w: None if w.hold.until is None else w.view.wall(w.hold.until),
    "starts_in_s": _starts_in_s,
    "promised": lambda w: w.record.reserved is not None,
    "attempt": lambda w: w.record.attempt,
}


def queue_table(view: ClusterView, before: Mapping[str, int] | None = None) -> TableView:
    """`before`: earlier positions by workload, for a column that tells how far each has moved since."""
    order = order_of(view)
    explainer, workloads = Explainer(view.state), view.state.workloads

    def waiting(at: int) -> Waiting:
        return Waiting(view, at + 1, workloads[order[at]], explainer, before)

    moving = before is not None
    values = VALUES | {"move": lambda w: w.moved} if moving else VALUES
    rows = LazyRows(order, waiting, _cells, values)
    return TableView("Waiting", MOVING if moving else COLUMNS, rows, "nobody waits")


def _cells(waiting: Waiting) -> tuple[Cell, ...]:
    w, hold = waiting.record.workload, waiting.hold
    return (
        Cell(str(waiting.position), "dim"),
        *(() if waiting.before is None else (_move(waiting.moved),)),
        Cell(workload_label(w.id, w.name)),
        Cell(clean(waiting.budget, 60)),
        Cell(clean(w.owner, 30)),
        Cell(str(w.gpus)),
        Cell(span(w.min_runtime_ms) if w.allocated else "free", "" if w.allocated else "dim"),
        Cell(span(waiting.waited_ms)),
        Cell(clean(hold.text), TOKENS.get(hold.kind, "")),
        _starts_by(waiting),
        Cell(hold.kind.value, "dim"),
        Cell(str(waiting.record.attempt), "dim"),
    )


def _move(moved: int | None) -> Cell:
    if moved is None:
        return Cell("new", "dim")
    if moved == 0:
        return Cell("–", "dim")
    return Cell(f"▲{moved}", "good") if moved > 0 else Cell(f"▼{-moved}", "warn")


def workload_label(wid: WorkloadId, name: str) -> str:
    """The name that its owner gave it, with the id."""
    return clean(f"{name} {wid}" if name and name != wid else wid, 80)


def run_label(workload: Workload, run: str) -> str:
    """The same of a run: its number stands behind."""
    return workload_label(workload.id, workload.name) + run[len(workload.id) :]


def order_of(view: ClusterView) -> list[WorkloadId]:
    """All that wait or are held, in rule 6's order."""
    return view.once("order", lambda: queue_order(view.state))


def why_counts(view: ClusterView) -> dict[str, int]:
    """How many wait for which kind of reason, the most frequent first."""
    return view.once("reasons", lambda: _why_counts(view.state))


def _why_counts(state: ClusterState) -> dict[str, int]:
    explainer = Explainer(state)
    waiting = (r for r in state.workloads.values() if r.phase in (WorkloadPhase.WAITING, WorkloadPhase.HELD))
    counts = Counter(explainer.hold(record).kind.value for record in waiting)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
