"""The plan of a drain: per run when it is released and what becomes of it, per host when it is empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from opsconsole.presenting.foresight import places
from opsconsole.presenting.host_plans import able, host_refusals, serving_then, stale_hosts, undrained
from opsconsole.presenting.plans import NOTHING, Plan, broken_line, command_line, lost_line, refusals
from opsconsole.presenting.reserved import planned_anew
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count, day_clock, few, gpu_hours, ordinal, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import DrainPlan, DrainRow, drain_plan
from scheduler_core.fleet import HostState
from scheduler_core.gangs import keeps_its_place, may_keep
from scheduler_core.hosttable import HostEvent
from scheduler_core.ids import DrainId, HostName, WorkloadId
from scheduler_core.observations import DrainRequested

Mode = Literal["contract", "finish", "now"]
DRAIN_COLUMNS = (
    Column("HOST", 9, most=10),
    Column("RUN", 13, most=15),
    Column("BUDGET", 10, from_width=100, most=13),
    Column("RAN / MIN", 15, right=True),
    Column("RELEASED", 8, right=True),
    Column("THEN", 19, grow=True),
    Column("LOST IF NOW", 11, right=True, from_width=90),
)


def plan_drain(view: ClusterView, hosts: Sequence[str], mode: Mode = "contract", finish_ms: int | None = None) -> Plan:
    """Rule 25's preview: per run when it is released and what becomes of it; per host when it is empty.

    `finish_ms`: for how long runs may go on to their natural end in mode `finish`.
    """
    state = view.state
    known, names = able(view, hosts, HostEvent.DRAIN)
    deadline = None if finish_ms is None else state.now + finish_ms
    drain = drain_plan(state, names, mode, deadline)
    again = {row.workload: None for row in drain.rows if row.then in ("requeue", "restart")}
    stand = places(state, again) if again else {}
    lost = {row.run: row.lost_gpu_ms for row in drain.rows if row.stops_at is not None and row.stops_at <= state.now}
    return Plan(
        "drain",
        tuple(names),
        TableView(
            f"Drain plan: {count(len(names), 'host')}",
            DRAIN_COLUMNS,
            tuple(_drain_row(view, row, stand) for row in drain.rows),
            "no runs there: empty at once" if names else NOTHING,
        ),
        broken_line(drain.guarantees_broken)
        + lost_line([*lost.values()])
        + serving_then(view, leaving=names)
        + planned_anew(view, names)
        + _empty_lines(view, drain)
        + _gang_lines(view, drain)
        + _drained_already(view, names),
        command_line("drain", names, *_mode_words(mode, finish_ms)),
        tuple((r.host, r.run, r.breaks_guarantee, r.blocked) for r in drain.rows)
        + tuple((n, state.hosts[n].state) for n in known),
        lambda by: [DrainRequested(drain_id(state.now, n), n, by, mode, deadline) for n in names],
        drain.guarantees_broken,
        host_refusals(view, hosts, HostEvent.DRAIN),
        stale_hosts(view, names),
        lost_gpu_ms=sum(lost.values()),
        undo=undrained(view, names),
    )


def _empty_lines(view: ClusterView, drain: DrainPlan) -> tuple[str, ...]:
    """When the hosts are empty at the latest; of which nobody can say, and why."""
    ends = dict(zip(drain.hosts, drain.empty_at, strict=True))
    known = [at for at in ends.values() if at is not None]
    lines = []
    if known:
        who = next(name for name, at in ends.items() if at is not None) if len(known) == 1 else f"{len(known)} hosts"
        lines.append(f"{who} empty by {day_clock(view.wall(max(known)), view.wall_ms)}")
    unknown = [name for name, at in ends.items() if at is None]
    why = {row.host: row.blocked for row in drain.rows if row.blocked}
    told = refusals((n, f"nobody can say when it is empty: {why.get(n, 'it cannot be asked')}") for n in unknown)
    return (*lines, *told)


def _gang_lines(view: ClusterView, drain: DrainPlan) -> tuple[str, ...]:
    """What else stops with what runs there: a gang stops whole, on all its hosts (rule 25)."""
    lines = {}
    for row in drain.rows:
        run = view.state.runs[row.run]
        others = sorted(str(name) for name in run.members if name not in drain.hosts)
        if others and not row.blocked:
            held = keeps_its_place(view.state, run, drain.hosts)
            kept = f"; its GPUs there are {'' if held else 'not '}kept for it" if may_keep(view.state, run) else ""
            lines[row.run] = f"{_run_label(view, row)} stops on {few(others)} too{kept}"
    return tuple(lines.values())


def _drained_already(view: ClusterView, hosts: Sequence[HostName]) -> tuple[str, ...]:
    """Whose drain it is that this one changes."""
    records = [(name, view.state.hosts[name]) for name in hosts if view.state.hosts[name].state is HostState.DRAINING]
    drains = [(name, view.state.drains[r.drain]) for name, r in records if r.drain is not None]
    return refusals((name, clean(f"is drained already ({d.mode}) by {d.by}; that changes", 120)) for name, d in drains)


def _run_label(view: ClusterView, row: DrainRow) -> str:
    w = view.state.workloads[row.workload].workload
    return clean(f"{w.name or w.id}{row.run[len(w.id) :]}", 60)


def _mode_words(mode: Mode, finish_ms: int | None) -> tuple[str, ...]:
    deadline = () if finish_ms is None else ("--deadline", span(finish_ms))
    return () if mode == "contract" else ("--mode", mode, *deadline)


def drain_id(now: int, host: str) -> DrainId:
    return DrainId(f"d-{host}-{now}")


def _drain_row(view: ClusterView, row: DrainRow, places: Mapping[WorkloadId, int]) -> Row:
    state = view.state
    w = state.workloads[row.workload].workload
    released = Cell("BLOCKED", "bad")
    if row.released_at is not None:
        now = row.stops_at is not None and row.stops_at <= state.now
        released = Cell("now", "accent") if now else Cell(day_clock(view.wall(row.released_at), view.wall_ms))
    place = places.get(row.workload)
    gang = f", gang of {row.gang_hosts}" if row.gang_hosts > 1 else ""
    then = row.blocked or row.then + (f", about {ordinal(place)}" if place else "") + gang
    if row.breaks_guarantee:
        then = f"BREAKS GUARANTEE; {then}"
    cells = (
        Cell(clean(row.host, 40)),
        Cell(_run_label(view, row)),
        Cell(clean(state.budgets.paths[w.budget], 40)),
        Cell(f"{span(row.ran_ms)} / {span(row.min_runtime_ms)}"),
        released,
        Cell(then, "bad" if row.blocked or row.breaks_guarantee else ""),
        Cell(f"{gpu_hours(row.lost_gpu_ms)} GPU-h"),
    )
    data = {
        "host": row.host,
        "run": row.run,
        "workload": row.workload,
        "min_runtime_s": row.min_runtime_ms / 1000,
        "ran_s": None if row.ran_ms is None else row.ran_ms / 1000,
        "released_ms": None if row.released_at is None else view.wall(row.released_at),
        "then": row.then,
        "queue_position": place,
        "blocked": row.blocked,
        "breaks_guarantee": row.breaks_guarantee,
    }
    return Row(f"{row.host}/{row.run}", cells, data)
