"""Drains as durable operations: who asked, what is left, when the host is empty. Ended ones stay for a while."""

from __future__ import annotations

from collections.abc import Sequence

from opsconsole.presenting.hosts import warnings
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count, day_clock, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import eta, why_unknown
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName
from scheduler_core.state import ClusterState, DrainRecord, HostRecord

COLUMNS = (
    Column("HOST", 11, by="host", most=24),
    Column("STATE", 10, by="state"),
    Column("MODE", 8, by="mode", most=14),
    Column("RUNS", 4, right=True, by="runs_left"),
    Column("EMPTY BY", 12, right=True, by="empty_by_ms"),
    Column("LEFT", 7, right=True, by="left_s"),
    Column("ASKED", 10, right=True, by="age_s"),
    Column("BY", 10, by="by", from_width=90),
    Column("WHY", 16, grow=True, by="reason"),
)
SHOWN = 200


def drain_of(state: ClusterState, record: HostRecord) -> DrainRecord | None:
    """The one that goes on there."""
    drain = state.drains.get(record.drain) if record.drain else None
    return drain if drain is not None and not drain.ended else None


def draining_words(view: ClusterView, hosts: Sequence[str]) -> list[str]:
    """Of those that are being drained: what is left there, and until when, or why nobody can say."""
    state = view.state
    records = [record for host in hosts if (record := state.hosts.get(HostName(host))) is not None]
    going = [(record, record.drain) for record in records if record.state is HostState.DRAINING]
    return [_left(view, record, state.drains[drain]) for record, drain in going if drain is not None]


def _left(view: ClusterView, record: HostRecord, drain: DrainRecord) -> str:
    at = eta(view.state, drain)
    if at is not None:
        until = f"empty by {day_clock(view.wall(at), view.wall_ms)} at the latest"
    else:
        blocked = [] if record.runs else warnings(record, view.facts(record.host.name))
        until = f"nobody can say when it is empty: {'; '.join(blocked) or why_unknown(view.state, drain)}"
    return clean(f"{record.host.name}: {count(len(record.runs), 'run')} left; {until}")


def drains_table(view: ClusterView) -> TableView:
    """Active ones first, the newest first within each."""
    records = sorted(view.state.drains.values(), key=lambda d: (bool(d.ended), -d.requested_at, d.id))
    rows = tuple(_row(view, drain) for drain in records[:SHOWN])
    running = sum(1 for drain in records if not drain.ended)
    title = f"Drains: {running} running, {len(records) - running} ended in the last day"
    return TableView(title, COLUMNS, rows, "no drains: D on a host (screen 2) plans one", counted=False)


def _row(view: ClusterView, drain: DrainRecord) -> Row:
    state = view.state
    record = state.hosts.get(drain.host)
    runs = list(record.runs) if record is not None and not drain.ended else []
    at = eta(state, drain) if record is not None and not drain.ended else None
    left = None if at is None else max(0, at - state.now)
    unknown = "" if drain.ended or at is not None else why_unknown(state, drain)
    word, token = (drain.ended, "dim") if drain.ended else ("BLOCKED", "bad") if unknown else ("draining", "warn")
    ends = "unknown" if at is None else day_clock(view.wall(at), view.wall_ms)
    if drain.ended:
        ends = "–" if drain.done_at is None else f"at {day_clock(view.wall(drain.done_at), view.wall_ms)}"
    cells = (
        Cell(clean(drain.host, 40)),
        Cell(word, token),
        Cell(
            drain.mode
            if drain.deadline_at is None
            else f"{drain.mode} {day_clock(view.wall(drain.deadline_at), view.wall_ms)}"
        ),
        Cell(str(len(runs)) if not drain.ended else "–"),
        Cell(ends, "unknown" if ends == "unknown" else ""),
        Cell(span(left) if left is not None else "–", "accent" if left else "dim"),
        Cell(f"{span(state.now - drain.requested_at)} ago", "dim"),
        Cell(clean(f"{drain.by.actor} (machine)" if drain.automatic else drain.by.actor, 30)),
        Cell(clean(f"{unknown}; {drain.by.why}" if unknown else drain.by.why), "bad" if unknown else ""),
    )
    data = {
        "drain": drain.id,
        "host": drain.host,
        "state": word.lower(),
        "mode": drain.mode,
        "runs_left": len(runs),
        "runs": runs,
        "empty_by_ms": None if at is None else view.wall(at),
        "why_unknown": unknown,
        "left_s": None if left is None else left / 1000,
        "age_s": (state.now - drain.requested_at) / 1000,
        "by": drain.by.actor,
        "automatic": drain.automatic,
        "reason": drain.by.reason,
    }
    return Row(drain.id, cells, data)
