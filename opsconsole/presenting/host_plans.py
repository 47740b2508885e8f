"""Plans for hosts: cordon, undrain, declare; what those of drains need too."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.plans import (
    NOTHING,
    PLAIN_COLUMNS,
    Plan,
    command_line,
    for_words,
    lifted,
    refusals,
    undone_by,
)
from opsconsole.presenting.reserved import planned_anew
from opsconsole.presenting.rows import Cell, Row, TableView
from opsconsole.presenting.text import clean, count, few
from opsconsole.presenting.view import ClusterView
from scheduler_core.fleet import HostState, Reach
from scheduler_core.hosttable import HostEvent, declare_refusal
from scheduler_core.ids import HostName
from scheduler_core.observations import (
    By,
    CordonRequested,
    HostDeclared,
    Observation,
    UndrainRequested,
)
from scheduler_core.proposals import refusal_now


def plan_cordon(view: ClusterView, hosts: Sequence[str], for_ms: int | None = None) -> Plan:
    """`for_ms`: for how long; None until somebody lifts it."""
    until_at = None if for_ms is None else view.state.now + for_ms
    plan = _host_plan(
        view,
        hosts,
        HostEvent.CORDON,
        lambda h, by: CordonRequested(h, by, until_at),
        "nothing new starts; runs go on" + lifted(view, for_ms),
        for_words(for_ms),
    )
    names = [HostName(name) for name in plan.targets]
    return replace(
        plan, effect=serving_then(view, leaving=names) + planned_anew(view, names), undo=undrained(view, names)
    )


def plan_undrain(view: ClusterView, hosts: Sequence[str]) -> Plan:
    """Hosts by the reason for which they were taken out: a bulk return must not bring a sick one back unseen."""
    by_reason = sorted(hosts, key=lambda name: (_taken_out(view, name), name))
    plan = _host_plan(view, by_reason, HostEvent.UNDRAIN, lambda h, by: UndrainRequested(h, by), "serving again")
    names = [HostName(name) for name in plan.targets]
    return replace(plan, effect=(*_reasons_line(view, plan.targets), *serving_then(view, joining=names)))


def _taken_out(view: ClusterView, host: str) -> str:
    """Why, and by whom."""
    record = view.state.hosts.get(HostName(host))
    if record is None or record.by is None:
        return ""
    return clean(f"{record.by.why or 'no reason given'} ({record.by.actor})", 80)


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
    more: tuple[str, ...] = (),
) -> Plan:
    state = view.state
    known, names = able(view, hosts, event)
    rows = []
    for name in names:
        record = state.hosts[name]
        reason = f": {record.by.why}" if record.by and record.by.why else ""
        if (proposal := state.proposals.get(name)) is not None:
            reason = f"; health asks for its drain: {proposal.reason}"
        now = clean(f"{record.state.value.replace('_', ' ')}{reason}", 80)
        after = f"{then}; it cannot be asked now" if record.reach in AWAY else then
        rows.append(Row(name, (Cell(clean(name, 40)), Cell(now), Cell(after))))
    return Plan(
        event.value,
        tuple(names),
        TableView(f"{event.value.capitalize()}: {count(len(names), 'host')}", PLAIN_COLUMNS, tuple(rows), NOTHING),
        (),
        command_line(event.value, names, *more),
        tuple((n, r.state, r.by, "it cannot be asked" * (r.reach in AWAY)) for n in known if (r := state.hosts[n])),
        lambda by: [make(n, by) for n in names],
        refused=host_refusals(view, hosts, event),
    )


def serving_then(
    view: ClusterView, leaving: Sequence[HostName] = (), joining: Sequence[HostName] = ()
) -> tuple[str, ...]:
    """What is left, or there again, for new work to start on; nothing where that is as before."""
    hosts = view.state.hosts
    now = {name: record.host.gpus for name, record in hosts.items() if record.places}
    back = {name: hosts[name].host.gpus for name in joining if hosts[name].reach is Reach.FRESH}
    then = {name: gpus for name, gpus in {**now, **back}.items() if name not in leaving}
    if now and not then:
        return ("no host is left serving: nobody's work starts until one is",)
    served = f"serving then: {count(len(then), 'host')} with {count(sum(then.values()), 'GPU')}"
    return (served,) if then != now else ()


def able(view: ClusterView, hosts: Sequence[str], event: HostEvent) -> tuple[list[HostName], list[HostName]]:
    """Those that there are, and of those the ones to which the event does something (rule 24)."""
    known = [HostName(h) for h in hosts if h in view.state.hosts]
    return known, [h for h in known if not refusal_now(view.state, h, event)]


def _unknown_hosts(view: ClusterView, hosts: Sequence[str]) -> tuple[str, ...]:
    """One line for all of them, with what there is."""
    unknown = [clean(host, 60) for host in hosts if host not in view.state.hosts]
    known = f"there are {few(sorted(view.state.hosts)) or 'none'}"
    if len(unknown) == 1 and (near := difflib.get_close_matches(unknown[0], view.state.hosts, n=1)):
        known = f"did you mean {near[0]}?"
    return (f"no host {few([repr(host) for host in unknown])}; {known}",) if unknown else ()


def host_refusals(view: ClusterView, hosts: Sequence[str], event: HostEvent) -> tuple[str, ...]:
    known = [HostName(h) for h in hosts if h in view.state.hosts]
    refused = refusals((h, why) for h in known if (why := refusal_now(view.state, h, event)))
    return _unknown_hosts(view, hosts) + refused


def undrained(view: ClusterView, names: Sequence[HostName]) -> str:
    """The command that makes it undone; empty where a host would not become what it is now."""
    serve = all(view.state.hosts[name].state is HostState.SERVING for name in names)
    return undone_by("undrain", names) if serve else ""


def stale_hosts(view: ClusterView, names: Sequence[HostName]) -> tuple[str, ...]:
    """Hosts whose facts are older than two intervals: a plan on them may not be committed."""
    found = []
    for name in names:
        age = view.facts(name).age_s
        if view.state.hosts[name].reach.value == "fresh" and (age is None or age > 2 * view.interval_s + 1):
            found.append(name)
    return tuple(found)
