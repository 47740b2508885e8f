"""The store of one cluster. Every call is short and blocking: the live loop runs writes on one thread of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from opsconsole.store import lease as leases
from opsconsole.store.codec import decode, encode
from opsconsole.store.database import open_database, speaking, transaction
from opsconsole.store.errors import LostLease
from scheduler_core.engine import Engine
from scheduler_core.image import StateImage, from_image, to_image

SNAPSHOTS_KEPT = 3


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the journal, for people and followers. `wall_ms` is wall time, `at_ms` cluster time."""

    seq: int
    tick: int
    at_ms: int
    wall_ms: int
    role: str
    kind: str
    body: bytes

    @property
    def value(self) -> Any:
        return decode(self.kind, self.body)


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody who does not lead asks for."""

    id: int
    observation: Any


class Store:
    """`before_write` is called with the name of each write point; crash tests end the process there."""

    def __init__(self, path: Path, read_only: bool = False, before_write: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._db = open_database(path, read_only)
        self.before_write = before_write or (lambda point: None)
        (self.id,) = self._db.execute("SELECT value FROM meta WHERE key = 'store'").fetchone()

    def close(self) -> None:
        self._db.close()

    # -- journal ---------------------------------------------------------------------------------------------------

    def commit(
        self,
        epoch: int,
        tick: int,
        at_ms: int,
        observations: Sequence[Any],
        decisions: Sequence[Any],
        commands: Sequence[Any],
        requests: Sequence[int] = (),
    ) -> int:
        """One tick, whole or not at all, for the highest epoch only; answers its requests. Returns the last seq."""
        wall = time.time_ns() // 1_000_000
        rows = [
            (tick, at_ms, wall, role, *encode(event))
            for role, events in (("observation", observations), ("decision", decisions), ("command", commands))
            for event in events
        ]
        with speaking(self.path):
            self.before_write("begin")
            with transaction(self._db):
                self._fence(epoch)
                self._db.executemany(
                    "INSERT INTO journal (tick, at_ms, wall_ms, role, kind, body) VALUES (?, ?, ?, ?, ?, ?)", rows
                )
                self._db.executemany("UPDATE requests SET outcome = 'accepted' WHERE id = ?", [(r,) for r in requests])
                self.before_write("commit")
            self.before_write("committed")
            return self.last_seq()

    def _fence(self, epoch: int) -> None:
        (highest,) = self._db.execute("SELECT epoch FROM lease").fetchone()
        if epoch != highest:
            raise LostLease(f"another leader has taken over (epoch {highest}, this one had {epoch})")

    def last_seq(self) -> int:
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM journal").fetchone()[0])

    def tail(self, after: int, limit: int = 100_000) -> list[Event]:
        """The rows behind `after`, in order."""
        with speaking(self.path):
            rows = self._db.execute(
                "SELECT seq, tick, at_ms, wall_ms, role, kind, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?",
                (after, limit),
            ).fetchall()
        return [Event(*row) for row in rows]

    def since(self, wall_ms: int, limit: int = 10_000) -> list[Event]:
        """The newest rows since an instant of the wall clock, in order."""
        with speaking(self.path):
            rows = self._db.execute(
                "SELECT seq, tick, at_ms, wall_ms, role, kind, body FROM journal"
                " WHERE wall_ms >= ? AND role <> 'command' AND kind NOT IN ('PassDone', 'InventoryLoaded')"
                " ORDER BY seq DESC LIMIT ?",
                (wall_ms, limit),
            ).fetchall()
        return [Event(*row) for row in reversed(rows)]

    # -- recovery --------------------------------------------------------------------------------------------------

    def snapshot(self, engine: Engine, tick: int, seq: int) -> None:
        """Keeps the state as of `seq`. The newest few are kept; a damaged one falls back to the one before."""
        body = msgspec.json.encode(to_image(engine.state))
        with speaking(self.path):
            self.before_write("snapshot")
            with transaction(self._db):
                self._db.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (tick, seq, sha256(body).hexdigest(), body)
                )
                self._db.execute(
                    "DELETE FROM snapshots WHERE tick NOT IN (SELECT tick FROM snapshots ORDER BY tick DESC LIMIT ?)",
                    (SNAPSHOTS_KEPT,),
                )

    def recover(self) -> Recovered:
        """The newest intact snapshot with the journal's tail folded into it."""
        found = Recovered(Engine(), 0, 0, [])
        with speaking(self.path):
            rows = self._db.execute("SELECT tick, seq, checksum, body FROM snapshots ORDER BY tick DESC").fetchall()
        for tick, seq, checksum, body in rows:
            if sha256(body).hexdigest() == checksum:
                image = msgspec.json.decode(body, type=StateImage)
                found.engine, found.tick, found.seq = Engine(from_image(image)), tick, seq
                break
            found.warnings.append(f"the snapshot of tick {tick} is damaged and was passed over")
        found.fold(self.tail(found.seq))
        return found

    # -- lease -----------------------------------------------------------------------------------------------------

    def lease(self) -> leases.Lease:
        with speaking(self.path):
            return leases.read_lease(self._db)

    def acquire(self, kind: str) -> int | None:
        with speaking(self.path):
            return leases.acquire(self._db, kind)

    def renew(self, epoch: int) -> None:
        """Raises LostLease when another epoch has begun."""
        with speaking(self.path):
            if not leases.renew(self._db, epoch):
                raise LostLease("another leader has taken over")

    def release(self, epoch: int) -> None:
        with speaking(self.path):
            leases.release(self._db, epoch)

    # -- requests --------------------------------------------------------------------------------------------------

    def ask(self, observation: Any) -> int:
        """A request to the leader; its outcome stands under this id."""
        with speaking(self.path), transaction(self._db):
            kind, body = encode(observation)
            cursor = self._db.execute(
                "INSERT INTO requests (wall_ms, kind, body) VALUES (?, ?, ?)", (time.time_ns() // 1_000_000, kind, body)
            )
            return int(cursor.lastrowid or 0)

    def open_requests(self) -> list[Request]:
        with speaking(self.path):
            rows = self._db.execute("SELECT id, kind, body FROM requests WHERE outcome IS NULL ORDER BY id").fetchall()
        return [Request(rid, decode(kind, body)) for rid, kind, body in rows]

    def outcome(self, request: int) -> str | None:
        """None until a leader has journalled it."""
        with speaking(self.path):
            row = self._db.execute("SELECT outcome FROM requests WHERE id = ?", (request,)).fetchone()
        return row[0] if row else None

    def withdraw(self, request: int) -> bool:
        """Takes an unanswered request back. False when a leader was faster."""
        with speaking(self.path), transaction(self._db):
            cursor = self._db.execute("DELETE FROM requests WHERE id = ? AND outcome IS NULL", (request,))
            return cursor.rowcount == 1

    # -- the newest readings, for followers ------------------------------------------------------------------------

    def put_readings(self, readings: dict[str, tuple[int, bytes]]) -> None:
        """By host: wall time in ms and the probe as JSON."""
        with speaking(self.path), transaction(self._db):
            self._db.executemany(
                "INSERT OR REPLACE INTO readings VALUES (?, ?, ?)",
                [(h, at, body) for h, (at, body) in readings.items()],
            )

    def readings(self) -> dict[str, tuple[int, bytes]]:
        with speaking(self.path):
            rows = self._db.execute("SELECT host, wall_ms, body FROM readings").fetchall()
        return {host: (at, body) for host, at, body in rows}

    # -- small facts -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put(self, key: str, value: str) -> None:
        with speaking(self.path):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


@dataclass
class Recovered:
    """An engine as of `seq`, the last journal row folded into it."""

    engine: Engine
    tick: int
    seq: int
    warnings: list[str]

    def fold(self, events: Sequence[Event]) -> None:
        """Folds whole ticks; the journal holds no others."""
        observations: list[Any] = []
        decisions: list[Any] = []
        for i, event in enumerate(events):
            if event.role == "observation":
                observations.append(event.value)
            elif event.role == "decision":
                decisions.append(event.value)
            self.seq = event.seq
            if i + 1 == len(events) or events[i + 1].tick != event.tick:
                self.engine.fold(event.at_ms, observations, decisions)
                self.tick = event.tick
                observations, decisions = [], []
