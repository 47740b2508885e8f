"""One host: what it is for, how it is reached, how it is, and the runs there with how long they are protected."""

from __future__ import annotations

from opsconsole.presenting.drains import drain_of, draining_words
from opsconsole.presenting.facts import Line, fact_lines
from opsconsole.presenting.hosts import AWAY, failures, health, mark, value, warnings, watched
from opsconsole.presenting.presence import looking_words
from opsconsole.presenting.queue import run_label
from opsconsole.presenting.reserved import on_host
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.sentences import by_text
from opsconsole.presenting.text import clean, count, day_clock, span
from opsconsole.presenting.view import ClusterView, HostFacts
from scheduler_core.drain import drain_row
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName
from scheduler_core.state import HostRecord, Run

RUN_COLUMNS = (
    Column("RUN", 14, by="name", most=30),
    Column("BUDGET", 10, from_width=70, by="budget", most=20),
    Column("OWNER", 8, from_width=90, by="owner", most=12),
    Column("GPUS", 4, right=True, by="gpus"),
    Column("RAN / MIN", 15, right=True, from_width=70, by="ran_s"),
    Column("PROTECTED", 9, right=True, by="protected_s"),
    Column("THEN", 20, grow=True),
)


def host_head(view: ClusterView, name: str, width: int) -> list[Line]:
    """What stands above the tables; a host that nobody knows is said."""
    record = view.state.hosts.get(HostName(name))
    if record is None:
        gone = "no host is called so now: it left the inventory, or nothing has been read yet"
        return fact_lines([("HOST", [Cell(name), Cell(": "), Cell(gone, "bad")])], width)
    facts = view.facts(name)
    return fact_lines(
        [
            ("STATE", _state(view, record)),
            ("LINK", _link(view, record, facts)),
            ("HEALTH", _health(view, record, facts)),
            ("GPUS", [Cell(_gpus(view, record))]),
            ("OTHERS", [Cell("; ".join(looking_words(view, [name])), "warn")]),
            ("SYSTEM", [Cell(_system(facts), "" if facts.probe else "unknown")]),
        ],
        width,
    )


def _state(view: ClusterView, record: HostRecord) -> list[Cell]:
    since = day_clock(view.wall(record.since), view.wall_ms)
    by = f", by {by_text(record.by)}" if record.by else ""
    word = record.state.value.replace("_", " ")
    serving = record.state is HostState.SERVING
    cells = [Cell(word, "good" if serving else "warn"), Cell(f" since {since}{by}")]
    if (until := view.state.cordons_end.get(record.host.name)) is not None:
        cells.append(Cell(f"; it ends by itself in {span(until - view.state.now)}", "accent"))
    if record.removed:
        cells.append(Cell("; leaving the inventory once its runs have ended", "warn"))
    return cells + [
        Cell(f"; {words.partition(': ')[2]}", "accent") for words in draining_words(view, [record.host.name])
    ]


def _link(view: ClusterView, record: HostRecord, facts: HostFacts) -> list[Cell]:
    """The mark, how old the newest readings are, and how long a question takes."""
    cells = [mark(view, record)]
    if record.unreachable_since is not None:
        cells.append(Cell(f" for {span(view.state.now - record.unreachable_since)}", "bad"))
    age = "never read" if facts.age_s is None else f"read {span(int(facts.age_s * 1000))} ago"
    trip = "" if facts.rtt_s is None else f", a probe's round trip takes {facts.rtt_s * 1000:.0f} ms"
    link = (
        ""
        if facts.link == "live"
        else f", link {facts.link}"
        if facts.link
        else "; the round trip only its leader knows"
    )
    return [*cells, Cell(f"; {age}{trip}{link}")]


def _health(view: ClusterView, record: HostRecord, facts: HostFacts) -> list[Cell]:
    word = health(view, record)
    was = "last heard of: " if record.reach in AWAY else ""
    found = [*failures(view, record), *watched(view, record), *warnings(record, facts)]
    return [word, Cell(f": {was}{'; '.join(found)}" if found else "", word.token)]


def _gpus(view: ClusterView, record: HostRecord) -> str:
    held, leaked = record.held.bit_count(), record.leaked.bit_count()
    more = f", {leaked} leaked" if leaked else ""
    reserved = "".join(
        f"; {count(mask.bit_count(), 'GPU')} reserved for {whom}" for mask, whom in on_host(view, record.host.name)
    )
    claimed = f", {record.claimed.bit_count()} claimed" if record.claimed else ""
    return f"{held} of {count(record.host.gpus, 'GPU')} in use, {record.free.bit_count()} free{claimed}{more}{reserved}"


