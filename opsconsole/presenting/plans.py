"""Plans of actions: what is asked for, whom it hits, what it costs, and the command line that does the same.

A plan is computed from the state of a moment and remembers the facts it rests on, so that commit sees what changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, day_clock, gpu_hours, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.contract import lost_gpu_ms
from scheduler_core.drain import DrainRow, drain_plan
from scheduler_core.hosttable import HostEvent, move, refusal
from scheduler_core.ids import DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostDeclared,
    Observation,
    ReleaseRequested,
    RequeueRequested,
    UndrainRequested,
)
from scheduler_core.workload import WorkloadPhase

Mode = Literal["contract", "finish", "now"]
DRAIN_COLUMNS = (
    Column("HOST", 9, most=16),
    Column("RUN", 13, most=28),
    Column("BUDGET", 10, from_width=100, most=20),
    Column("RAN / MIN", 13, right=True),
    Column("RELEASED", 8, right=True),
    Column("THEN", 13, grow=True),
    Column("LOST IF NOW", 11, right=True, from_width=90),
)
PLAIN_COLUMNS = (Column("WHAT", 14, most=30), Column("NOW", 14, most=40), Column("THEN", 26, grow=True))


@dataclass(frozen=True, slots=True)
class Plan:
    """`facts` are what the plan rests on: a plan whose facts differ at commit comes back. `refused` tells why not."""

    action: str
    targets: tuple[str, ...]
    table: TableView
    effect: tuple[str, ...]
    command: str
    facts: tuple[object, ...]
    observations: Callable[[By], list[Observation]]
    guarantees_broken: int = 0
    refused: tuple[str, ...] = ()
    stale: tuple[str, ...] = field(default=())  # targets whose facts are too old to act on

    @property
    def possible(self) -> bool:
        return bool(self.targets) and not self.refused


def command_line(action: str, targets: Sequence[str], *more: str) -> str:
    return shlex.join(["opsconsole", action, *targets, *more, "--reason", "…"])


# -- hosts --------------------------------------------------------------------------------------------------------


def plan_drain(view: ClusterView, hosts: Sequence[str], mode: Mode = "contract", finish_ms: int | None = None) -> Plan:
    """Rule 25's preview: per run when it is released and what becomes of it; per host when it is empty."""
    state = view.state
    names = [HostName(h) for h in hosts if h in state.hosts]
    deadline = None if finish_ms is None else state.now + finish_ms
    drain = drain_plan(state, names, mode, deadline)
    rows = tuple(_drain_row(view, row) for row in drain.rows)
    refused = _host_refusals(view, hosts, HostEvent.DRAIN)
    effect = tuple(
        f"{name} empty by {day_clock(view.wall(at), view.wall_ms)}"
        if at is not None
        else f"{name}: nobody can say when"
        for name, at in zip(drain.hosts, drain.empty_at, strict=True)
    )
    broken = drain.guarantees_broken
    if broken:
        effect += (f"breaks {broken} guarantee{'s' if broken > 1 else ''}",)
    more = ("--now",) if mode == "now" else ("--finish", f"{finish_ms // 1000}s") if finish_ms is not None else ()
    return Plan(
        "drain",
        tuple(names),
        TableView(f"Drain plan: {_count(names, 'host')}", DRAIN_COLUMNS, rows, "no runs there: empty at once"),
        effect,
        command_line("drain", names, *more),
        tuple((r.host, r.run, r.breaks_guarantee, r.blocked) for r in drain.rows)
        + tuple((n, state.hosts[n].state) for n in names),
        lambda by: [DrainRequested(drain_id(state.now, n), n, by, mode, deadline) for n in names],
        broken,
        refused,
        _stale_hosts(view, names),
    )


def drain_id(now: int, host: str) -> DrainId:
    return DrainId(f"d-{host}-{now}")


