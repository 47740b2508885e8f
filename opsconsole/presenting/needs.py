"""What needs a person: all that nothing else will put right, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opsconsole.health.incidents import incidents_in
from opsconsole.presenting.breaker import breaker_lines, wished
from opsconsole.presenting.health import verdicts
from opsconsole.presenting.hosts import AWAY, STALE_INTERVALS, failures
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.summary import held_of
from opsconsole.presenting.text import clean, count, few, span
from opsconsole.presenting.verdicts import verdict_of
from opsconsole.presenting.view import ClusterView
from scheduler_core.apply_decisions import MACHINE
from scheduler_core.breaker import still_waits
from scheduler_core.drain import active_drains, eta, why_unknown
from scheduler_core.fleet import HostState, Reach
from scheduler_core.observations import AutoDrainProposed
from scheduler_core.state import HostRecord

COLUMNS = (
    Column("", 1),
    Column("WHAT", 14),
    Column("SINCE", 6, right=True, by="since_s"),
    Column("WHY", 24, grow=True),
)
OUT = (HostState.SUSPECT, HostState.VERIFY_FAILED)


@dataclass(frozen=True, slots=True)
class Need:
    """`about` is the host or workload to be explained, empty where there is none. `key` is its row's."""

    key: str
    what: str
    why: str
    todo: str
    about: str = ""
    since_ms: int | None = None
    grave: bool = True

    def sentences(self) -> list[str]:
        """For explanations."""
        return [f"Needs a person: {self.why}.", f"What to do: {self.todo}."]


def needs(view: ClusterView, alerts: Mapping[str, str] | None = None) -> list[Need]:
    """What concerns all of the cluster first, then the oldest. `alerts` stand against the console itself."""
    found = [*_hosts(view), *_drains(view), *_held(view), *_held_back(view)]
    whole = [*_leader(view), *_alarms(view, alerts or {}), *_incidents(view)]
    return [*whole, *sorted(found, key=lambda n: (-(n.since_ms or 0), n.key))]


def needs_table(view: ClusterView, alerts: Mapping[str, str] | None = None) -> TableView:
    rows = tuple(_row(need) for need in needs(view, alerts))
    return TableView("Needs a person", COLUMNS, rows, "nothing: all is well")


def _row(need: Need) -> Row:
    token = "bad" if need.grave else "warn"
    cells = (
        Cell("✖" if need.grave else "!", token),
        Cell(clean(need.what, 40)),
        Cell("" if need.since_ms is None else span(need.since_ms), "dim"),
        Cell(clean(need.why), token),
    )
    since_s = None if need.since_ms is None else need.since_ms / 1000
    return Row(need.key, cells, {"about": need.about, "since_s": since_s, "why": need.why, "todo": need.todo})


def _leader(view: ClusterView) -> Iterator[Need]:
    if not view.leading and view.leader in ("", "nobody"):
        why = "NO LEADER: nothing starts, nothing is drained and no host is asked; runs go on by themselves"
        yield Need(
            "leader:",
            "leader",
            why,
            "start opsconsole serve where the cluster is led from, or lead from a console: :lead REASON",
        )


def _alarms(view: ClusterView, alerts: Mapping[str, str]) -> Iterator[Need]:
    for name, text in alerts.items():
        yield Need(f"alarm:{name}", name, text, "mend what it names; it is tried again by itself")
    for name, text in view.alarms.items():
        todo = "mend what it names; the timeline shows what happened before"
        if name == "inventory":
            todo = (
                "reload shows what would change and applies it" if view.pending else "mend the file: it is read again"
            )
        yield Need(f"alarm:{name}", name, text, todo, grave=view.pending is None or name != "inventory")


def _incidents(view: ClusterView) -> Iterator[Need]:
    """Faults of many hosts at one time: what they share comes before what each of them has."""
    for one in incidents_in(view.state, verdicts(view)):
        if one.many:
            rules = few(sorted({fault.rule for fault in one.faults}))
            why = (
                f"one incident, {one.place}: {count(len(one.hosts), 'host')} within minutes ({few(one.hosts)}): {rules}"
            )
            todo = "look for what they share before any of them is drained or reset"
            since_ms = int(max(fault.ago_s for fault in one.faults) * 1000)
            yield Need(f"incident:{one.place}", count(len(one.hosts), "host"), why, todo, "", since_ms)


