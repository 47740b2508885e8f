"""The journal: what was observed, decided and commanded, in order. Whole ticks only; nothing is ever changed.

What is older than `journal_keep` goes to compressed files beside the database, once a snapshot holds its effects.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, cast

from opsconsole.store.codec import decode, encode
from opsconsole.store.database import transaction

COLUMNS = "seq, tick, at_ms, wall_ms, role, kind, body"
QUIET = ("PassDone", "InventoryLoaded")  # of no interest to people
ARCHIVED_AT_ONCE = 20_000


class Event(NamedTuple):
    """A row of the journal, for people and followers. `wall_ms` is wall time, `at_ms` cluster time."""

    seq: int
    tick: int
    at_ms: int
    wall_ms: int
    role: str  # observation, decision, command
    kind: str
    body: bytes

    @property
    def value(self) -> Any:
        return decode(self.kind, self.body)

    @property
    def told(self) -> bool:
        """Worth a line of a timeline."""
        return self.role != "command" and self.kind not in QUIET


Row = tuple[int, int, int, str, str, bytes]
_event = cast(Callable[[tuple[Any, ...]], Event], partial(tuple.__new__, Event))  # as `_make`, in a third of its time


def rows_of(tick: int, at_ms: int, wall_ms: int, roles: Iterable[tuple[str, Sequence[Any]]]) -> list[Row]:
    """The rows of a tick, encoded before any lock is taken."""
    return [(tick, at_ms, wall_ms, role, *encode(event)) for role, events in roles for event in events]


def append(db: sqlite3.Connection, rows: Sequence[Row]) -> None:
    db.executemany("INSERT INTO journal (tick, at_ms, wall_ms, role, kind, body) VALUES (?, ?, ?, ?, ?, ?)", rows)


def last_seq(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM journal").fetchone()[0])


def tail(db: sqlite3.Connection, after: int, limit: int) -> list[Event]:
    """The rows behind `after`, in order: about `limit` of them, but whole ticks."""
    found = _select(db, "seq > ? ORDER BY seq LIMIT ?", after, limit)
    if len(found) == limit:
        found += _select(db, "seq > ? AND tick = ? ORDER BY seq", found[-1].seq, found[-1].tick)
    return found


def since(db: sqlite3.Connection, wall_ms: int, limit: int) -> list[Event]:
    """The newest rows since an instant of the wall clock that are worth telling, in order."""
    quiet = ", ".join(f"'{kind}'" for kind in QUIET)
    where = f"wall_ms >= ? AND role <> 'command' AND kind NOT IN ({quiet}) ORDER BY seq DESC LIMIT ?"
    return _select(db, where, wall_ms, limit)[::-1]


def _select(db: sqlite3.Connection, where: str, *values: int) -> list[Event]:
    return list(map(_event, db.execute(f"SELECT {COLUMNS} FROM journal WHERE {where}", values)))


def folds(events: Sequence[Event]) -> Iterator[tuple[Event, list[Any], list[Any]]]:
    """Tick by tick: its last row, its observations, its decisions."""
    for _, rows in groupby(events, attrgetter("tick")):
        tick = list(rows)
        observations = [decode(event.kind, event.body) for event in tick if event.role == "observation"]
        decisions = [decode(event.kind, event.body) for event in tick if event.role == "decision"]
        yield tick[-1], observations, decisions


# -- old rows ----------------------------------------------------------------------------------------------------------


def archive(db: sqlite3.Connection, directory: Path, before_wall_ms: int) -> int:
    """Moves up to `ARCHIVED_AT_ONCE` rows older than this, which every snapshot holds, to a file. Returns how many."""
    (last,) = db.execute("SELECT min(seq) FROM snapshots").fetchone()
    old = _select(db, "seq <= ? AND wall_ms < ? ORDER BY seq LIMIT ?", last or 0, before_wall_ms, ARCHIVED_AT_ONCE)
    if not old:
        return 0
    _write_archive(directory, old)
    with transaction(db):
        db.execute("INSERT OR REPLACE INTO meta VALUES ('archived_to', ?)", (str(old[-1].seq),))
        db.execute("DELETE FROM journal WHERE seq <= ?", (old[-1].seq,))
    return len(old)


def archived_to(db: sqlite3.Connection) -> int:
    """The last row that is no longer in the database; 0 where all are."""
    row = db.execute("SELECT value FROM meta WHERE key = 'archived_to'").fetchone()
    return int(row[0]) if row is not None else 0


def _write_archive(directory: Path, events: Sequence[Event]) -> None:
    """Durable and whole before a row is deleted: written aside, synced, renamed."""
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / f"{events[0].seq:012}-{events[-1].seq:012}.jsonl.gz"
    scratch = path.with_suffix(".new")
    with scratch.open("wb") as raw:
        with gzip.open(raw, "wt", encoding="utf-8") as out:
            for e in events:
                out.write(json.dumps([e.seq, e.tick, e.at_ms, e.wall_ms, e.role, e.kind, json.loads(e.body)]) + "\n")
        raw.flush()
        os.fsync(raw.fileno())
    scratch.replace(path)
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