def _system(facts: HostFacts) -> str:
    """What the host says of itself, as far as it does."""
    if facts.probe is None:
        return "no readings"
    said = facts.probe.get("host") or {}
    uptime = facts.probe.get("uptime_s")
    load, cpus = (value(said.get(key)) for key in ("load_1m", "cpus"))
    driver, stuck = value(facts.probe.get("driver")), value(said.get("d_state_processes"))
    free, boot = value(said.get("state_disk_free_bytes")), facts.probe.get("boot_id")
    parts = (
        f"up {span(int(uptime * 1000))}" if isinstance(uptime, int | float) else "",
        f"boot {clean(str(boot)[:8])}" if boot else "",
        f"driver {clean(str(driver), 40)}" if driver else "",
        f"load {load:.1f} of {cpus}" if isinstance(load, int | float) else "",
        f"{free / (1 << 30):.0f}G free for its state" if isinstance(free, int | float) else "",
        f"{len(stuck)} processes stuck in D state" if isinstance(stuck, list) and stuck else "",
        f"read by {clean(str(facts.probe['source']), 20)}" if facts.probe.get("source") else "",
    )
    return ", ".join(filter(None, parts)) or "it says nothing of itself"


def host_runs_table(view: ClusterView, name: str) -> TableView:
    """With a countdown each, and what a drain does to it where there is one."""
    record = view.state.hosts.get(HostName(name))
    if record is None:
        return TableView("Runs", RUN_COLUMNS, (), "this host is not known")
    title = "Runs, as it was last heard of" if record.reach in AWAY else "Runs"
    rows = tuple(_run_row(view, record, view.state.runs[run]) for run in record.runs)
    return TableView(title, RUN_COLUMNS, rows, "no runs here, by what is known" if record.reach in AWAY else "no runs")


def _run_row(view: ClusterView, record: HostRecord, run: Run) -> Row:
    state, w = view.state, view.state.workloads[run.workload].workload
    member = run.members[record.host.name]
    until, away = run.protected_until(), record.reach in AWAY
    ran = None if run.started_at is None else state.now - run.started_at
    left = None if until is None or not run.protected(state.now) else until - state.now
    cells = (
        Cell(run_label(w, run.id)),
        Cell(clean(state.budgets.paths[run.budget], 60)),
        Cell(clean(w.owner, 30)),
        Cell(str(member.slots.bit_count())),
        Cell(f"{'?' if away else span(ran)} / {span(run.min_runtime_ms)}", "unknown" if away else ""),
        _countdown(run, left),
        _then(view, record, run, away),
    )
    data = {
        "run": run.id,
        "workload": w.id,
        "name": w.name,
        "budget": state.budgets.paths[run.budget],
        "owner": w.owner,
        "gpus": member.slots.bit_count(),
        "ran_s": None if ran is None or away else ran / 1000,
        "protected_s": 0.0 if left is None else left / 1000,
        "phase": member.phase.value,
    }
    return Row(run.id, cells, data)


def _countdown(run: Run, left: int | None) -> Cell:
    if left is not None:
        return Cell(span(left), "accent")
    return Cell("from its start", "accent") if run.allocated and run.started_at is None else Cell("–", "dim")


def _then(view: ClusterView, record: HostRecord, run: Run, away: bool) -> Cell:
    """What becomes of it: unverified, stopping, stopped by the drain at an instant, or nothing that is known."""
    if away:
        return Cell("? unverified: the host cannot be asked", "unknown")
    if run.stop is not None:
        return Cell(f"stopping: {clean(run.stop.reason)}", "warn")
    if (drain := drain_of(view.state, record)) is not None:
        row = drain_row(view.state, record, run, drain.mode, drain.deadline_at)
        at = row.blocked if row.stops_at is None else f"stopped {day_clock(view.wall(row.stops_at), view.wall_ms)}"
        return Cell(clean(f"drain: {at}, then {row.then}"), "warn")
    if run.started_at is None:
        return Cell("starting", "accent")
    if not run.allocated:
        return Cell("unallocated: never protected", "dim")
    return Cell("goes on" if run.protected(view.state.now) else "goes on; may be preempted now")