def _drain_row(view: ClusterView, row: DrainRow) -> Row:
    state = view.state
    w = state.workloads[row.workload].workload
    released = Cell("BLOCKED", "bad")
    if row.released_at is not None:
        now = row.stops_at is not None and row.stops_at <= state.now
        released = Cell("now", "accent") if now else Cell(day_clock(view.wall(row.released_at), view.wall_ms))
    then = row.blocked or row.then + (f", gang of {row.gang_hosts} hosts" if row.gang_hosts > 1 else "")
    if row.breaks_guarantee:
        then = f"BREAKS GUARANTEE; {then}"
    cells = (
        Cell(clean(row.host, 40)),
        Cell(clean(f"{w.name or w.id}{row.run[len(w.id) :]}", 60)),
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
        "blocked": row.blocked,
        "breaks_guarantee": row.breaks_guarantee,
    }
    return Row(f"{row.host}/{row.run}", cells, data)


def plan_cordon(view: ClusterView, hosts: Sequence[str]) -> Plan:
    return _host_plan(
        view, hosts, HostEvent.CORDON, lambda h, by: CordonRequested(h, by), "nothing new starts; runs go on"
    )


def plan_undrain(view: ClusterView, hosts: Sequence[str]) -> Plan:
    """Each host with the reason for which it was taken out: a bulk return must not bring a sick one back unseen."""
    return _host_plan(view, hosts, HostEvent.UNDRAIN, lambda h, by: UndrainRequested(h, by), "serving again")


def plan_declare(view: ClusterView, hosts: Sequence[str], what: Literal["empty", "dead"]) -> Plan:
    """An operator's word in place of the host's."""
    state = view.state
    names = [HostName(h) for h in hosts if h in state.hosts]
    rows = tuple(
        Row(
            n,
            (
                Cell(n),
                Cell(f"{len(state.hosts[n].runs)} runs"),
                Cell(f"taken for {what}: its runs count as gone", "warn"),
            ),
        )
        for n in names
    )
    return Plan(
        f"declare {what}",
        tuple(names),
        TableView(f"Declare {what}: {_count(names, 'host')}", PLAIN_COLUMNS, rows),
        ("what ran there may start elsewhere: be sure that it is dead",),
        command_line("declare", [what, *names]),
        tuple((n, tuple(state.hosts[n].runs)) for n in names),
        lambda by: [HostDeclared(n, what, by) for n in names],
        refused=_unknown_hosts(view, hosts),
    )


def _host_plan(
    view: ClusterView,
    hosts: Sequence[str],
    event: HostEvent,
    make: Callable[[HostName, By], Observation],
    then: str,
) -> Plan:
    state = view.state
    names = [HostName(h) for h in hosts if h in state.hosts]
    rows = []
    for name in names:
        record = state.hosts[name]
        reason = f": {record.by.reason}" if record.by and record.by.reason else ""
        now = clean(f"{record.state.value.replace('_', ' ')}{reason}", 80)
        rows.append(Row(name, (Cell(clean(name, 40)), Cell(now), Cell(then))))
    return Plan(
        event.value,
        tuple(names),
        TableView(f"{event.value.capitalize()}: {_count(names, 'host')}", PLAIN_COLUMNS, tuple(rows)),
        (),
        command_line(event.value, names),
        tuple((n, state.hosts[n].state, state.hosts[n].by) for n in names),
        lambda by: [make(n, by) for n in names],
        refused=_host_refusals(view, hosts, event),
        stale=(),
    )


def _unknown_hosts(view: ClusterView, hosts: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"no host {clean(h, 60)!r}" for h in hosts if h not in view.state.hosts)


def _host_refusals(view: ClusterView, hosts: Sequence[str], event: HostEvent) -> tuple[str, ...]:
    known = [(h, view.state.hosts[HostName(h)]) for h in hosts if h in view.state.hosts]
    refused = tuple(f"{h}: {refusal(r.state, event)}" for h, r in known if move(r.state, event) is None)
    return _unknown_hosts(view, hosts) + refused


def _stale_hosts(view: ClusterView, names: Sequence[HostName]) -> tuple[str, ...]:
    """Hosts whose facts are older than two intervals: a plan on them may not be committed."""
    found = []
    for name in names:
        age = view.facts(name).age_s
        if view.state.hosts[name].reach.value == "fresh" and (age is None or age > 2 * view.interval_s + 1):
            found.append(name)
    return tuple(found)


# -- workloads ----------------------------------------------------------------------------------------------------


