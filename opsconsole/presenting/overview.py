"""The overview: figures, a map of the hosts, and the reasons of the queue."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

from opsconsole.presenting.facts import Line
from opsconsole.presenting.history import HOURS, Day
from opsconsole.presenting.hosts import failures, mark
from opsconsole.presenting.queue import why_counts
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.summary import health_line, is_current, queue_line, sums
from opsconsole.presenting.text import clean, count, span
from opsconsole.presenting.trends import spark
from opsconsole.presenting.view import ClusterView
from scheduler_core.fleet import HostState
from scheduler_core.state import HostRecord

REASON_COLUMNS = (Column("COUNT", 5, right=True), Column("WHAT THEY WAIT FOR", 24, grow=True, by="reason"))
LEGEND = "● live ◐ late ○ stale ✖ lost ▽ draining ▼ out ! failing"


def figures(view: ClusterView, last: Day, width: int) -> list[Line]:
    """Availability, occupancy, impact, utilisation (rule 31), then what of it is not known; on as many lines as it
    takes.
    """
    s = sums(view)
    was, token = ("", "accent") if is_current(view) else ("was ", "dim")  # nobody keeps them true
    used = "?" if s.utilisation is None else f"{was}{s.utilisation:.0f}%"
    hours = _known(last.occupancy)
    parts: list[Line] = [
        [Cell("Availability "), Cell(was + _percent(s.in_service, s.gpus), token)],
        [Cell(" → Occupancy "), Cell(was + _percent(s.held, s.in_service), token)],
        [Cell(" → Impact "), _impact(last, token)],
        [Cell(" → Utilisation "), Cell(used, "unknown" if used == "?" else token)],
        [Cell(f", {count(s.unknown_hosts, 'host')} unknown", "unknown")] if s.unknown_hosts else [],
        [Cell(f" ({s.read} of {s.held} GPUs read)", "unknown")] if s.read < s.held else [],
        [Cell(f"   {s.free} of {count(s.gpus, 'GPU')} free")],
        [Cell(f"   occupancy {spark(hours, HOURS)} last {len(hours)}h", "dim")] if hours else [],
    ]
    return _wrapped(parts, width)


def _impact(last: Day, token: str) -> Cell:
    """Of the last day, or of as much of it as there is: how much of what budgets were owed they got."""
    since = f" ({span(last.known_ms)})"
    if last.impact is None:
        return Cell("– nothing owed" + since if last.known_ms else "?", "unknown")
    return Cell(f"{100 * float(last.impact):.1f}%{since}", token)


def _wrapped(parts: list[Line], width: int) -> list[Line]:
    """Each whole, on the line where there is room for it."""
    lines: list[Line] = [[]]
    for part in parts:
        if lines[-1] and sum(len(cell.text) for cell in (*lines[-1], *part)) > width:
            lines.append([])
            part = [Cell(part[0].text.lstrip(" ,"), part[0].token), *part[1:]]
        lines[-1] = [*lines[-1], *part]
    return lines


def _known(values: Sequence[float | None]) -> Sequence[float | None]:
    """As far back as anything is known."""
    return [*dropwhile(lambda value: value is None, values)]


def _waits(last: Day) -> str:
    """How long nine of ten had waited at the hours before, against the longest of these; nothing where nobody had."""
    marks = _known(last.waits)
    most = max((wait for wait in marks if wait), default=0)
    return f" {spark(marks, HOURS, most)} {len(marks) - 1}h" if most and len(marks) > 1 else ""


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


def reasons_table(view: ClusterView, last: Day) -> TableView:
    """How many wait for which reason, and how long at the hours before."""
    rows = tuple(
        Row(f"reason:{reason}", (Cell(str(number), "accent"), Cell(reason.replace("_", " "))), {"reason": reason})
        for reason, number in why_counts(view).items()
    )
    return TableView(f"Queue: {queue_line(view)}{_waits(last)}", REASON_COLUMNS, rows, "nobody waits", counted=False)
