"""Plans for hosts: drain, cordon, undrain, declare."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.plans import NOTHING, PLAIN_COLUMNS, Plan, broken_line, command_line, refusals
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count, day_clock, few, gpu_hours, ordinal, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import DrainPlan, DrainRow, drain_plan
from scheduler_core.gangs import keeps_its_place, may_keep
from scheduler_core.hosttable import HostEvent, declare_refusal, move, refusal
from scheduler_core.ids import DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    By,
    CordonRequested,
    DrainRequested,
    HostDeclared,
    Observation,
    UndrainRequested,
)
from scheduler_core.queueing import queue_order

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
    known, names = _able(view, hosts, HostEvent.DRAIN)
    deadline = None if finish_ms is None else state.now + finish_ms
    drain = drain_plan(state, names, mode, deadline)
    places = _places(view, drain)
    return Plan(
        "drain",
        tuple(names),
        TableView(
            f"Drain plan: {count(len(names), 'host')}",
            DRAIN_COLUMNS,
            tuple(_drain_row(view, row, places) for row in drain.rows),
            "no runs there: empty at once" if names else NOTHING,
        ),
        broken_line(drain.guarantees_broken)
        + _last_line(view, names)
        + _empty_lines(view, drain)
        + _gang_lines(view, drain),
        command_line("drain", names, *_mode_words(mode, finish_ms)) if names else "",
        tuple((r.host, r.run, r.breaks_guarantee, r.blocked) for r in drain.rows)
        + tuple((n, state.hosts[n].state) for n in known),
        lambda by: [DrainRequested(drain_id(state.now, n), n, by, mode, deadline) for n in names],
        drain.guarantees_broken,
        _host_refusals(view, hosts, HostEvent.DRAIN),
        _stale_hosts(view, names),
    )


def _places(view: ClusterView, drain: DrainPlan) -> Mapping[WorkloadId, int]:
    """About where in the queue each workload will stand that waits again, as the standings are now."""
    again = {row.workload: None for row in drain.rows if row.then in ("requeue", "restart")}
    if not again:
        return {}
    return {wid: n for n, wid in enumerate(queue_order(view.state, again), start=1) if wid in again}


def _last_line(view: ClusterView, leaving: Sequence[HostName]) -> tuple[str, ...]:
    """That nothing would be left to work on, where that is so."""
    serving = [name for name, record in view.state.hosts.items() if record.places]
    if serving and all(name in leaving for name in serving):
        return ("no host is left serving: nobody's work starts until one is",)
    return ()


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
        others = [str(name) for name in run.members if name not in drain.hosts]
        if others and not row.blocked:
            held = keeps_its_place(view.state, run, drain.hosts)
            kept = f"; its GPUs there are {'' if held else 'not '}held for it" if may_keep(view.state, run) else ""
            lines[row.run] = f"{_run_label(view, row)} stops on {few(others)} too{kept}"
    return tuple(lines.values())


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


def plan_cordon(view: ClusterView, hosts: Sequence[str]) -> Plan:
    return _host_plan(
        view, hosts, HostEvent.CORDON, lambda h, by: CordonRequested(h, by), "nothing new starts; runs go on"
    )


def plan_undrain(view: ClusterView, hosts: Sequence[str]) -> Plan:
    """Hosts by the reason for which they were taken out: a bulk return must not bring a sick one back unseen."""
    by_reason = sorted(hosts, key=lambda name: (_taken_out(view, name), name))
    plan = _host_plan(view, by_reason, HostEvent.UNDRAIN, lambda h, by: UndrainRequested(h, by), "serving again")
    return replace(plan, effect=_reasons_line(view, plan.targets))


def _taken_out(view: ClusterView, host: str) -> str:
    """Why, and by whom."""
    record = view.state.hosts.get(HostName(host))
    if record is None or record.by is None:
        return ""
    return clean(f"{record.by.reason or 'no reason given'} ({record.by.actor})", 80)


def _reasons_line(view: ClusterView, hosts: Sequence[str]) -> tuple[str, ...]:
    """The reasons, the rarest first with its hosts; nothing where all have one."""
    groups: dict[str, list[str]] = {}
    for host in hosts:
        groups.setdefault(_taken_out(view, host), []).append(host)
    if len(groups) < 2:
        return ()
    rarest = sorted(groups.items(), key=lambda group: (len(group[1]), group))
    told = [f"{why}: {', '.join(names) if len(names) < 3 else count(len(names), 'host')}" for why, names in rarest]
    return (f"taken out for different reasons: {'; '.join(told)}",)


def plan_declare(view: ClusterView, hosts: Sequence[str], what: Literal["empty", "dead"]) -> Plan:
    """An operator's word in place of the host's."""
    state = view.state
    names = [HostName(h) for h in hosts if h in state.hosts]
    rows = tuple(
        Row(
            n,
            (
                Cell(n),
                Cell(count(len(state.hosts[n].runs), "run")),
                Cell(f"taken for {what}: its runs count as gone", "warn"),
            ),
        )
        for n in names
    )
    return Plan(
        f"declare {what}",
        tuple(names),
        TableView(f"Declare {what}: {count(len(names), 'host')}", PLAIN_COLUMNS, rows),
        ("what ran there may start elsewhere: be sure that it is dead",),
        command_line("declare", [what, *names]),
        tuple((n, tuple(state.hosts[n].runs)) for n in names),
        lambda by: [HostDeclared(n, what, by) for n in names],
        refused=_unknown_hosts(view, hosts) + _not_taken(view, names, what),
    )


def _not_taken(view: ClusterView, names: Sequence[HostName], what: str) -> tuple[str, ...]:
    records = [(name, view.state.hosts[name]) for name in names]
    whys = [(n, declare_refusal(what, r.state, r.reach, bool(r.runs), bool(r.foreign))) for n, r in records]
    return tuple(f"{name}: {why}" for name, why in whys if why)


def _host_plan(
    view: ClusterView,
    hosts: Sequence[str],
    event: HostEvent,
    make: Callable[[HostName, By], Observation],
    then: str,
) -> Plan:
    state = view.state
    known, names = _able(view, hosts, event)
    rows = []
    for name in names:
        record = state.hosts[name]
        reason = f": {record.by.reason}" if record.by and record.by.reason else ""
        now = clean(f"{record.state.value.replace('_', ' ')}{reason}", 80)
        after = f"{then}; it cannot be asked now" if record.reach in AWAY else then
        rows.append(Row(name, (Cell(clean(name, 40)), Cell(now), Cell(after))))
    return Plan(
        event.value,
        tuple(names),
        TableView(f"{event.value.capitalize()}: {count(len(names), 'host')}", PLAIN_COLUMNS, tuple(rows), NOTHING),
        (),
        command_line(event.value, names) if names else "",
        tuple((n, state.hosts[n].state, state.hosts[n].by) for n in known),
        lambda by: [make(n, by) for n in names],
        refused=_host_refusals(view, hosts, event),
        stale=(),
    )


def _able(view: ClusterView, hosts: Sequence[str], event: HostEvent) -> tuple[list[HostName], list[HostName]]:
    """Those that there are, and of those the ones to which the event does something (rule 24)."""
    known = [HostName(h) for h in hosts if h in view.state.hosts]
    return known, [h for h in known if move(view.state.hosts[h].state, event) is not None]


def _unknown_hosts(view: ClusterView, hosts: Sequence[str]) -> tuple[str, ...]:
    """One line for all of them, with what there is."""
    unknown = [clean(host, 60) for host in hosts if host not in view.state.hosts]
    known = f"there are {few(sorted(view.state.hosts)) or 'none'}"
    if len(unknown) == 1 and (near := difflib.get_close_matches(unknown[0], view.state.hosts, n=1)):
        known = f"did you mean {near[0]}?"
    return (f"no host {few([repr(host) for host in unknown])}; {known}",) if unknown else ()


def _host_refusals(view: ClusterView, hosts: Sequence[str], event: HostEvent) -> tuple[str, ...]:
    known = ((h, view.state.hosts[HostName(h)]) for h in hosts if h in view.state.hosts)
    refused = refusals((h, refusal(r.state, event)) for h, r in known if move(r.state, event) is None)
    return _unknown_hosts(view, hosts) + refused


def _stale_hosts(view: ClusterView, names: Sequence[HostName]) -> tuple[str, ...]:
    """Hosts whose facts are older than two intervals: a plan on them may not be committed."""
    found = []
    for name in names:
        age = view.facts(name).age_s
        if view.state.hosts[name].reach.value == "fresh" and (age is None or age > 2 * view.interval_s + 1):
            found.append(name)
    return tuple(found)