def plan_requeue(view: ClusterView, workloads: Sequence[str], now: bool = False) -> Plan:
    """At the end of the min runtime; `now` breaks the guarantee and says so."""
    state = view.state
    found = [WorkloadId(w) for w in workloads if (r := state.workloads.get(WorkloadId(w))) is not None and r.run]
    rows, broken = [], 0
    for wid in found:
        run = state.runs[state.workloads[wid].run]  # type: ignore[index]
        protected = run.protected(state.now)
        broken += int(protected and now)
        until = run.protected_until()
        when = "now" if now or not protected else "when it has started and run its minimum"
        if protected and not now and until is not None:
            when = day_clock(view.wall(until), view.wall_ms)
        then = f"stops {when}, loses {gpu_hours(lost_gpu_ms(state, run))} GPU-h, waits again"
        rows.append(
            Row(wid, (Cell(_label(view, wid)), Cell("protected" if protected else "interruptible"), Cell(then)))
        )
    return _workload_plan(
        view,
        "requeue",
        workloads,
        found,
        rows,
        lambda wid, by: RequeueRequested(wid, by, override=now),
        "has no run",
        broken,
        ("--now",) if now else (),
    )


def plan_cancel(view: ClusterView, workloads: Sequence[str]) -> Plan:
    state = view.state
    found = [WorkloadId(w) for w in workloads if _not_ended(view, w)]
    rows = []
    for wid in found:
        record = state.workloads[wid]
        run = state.runs.get(record.run) if record.run else None
        then = (
            "ends for good" if run is None else f"stops now and ends; {gpu_hours(lost_gpu_ms(state, run))} GPU-h lost"
        )
        rows.append(Row(wid, (Cell(_label(view, wid)), Cell(record.phase.value), Cell(then))))
    return _workload_plan(
        view, "cancel", workloads, found, rows, lambda wid, by: CancelRequested(wid, by), "has ended already"
    )


def plan_hold(view: ClusterView, workloads: Sequence[str]) -> Plan:
    found = [WorkloadId(w) for w in workloads if _phase(view, w) is WorkloadPhase.WAITING]
    rows = [Row(w, (Cell(_label(view, w)), Cell("waiting"), Cell("does not start until released"))) for w in found]
    return _workload_plan(view, "hold", workloads, found, rows, lambda wid, by: HoldRequested(wid, by), "does not wait")


def plan_release(view: ClusterView, workloads: Sequence[str]) -> Plan:
    found = [WorkloadId(w) for w in workloads if _phase(view, w) is WorkloadPhase.HELD]
    rows = [
        Row(w, (Cell(_label(view, w)), Cell(clean(f"held: {view.state.workloads[w].reason}", 60)), Cell("waits again")))
        for w in found
    ]
    return _workload_plan(
        view, "release", workloads, found, rows, lambda wid, by: ReleaseRequested(wid, by), "is not held"
    )


def _workload_plan(
    view: ClusterView,
    action: str,
    asked: Sequence[str],
    found: Sequence[WorkloadId],
    rows: Sequence[Row],
    make: Callable[[WorkloadId, By], Observation],
    why_not: str,
    broken: int = 0,
    more: tuple[str, ...] = (),
) -> Plan:
    state = view.state
    refused = tuple(
        f"{clean(w, 60)}: {why_not if w in state.workloads else 'no such workload'}" for w in asked if w not in found
    )
    effect = (f"breaks {broken} guarantee{'s' if broken > 1 else ''}",) if broken else ()
    return Plan(
        action,
        tuple(found),
        TableView(f"{action.capitalize()}: {_count(found, 'workload')}", PLAIN_COLUMNS, tuple(rows)),
        effect,
        command_line(action, found, *more),
        tuple((w, state.workloads[w].phase, state.workloads[w].run) for w in found),
        lambda by: [make(w, by) for w in found],
        broken,
        refused,
    )


def _label(view: ClusterView, wid: WorkloadId) -> str:
    w = view.state.workloads[wid].workload
    return clean(f"{w.name} {wid}" if w.name else wid, 60)


def _phase(view: ClusterView, wid: str) -> WorkloadPhase | None:
    record = view.state.workloads.get(WorkloadId(wid))
    return record.phase if record is not None else None


def _not_ended(view: ClusterView, wid: str) -> bool:
    return _phase(view, wid) not in (None, WorkloadPhase.ENDED)


def _count(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"
