"""What people ask to be told of: a run, a workload, a drain or a host, until it ends or stands differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.queue import run_label
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, clock
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import active_drains
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.workload import WorkloadPhase

COLUMNS = (Column("SINCE", 8), Column("WHAT", 30, grow=True), Column("NOW", 40, grow=True))


@dataclass(frozen=True, slots=True)
class Watched:
    """`was`: how a host stood then; empty for the others, which end."""

    kind: Literal["run", "workload", "drain", "host"]
    name: str
    since_ms: int
    was: str = ""

    @property
    def key(self) -> str:
        return f"{self.kind} {self.name}"


def watched(view: ClusterView, name: str) -> Watched | None:
    """Of a host that drains, its drain. None for what is none of these, or has ended."""
    state, since = view.state, view.wall_ms
    if RunId(name) in state.runs:
        return Watched("run", name, since)
    record = state.workloads.get(WorkloadId(name))
    if record is not None:
        return None if record.phase is WorkloadPhase.ENDED else Watched("workload", name, since)
    if any(drain.host == name for drain in active_drains(state)):
        return Watched("drain", name, since)
    return Watched("host", name, since, _standing(view, name)) if HostName(name) in state.hosts else None


def end_of(view: ClusterView, watch: Watched) -> str:
    """How it ended; empty while it has not."""
    name = _label(view, watch)
    if watch.kind == "run":
        return f"run {name} ended: {_outcome(view, watch.name)}" if RunId(watch.name) not in view.state.runs else ""
    if watch.kind == "workload":
        record = view.state.workloads.get(WorkloadId(watch.name))
        if record is None:
            return f"workload {name} ended over a day ago"
        return f"workload {name} ended: {record.outcome}" if record.phase is WorkloadPhase.ENDED else ""
    now = _standing(view, watch.name)
    if watch.kind == "drain":
        draining = any(drain.host == watch.name for drain in active_drains(view.state))
        return "" if draining else f"drain of {name} ended: the host is {now}"
    return f"host {name} is {now}, was {watch.was}" if now != watch.was else ""


def watches_table(view: ClusterView | None, watches: list[Watched], ended: list[tuple[int, str]]) -> TableView:
    """Those that go on, then what has ended, the newest first. `ended`: wall time in ms, and the words."""
    rows = [
        Row(
            w.key,
            (Cell(clock(w.since_ms), "dim"), Cell(f"{w.kind} {_label(view, w)}"), Cell("you will be told", "accent")),
        )
        for w in watches
    ]
    rows += [
        Row(f"ended {n}", (Cell(clock(at), "dim"), Cell(text), Cell("over", "dim")))
        for n, (at, text) in reversed([*enumerate(ended)])
    ]
    return TableView("You will be told of", COLUMNS, tuple(rows), "nothing yet: :notify on a host, workload or run")


def _label(view: ClusterView | None, watch: Watched) -> str:
    wid = watch.name.rpartition("~")[0] if watch.kind == "run" else watch.name
    record = view.state.workloads.get(WorkloadId(wid)) if view is not None else None
    if record is None:
        return clean(watch.name, 80)
    return run_label(record.workload, watch.name)


def _outcome(view: ClusterView, run: str) -> str:
    record = view.state.workloads.get(WorkloadId(run.rpartition("~")[0]))
    attempts = record.attempts if record is not None else []
    return next((attempt.outcome for attempt in reversed(attempts) if attempt.run == run), "nobody knows how")


def _standing(view: ClusterView, host: str) -> str:
    record = view.state.hosts.get(HostName(host))
    if record is None:
        return "out of the inventory"
    away = f", {record.reach.value}" if record.reach in AWAY else ""
    return f"{record.state.value}{away}".replace("_", " ")
