"""The overview: figures, a map of the hosts, and the reasons of the queue."""

from __future__ import annotations

from opsconsole.presenting.facts import Line
from opsconsole.presenting.history import HOURS, occupancy_by_hour
from opsconsole.presenting.hosts import failures, mark
from opsconsole.presenting.queue import why_counts
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.summary import health_line, is_current, queue_line, sums
from opsconsole.presenting.text import clean, count
from opsconsole.presenting.trends import spark
from opsconsole.presenting.view import ClusterView
from scheduler_core.fleet import HostState
from scheduler_core.state import HostRecord

REASON_COLUMNS = (Column("COUNT", 5, right=True), Column("WHAT THEY WAIT FOR", 24, grow=True, by="reason"))
LEGEND = "● live ◐ late ○ stale ✖ lost ▽ draining ▼ out ! failing"


def figures(view: ClusterView, width: int) -> Line:
    """Availability, occupancy, utilisation: a chain, each a part of the one before. Unknown is said first of all that
    follows; the rest as far as there is room.
    """
    s = sums(view)
    was, token = ("", "accent") if is_current(view) else ("was ", "dim")  # nobody keeps them true
    used = "?" if s.utilisation is None else f"{was}{s.utilisation:.0f}%"
    trend = _trend(view)
    chain = [
        Cell("Availability "),
        Cell(was + _percent(s.in_service, s.gpus), token),
        Cell(" → Occupancy "),
        Cell(was + _percent(s.held, s.in_service), token),
        Cell(" → Utilisation "),
        Cell(used, "unknown" if used == "?" else token),
    ]
    rest = (
        Cell(f", {count(s.unknown_hosts, 'host')} unknown" if s.unknown_hosts else "", "unknown"),
        Cell(f" ({s.read} of {s.held} GPUs read)" if s.read < s.held else "", "unknown"),
        Cell(f"   {s.free} of {count(s.gpus, 'GPU')} free"),
        Cell(f"   occupancy {trend}" if trend else "", "dim"),
    )
    for cell in rest:
        if sum(len(c.text) for c in (*chain, cell)) <= width:
            chain.append(cell)
    return chain


def _trend(view: ClusterView) -> str:
    """Occupancy by the hour, as far back in the last day as the ledgers know."""
    hours = occupancy_by_hour(view)
    while hours and hours[0] is None:
        del hours[0]
    return f"{spark(hours, HOURS)} last {len(hours)}h" if hours else ""


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
    if cell.text[0] != "●":
        return Cell(cell.text[0], cell.token)
    if record.state is not HostState.SERVING:
        return Cell("▽" if record.state is HostState.DRAINING else "▼", "warn")
    return Cell("!", "bad") if failures(view, record) else Cell("●", "good")


def reasons_table(view: ClusterView) -> TableView:
    """How many wait for which reason."""
    rows = tuple(
        Row(f"reason:{reason}", (Cell(str(number), "accent"), Cell(reason.replace("_", " "))), {"reason": reason})
        for reason, number in why_counts(view).items()
    )
    return TableView(f"Queue: {queue_line(view)}", REASON_COLUMNS, rows, "nobody waits", counted=False)
