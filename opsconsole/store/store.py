"""The store of one cluster. Every call is short and blocking: the live loop runs writes on one thread of its own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opsconsole.clock import wall_now_ms
from opsconsole.errors import LostLease, StoreUnavailable
from opsconsole.memory import all_to_stay
from opsconsole.store import journal, presence, requests, snapshots
from opsconsole.store import lease as leases
from opsconsole.store.database import Damaged, open_database, speaking, transaction
from opsconsole.store.journal import Event
from opsconsole.store.lease import Lease
from opsconsole.store.requests import ACCEPTED, Request
from opsconsole.store.snapshots import Recovered, image_of
from scheduler_core.engine import Engine

__all__ = ["ACCEPTED", "Event", "Lease", "Recovered", "Request", "Store"]
TAIL = 100_000
JOURNAL_KEEP_MS = 90 * 86_400_000


class Store:
    """`before_write` is called with the name of each write point; crash tests end the process there.

    Raises StoreUnavailable where it cannot be written now, LostLease where another epoch has begun, else StoreError.
    """

    def __init__(self, path: Path, read_only: bool = False, before_write: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._db = open_database(path, read_only)
        self._identity = _identity(path)
        self.before_write = before_write or (lambda point: None)
        with speaking(path):
            (self.id,) = self._db.execute("SELECT value FROM meta WHERE key = 'store'").fetchone()

    def close(self) -> None:
        self._db.close()

    def another(self) -> Store:
        """A second connection, for another thread."""
        return Store(self.path, read_only=True, before_write=self.before_write)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._require_there()
        with speaking(self.path):
            yield

    def _require_there(self) -> None:
        """SQLite goes on writing to a file that was removed, and reading it: what nobody will find again, or is old."""
        if _identity(self.path) != self._identity:
            raise StoreUnavailable(
                f"the store {self.path} was moved or removed while in use",
                advice="put it back, or stop this process and restore it from a copy",
            )

    # -- journal ---------------------------------------------------------------------------------------------------

    def commit(
        self,
        epoch: int,
        tick: int,
        at_ms: int,
        observations: Sequence[Any],
        decisions: Sequence[Any],
        commands: Sequence[Any],
        requests_done: Sequence[int] = (),
    ) -> int:
        """One tick, whole or not at all, for the highest epoch only; answers its requests. Returns the last seq."""
        roles = (("observation", observations), ("decision", decisions), ("command", commands))
        rows = journal.rows_of(tick, at_ms, wall_now_ms(), roles)
        self.before_write("begin")
        with self._writing():
            with transaction(self._db):
                self._fence(epoch)
                journal.append(self._db, rows)
                requests.answer(self._db, requests_done)
                seq = journal.last_seq(self._db)
                self.before_write("commit")
            self.before_write("committed")
            return seq

    def _fence(self, epoch: int) -> None:
        (highest,) = self._db.execute("SELECT epoch FROM lease").fetchone()
        if epoch != highest:
            raise LostLease(f"another leader has taken over (epoch {highest}, this one had {epoch})")

    def last_seq(self) -> int:
        with speaking(self.path):
            return journal.last_seq(self._db)

    def tail(self, after: int, limit: int = TAIL) -> list[Event]:
        """The rows behind `after`, in order, whole ticks, about `limit` of them."""
        with speaking(self.path):
            return journal.tail(self._db, after, limit)

    def since(self, wall_ms: int, limit: int = 10_000) -> list[Event]:
        """The newest rows since an instant of the wall clock that are worth telling, in order."""
        with speaking(self.path):
            return journal.since(self._db, wall_ms, limit)

    def archive(self, keep_ms: int = JOURNAL_KEEP_MS) -> int:
        """Moves rows older than that to files in NAME.archive. Returns how many; call again while there are any."""
        with self._writing():
            return journal.archive(self._db, self.path.with_suffix(".archive"), wall_now_ms() - keep_ms)

    # -- recovery --------------------------------------------------------------------------------------------------

    def snapshot(self, engine: Engine, tick: int, seq: int, epoch: int | None = None) -> None:
        """Keeps the state as of `seq`, for the highest epoch only where one is given."""
        self.keep_image(image_of(engine), tick, seq, epoch)

    def keep_image(self, image: bytes, tick: int, seq: int, epoch: int | None) -> None:
        self.before_write("snapshot")
        with self._writing():
            snapshots.keep(self._db, image, tick, seq, lambda: None if epoch is None else self._fence(epoch))
            requests.tidy(self._db, wall_now_ms())

    def recover(self) -> Recovered:
        """The newest intact snapshot with the whole tail of the journal folded into it. Raises Damaged where a part of
        the journal is missing between them.
        """
        with all_to_stay():
            with speaking(self.path):
                found = snapshots.newest(self._db)
                archived = journal.archived_to(self._db)
            if archived > found.seq:
                raise Damaged(self.path, f"no snapshot can be read, and the first {archived} journal rows are archived")
            while events := self.tail(found.seq):
                found.fold(events)
            return found

    def check(self) -> None:
        """SQLite's own check of the whole file: a second or so per GB. Raises Damaged."""
        with speaking(self.path):
            rows = self._db.execute("PRAGMA quick_check(20)").fetchall()
        found = [line for (text,) in rows if text != "ok" for line in text.splitlines()]
        if found:
            raise Damaged(self.path, found[-1])

    # -- lease -----------------------------------------------------------------------------------------------------

    def lease(self) -> Lease:
        """Who leads. Whoever follows asks this all the time, so it says too that the store is another by now."""
        self._require_there()
        with speaking(self.path):
            return leases.read_lease(self._db)

    def acquire(self, kind: str) -> int | None:
        """A new epoch, or None while a lease lives."""
        self.before_write("acquire")
        with self._writing():
            return leases.acquire(self._db, kind)

    def renew(self, epoch: int) -> None:
        """Raises LostLease when another epoch has begun."""
        with self._writing():
            if not leases.renew(self._db, epoch):
                raise LostLease("another leader has taken over")

    def release(self, epoch: int) -> None:
        self.before_write("release")
        with self._writing():
            leases.release(self._db, epoch)

    # -- requests --------------------------------------------------------------------------------------------------

    def ask(self, observation: Any) -> int:
        """A request to the leader; its outcome stands under this id."""
        return self.ask_all([observation])[0]

    def ask_all(self, observations: Sequence[Any]) -> list[int]:
        """All of them or none, in this order."""
        with self._writing(), transaction(self._db):
            return [requests.ask(self._db, observation, wall_now_ms()) for observation in observations]

    def open_requests(self) -> list[Request]:
        with speaking(self.path):
            return requests.unanswered(self._db)

    def refuse(self, epoch: int, request: int, why: str) -> None:
        """The leader's answer to what it cannot do."""
        with self._writing(), transaction(self._db):
            self._fence(epoch)
            requests.answer(self._db, [request], f"refused: {why}")

    def outcome(self, request: int) -> str | None:
        """None until a leader has answered: "accepted", or "refused: why"."""
        with speaking(self.path):
            return requests.outcome_of(self._db, request)

    def withdraw(self, request: int) -> bool:
        """Takes an unanswered request back. False when a leader was faster."""
        with self._writing():
            return requests.withdraw(self._db, request)

    # -- the newest readings, for followers ------------------------------------------------------------------------

    def put_readings(self, readings: dict[str, tuple[int, bytes]]) -> None:
        """By host: wall time in ms and the probe as JSON. Packed: hundreds of hosts would wear the disk out."""
        rows = [(host, at, zlib.compress(body, 1)) for host, (at, body) in readings.items()]
        with self._writing(), transaction(self._db):
            self._db.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", rows)

    def readings(self, known: Mapping[str, int], ending: str = "") -> dict[str, tuple[int, bytes]]:
        """As they were put, those with another wall time than is `known` of the host; of names that end so."""
        fresh: dict[str, tuple[int, bytes]] = {}
        with speaking(self.path):
            for host, at in self._db.execute("SELECT host, wall_ms FROM readings").fetchall():
                if known.get(host) != at and host.endswith(ending):
                    row = self._db.execute("SELECT wall_ms, body FROM readings WHERE host = ?", (host,)).fetchone()
                    fresh[host] = row[0], zlib.decompress(row[1])
        return fresh

    # -- who has what open -----------------------------------------------------------------------------------------

    def put_presence(self, console: str, text: str) -> None:
        """What this console has open; it must be said anew within 30 s. An empty text: nothing any more."""
        with self._writing(), transaction(self._db):
            presence.put(self._db, console, wall_now_ms(), text) if text else presence.drop(self._db, console)

    def presences(self, console: str) -> list[str]:
        """What others have open."""
        with speaking(self.path):
            return presence.others(self._db, console, wall_now_ms())

    # -- small facts -----------------------------------------------------------------------------------------------

    def get(self, key: str) -> str | None:
        with speaking(self.path):
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put(self, key: str, value: str) -> None:
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino
