"""The console's own log: what became of its links, its leader, its workers and of what was asked for from here.

It lives as long as the console; what changed the cluster stands in the journal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.rows import Cell, Column, LazyRows, TableView
from opsconsole.presenting.text import clean, clock, count, few
from opsconsole.presenting.view import ClusterView
from scheduler_core.fleet import Reach
from scheduler_core.ids import HostName

KEPT = 2000
AT_ONCE = 12  # so many hosts are told of one by one; more at once are one line
COLUMNS = (Column("TIME", 8, by="wall_ms"), Column("ABOUT", 9, by="about"), Column("WHAT", 40, grow=True))
Standing = tuple[Reach, str]


class Entry(NamedTuple):
    """`number` counts from the start of the console."""

    number: int
    wall_ms: int
    about: str
    text: str
    token: str


class Logbook:
    """Newest last, the newest `KEPT` only. `look` notes what is different from the picture before."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=KEPT)
        self._number = 0
        self._wall_ms = 0
        self._hosts: dict[HostName, Standing] | None = None
        self._leader: str | None = None
        self._standing: dict[str, str] = {}

    def note(self, about: str, text: str, token: str = "") -> None:
        self._number += 1
        self.entries.append(Entry(self._number, self._wall_ms, about, clean(text), token))

    def look(self, view: ClusterView | None, alerts: Mapping[str, str]) -> None:
        """`alerts` stand against the console itself; the view's own are the leader's or the store's."""
        if view is not None:
            self._wall_ms = view.wall_ms
            self._look_at_leader(view)
            self._look_at_hosts(view)
        alarms = view.alarms if view is not None else {}
        standing = {f"worker {name}": text for name, text in alerts.items()} | {
            f"alarm {name}": text for name, text in alarms.items()
        }
        for name, text in standing.items():
            if self._standing.get(name) != text:
                self.note(name.partition(" ")[0], f"{name.partition(' ')[2]}: {text}", "bad")
        for name in self._standing.keys() - standing.keys():
            self.note(name.partition(" ")[0], f"{name.partition(' ')[2]}: over", "good")
        self._standing = standing

    def _look_at_leader(self, view: ClusterView) -> None:
        leader = view.leader or "nobody"
        if leader != self._leader:
            nobody = leader == "nobody"
            said = "nobody leads: nothing is scheduled" if nobody else f"leader: {leader}"
            self.note("leader", said, "bad" if nobody else "")
        self._leader = leader

    def _look_at_hosts(self, view: ClusterView) -> None:
        now = {name: (record.reach, record.unreachable_why) for name, record in view.state.hosts.items()}
        before, self._hosts = self._hosts, now
        if before is None:
            before = dict.fromkeys(now, (Reach.FRESH, ""))  # at the start only what is wrong is told
        changed = [name for name, standing in now.items() if before.get(name) != standing]
        for name in changed[:AT_ONCE]:
            self.note("link", *_changed(name, before.get(name), *now[name]))
        if len(changed) > AT_ONCE:
            rest = changed[AT_ONCE:]
            away = sum(1 for name in rest if now[name][0] in AWAY)
            self.note(
                "link", f"and {count(len(rest), 'host')}, {away} of them away: {few(rest)}", "bad" if away else "good"
            )


def _changed(name: str, before: Standing | None, reach: Reach, why: str) -> tuple[str, str]:
    if reach in AWAY:
        said = f": {why}" if why else ""
        return f"{name} {reach.value.replace('_', ' ')}{said}", "unknown" if reach is Reach.NEVER_SEEN else "bad"
    if reach is Reach.STALE:
        return f"{name}: its readings are too old", "warn"
    again = " again" if before is not None and before[0] is not Reach.NEVER_SEEN else ""
    return f"{name} answers{again}", "good"


def log_table(log: Logbook) -> TableView:
    """Newest first."""
    entries = tuple(reversed(log.entries))
    keys = [f"log:{entry.number}" for entry in entries]
    rows = LazyRows(keys, entries.__getitem__, _cells, VALUES)
    return TableView("Log of this console, newest first", COLUMNS, rows, "nothing has happened yet")


VALUES: dict[str, Callable[[Entry], Any]] = {
    "wall_ms": lambda entry: entry.wall_ms,
    "about": lambda entry: entry.about,
    "what": lambda entry: entry.text,
}


def _cells(entry: Entry) -> tuple[Cell, ...]:
    return Cell(clock(entry.wall_ms), "dim"), Cell(entry.about), Cell(entry.text, entry.token)