def _hosts(view: ClusterView) -> Iterator[Need]:
    silent = []
    for record in view.state.hosts.values():
        if record.reach in AWAY:
            yield _away(view, record)
        elif _is_silent(view, record):
            silent.append(record.host.name)
        if record.state in OUT:
            yield _taken_out(view, record)
        if (proposal := view.state.proposals.get(record.host.name)) is not None and proposal.confirm:
            yield _asked(proposal)
        elif record.state is HostState.SERVING and (need := _failing(view, record)) is not None:
            yield need
        if record.leaked:
            why = f"{count(record.leaked.bit_count(), 'GPU')} leaked: still in use after SIGKILL"
            todo = "drain it, then reboot it: the processes could not be killed"
            yield Need(f"host:{record.host.name}:leak", record.host.name, why, todo, record.host.name)
    if silent:
        why = f"no fresh readings of {few(silent)}: nothing is placed there"
        todo = "see that somebody leads, and that the hosts are not overloaded; a driver that hangs wants a reboot"
        yield Need("silent:", count(len(silent), "host"), why, todo, silent[0] if len(silent) == 1 else "", grave=False)


def _is_silent(view: ClusterView, record: HostRecord) -> bool:
    age_s = view.facts(record.host.name).age_s
    return record.reach is Reach.STALE or (age_s is not None and age_s > STALE_INTERVALS * view.interval_s)


def _away(view: ClusterView, record: HostRecord) -> Need:
    name = record.host.name
    since = None if record.unreachable_since is None else view.state.now - record.unreachable_since
    runs = f"{count(len(record.runs), 'run')} unverified: " if record.runs else ""
    why = record.unreachable_why or view.facts(name).why or record.reach.value.replace("_", " ")
    todo = "opsconsole check --connect says what is wrong; it is tried again by itself"
    if record.runs:
        todo += f". If its power is off for good: opsconsole declare dead {name}, and its runs may start elsewhere"
    return Need(f"host:{name}", name, runs + why, todo, name, since, bool(record.runs))


def _taken_out(view: ClusterView, record: HostRecord) -> Need:
    reason = f": {record.by.why}" if record.by and record.by.why else ""
    why = f"{record.state.value.replace('_', ' ')}{reason}"
    todo = "find out why; undrain returns it to service, drain empties it for a repair"
    name = record.host.name
    return Need(f"host:{name}:state", name, why, todo, name, view.state.now - record.since)


def _asked(proposal: AutoDrainProposed) -> Need:
    name = proposal.host
    todo = f"drain {name} confirms it; undrain {name} lets it serve on, and is not asked again for the same"
    return Need(f"host:{name}:asked", name, f"health asks for its drain: {proposal.reason}", todo, name)


def _failing(view: ClusterView, record: HostRecord) -> Need | None:
    """A sick host that still serves."""
    found = failures(view, record)
    if not found:
        return None
    mend = [one.action.removeprefix("drain, ") for one in verdict_of(view, record).findings if one.weight.drains]
    name = record.host.name
    todo = f"drain it; then {'; '.join(dict.fromkeys(mend))}; undrain returns it to service"
    return Need(f"host:{name}:health", name, f"serves and fails: {'; '.join(found[:2])}", todo, name)


def _drains(view: ClusterView) -> Iterator[Need]:
    for drain in active_drains(view.state):
        if eta(view.state, drain) is None:
            why = f"its drain is blocked: {why_unknown(view.state, drain)}"
            todo = "put that right and it goes on by itself; undrain takes it back"
            yield Need(f"drain:{drain.id}", drain.host, why, todo, drain.host, view.state.now - drain.requested_at)


def _held(view: ClusterView) -> Iterator[Need]:
    for wid in held_of(view):
        record = view.state.workloads[wid]
        why = f"held: {record.reason or 'no reason given'}"
        failed = record.held_by == MACHINE  # at the end of its run; when a person held it is not kept
        since = view.state.now - record.waiting_since if failed else None
        todo = f"release lets it wait again, cancel ends it; opsconsole logs {wid} shows what it wrote"
        yield Need(f"held:{wid}", wid, why, todo, wid, since, grave=False)


def _held_back(view: ClusterView) -> Iterator[Need]:
    for what in view.state.tripped:
        if still_waits(view.state, what):
            kind, _, name = what.partition(" ")
            why = f"stopped by the breaker: {wished(view.state, what)}"
            todo = f"breaker reset lets it go on; {breaker_lines(view)[0 if kind == 'host' else 1]}"
            yield Need(f"breaker:{what}", name, why, todo, name)
