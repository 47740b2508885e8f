"""The overview: figures, a map of the hosts, reasons of the queue, and what needs a person."""

from __future__ import annotations

from opsconsole.presenting.hosts import AWAY, mark
from opsconsole.presenting.queue import why_counts
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.summary import health_line, queue_line, sums
from opsconsole.presenting.text import clean, count, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import active_drains, eta, why_unknown
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName
from scheduler_core.state import HostRecord
from scheduler_core.workload import WorkloadPhase

NEEDS_COLUMNS = (
    Column("", 1),
    Column("WHAT", 14),
    Column("SINCE", 6, right=True, by="since_s"),
    Column("WHY", 24, grow=True),
)
REASON_COLUMNS = (Column("COUNT", 5, right=True), Column("WHAT THEY WAIT FOR", 24, grow=True, by="reason"))
LEGEND = "● live ◐ late ○ stale ✖ lost ▽ draining ▼ out"
OUT = (HostState.SUSPECT, HostState.VERIFY_FAILED)
Line = list[Cell]


def figures(view: ClusterView) -> Line:
    """Availability, occupancy, utilisation: a chain, each a part of the one before. Unknown is said."""
    s = sums(view)
    used = "?" if s.utilisation is None else f"{s.utilisation:.0f}%"
    line = [
        Cell("Availability "),
        Cell(_percent(s.in_service, s.gpus), "accent"),
        Cell(" → Occupancy "),
        Cell(_percent(s.held, s.in_service), "accent"),
        Cell(" → Utilisation "),
        Cell(used, "unknown" if used == "?" else "accent"),
        Cell(f"   {s.held} of {s.gpus} GPUs held, {s.free} free"),
    ]
    if s.unknown_hosts:
        line.append(Cell(f", {s.unknown_hosts} hosts not known now", "unknown"))
    return line


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "?"


def hosts_title(view: ClusterView) -> str:
    return f"Hosts: {health_line(view) or 'none known'}"


def host_map(view: ClusterView, width: int, height: int) -> list[Line]:
    """A mark for each host, by rack where the inventory labels racks, and what the marks mean.

    What does not fit in `height` lines is said.
    """
    racks: dict[str, list[HostRecord]] = {}
    for name in sorted(view.state.hosts):
        record = view.state.hosts[name]
        racks.setdefault(dict(record.host.labels).get("rack", ""), []).append(record)
    lines: list[Line] = []
    for rack, records in racks.items():
        title = f"{clean(rack, 12):<12} " if rack else ""
        per_line = max(1, width - len(title))
        for at in range(0, len(records), per_line):
            marks = [_dot(view, record) for record in records[at : at + per_line]]
            lines.append([Cell(title, "dim"), *marks] if title else marks)
    room = max(1, height - 2)
    if len(lines) > room:
        lines[room - 1 :] = [[Cell(f"and {count(len(lines) - room + 1, 'more line')}: 2 shows every host", "unknown")]]
    return [*lines, [], [Cell(LEGEND, "dim")]]


def _dot(view: ClusterView, record: HostRecord) -> Cell:
    cell = mark(view, record)
    if cell.text[0] == "●" and record.state is not HostState.SERVING:
        return Cell("▽" if record.state is HostState.DRAINING else "▼", "warn")
    return Cell(cell.text[0], cell.token)


def reasons_table(view: ClusterView) -> TableView:
    """How many wait for which reason."""
    rows = tuple(
        Row(f"reason:{reason}", (Cell(str(number), "accent"), Cell(reason.replace("_", " "))), {"reason": reason})
        for reason, number in why_counts(view).items()
    )
    return TableView(f"Queue: {queue_line(view)}", REASON_COLUMNS, rows, "nobody waits", counted=False)


def needs_table(view: ClusterView, alarms: dict[str, str] | None = None) -> TableView:
    """What a person has to decide, oldest first; the console's own alarms stand on top."""
    rows = [_need(f"alarm:{name}", name, None, text, "bad") for name, text in (alarms or {}).items()]
    found = [*_host_needs(view), *_drain_needs(view), *_workload_needs(view)]
    rows += sorted(found, key=lambda row: (-(row.data["since_s"] or 0), row.key))
    return TableView("Needs a person", NEEDS_COLUMNS, tuple(rows), "nothing: all is well")


def _need(key: str, what: str, since_ms: int | None, why: str, token: str) -> Row:
    since = None if since_ms is None else since_ms / 1000
    cells = (
        Cell("✖" if token == "bad" else "!", token),
        Cell(clean(what, 40)),
        Cell("" if since_ms is None else span(since_ms), "dim"),
        Cell(clean(why), token),
    )
    return Row(key, cells, {"about": what, "since_s": since, "why": why})


def _host_needs(view: ClusterView) -> list[Row]:
    state, rows = view.state, []
    for name, record in state.hosts.items():
        if record.reach in AWAY:
            since = None if record.unreachable_since is None else state.now - record.unreachable_since
            runs = f"{count(len(record.runs), 'run')} unverified: " if record.runs else ""
            why = f"{runs}{record.unreachable_why or view.facts(name).why or record.reach.value.replace('_', ' ')}"
            rows.append(_need(f"host:{name}", name, since, why, "bad" if record.runs else "warn"))
        if record.state in OUT:
            reason = record.by.reason if record.by else ""
            why = f"{record.state.value.replace('_', ' ')}: {reason}"
            rows.append(_need(f"host:{name}:state", name, state.now - record.since, why, "bad"))
        if record.leaked:
            why = f"{count(record.leaked.bit_count(), 'GPU')} leaked: still held after SIGKILL"
            rows.append(_need(f"host:{name}:leak", name, None, why, "bad"))
    return rows


def _drain_needs(view: ClusterView) -> list[Row]:
    rows = []
    for drain in active_drains(view.state):
        if eta(view.state, drain) is None:
            why = f"its drain is blocked: {why_unknown(view.state, drain)}"
            rows.append(_need(f"drain:{drain.id}", drain.host, view.state.now - drain.requested_at, why, "bad"))
    return rows


def _workload_needs(view: ClusterView) -> list[Row]:
    state = view.state
    rows = [
        _need(f"held:{wid}", wid, state.now - r.waiting_since, f"held: {r.reason or 'no reason given'}", "warn")
        for wid, r in state.workloads.items()
        if r.phase is WorkloadPhase.HELD
    ]
    return rows + [
        _need(f"breaker:{what}", what, None, "breaker: waits for an operator", "bad") for what in state.tripped
    ]


def about_host(view: ClusterView, key: str) -> str:
    """The host that a row of needs is about, or nothing."""
    name = key.split(":")[1] if key.startswith("host:") else ""
    return name if HostName(name) in view.state.hosts else ""
