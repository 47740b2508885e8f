"""What those who do not lead ask for: a row each, answered by the tick that holds it or refused by the leader."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from opsconsole.errors import StoreError
from opsconsole.store.codec import decode, encode
from scheduler_core.observations import AutoDrainProposed
from scheduler_core.observations import Request as Asked

# What hosts report is not among them: nobody may claim it for a host.
REQUESTS = (*get_args(Asked), AutoDrainProposed)
ACCEPTED = "accepted"
KEPT_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Request:
    """Something asked for. `refused` says why it cannot even be read; then there is no observation."""

    id: int
    observation: Any
    refused: str = ""


def ask(db: sqlite3.Connection, observation: Any, wall_ms: int) -> int:
    """Raises StoreError for what only hosts may say."""
    if not isinstance(observation, REQUESTS):
        raise StoreError(f"a {type(observation).__name__} cannot be asked for")
    kind, body = encode(observation)
    row = (wall_ms, kind, body)
    return int(db.execute("INSERT INTO requests (wall_ms, kind, body) VALUES (?, ?, ?)", row).lastrowid or 0)


def unanswered(db: sqlite3.Connection) -> list[Request]:
    """In the order in which they came."""
    rows = db.execute("SELECT id, kind, body FROM requests WHERE outcome IS NULL ORDER BY id").fetchall()
    return [_read(*row) for row in rows]


def _read(rid: int, kind: str, body: bytes) -> Request:
    try:
        observation = decode(kind, body)
    except StoreError as error:
        return Request(rid, None, error.message)
    if not isinstance(observation, REQUESTS):
        return Request(rid, None, f"a {kind} cannot be asked for")
    return Request(rid, observation)


def answer(db: sqlite3.Connection, ids: Sequence[int], outcome: str = ACCEPTED) -> None:
    db.executemany("UPDATE requests SET outcome = ? WHERE id = ?", [(outcome, rid) for rid in ids])


def outcome_of(db: sqlite3.Connection, rid: int) -> str | None:
    """None until a leader has answered."""
    row = db.execute("SELECT outcome FROM requests WHERE id = ?", (rid,)).fetchone()
    return row[0] if row else None


def withdraw(db: sqlite3.Connection, rid: int) -> bool:
    """Takes an unanswered request back. False when a leader was faster."""
    return db.execute("DELETE FROM requests WHERE id = ? AND outcome IS NULL", (rid,)).rowcount == 1


def tidy(db: sqlite3.Connection, wall_ms: int) -> None:
    """Answered ones are of no use after a day: what came of them stands in the journal."""
    db.execute("DELETE FROM requests WHERE outcome IS NOT NULL AND wall_ms < ?", (wall_ms - KEPT_MS,))
