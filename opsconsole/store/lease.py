"""The lease: who leads, with an epoch that only grows. Times are of the head node's boot-time clock."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass

from opsconsole.clock import boot_id, boot_now_ms
from opsconsole.store.database import transaction

EXPIRES_MS = 6_000  # renewed every second: another may lead within 10 s of a death
RENEW_S = 1.0


@dataclass(frozen=True, slots=True)
class Lease:
    """Who leads. `age_ms` since the last renewal; None where it was made before the last boot."""

    epoch: int
    holder: str  # "head pid 12", "" when nobody leads
    kind: str  # console, serve
    age_ms: int | None

    @property
    def live(self) -> bool:
        return bool(self.holder) and self.age_ms is not None and self.age_ms < EXPIRES_MS


def me() -> str:
    return f"{os.uname().nodename} pid {os.getpid()}"


def read_lease(db: sqlite3.Connection) -> Lease:
    epoch, holder, kind, boot, renewed = db.execute(
        "SELECT epoch, holder, kind, boot_id, renewed_ms FROM lease"
    ).fetchone()
    return Lease(epoch, holder, kind, max(0, boot_now_ms() - renewed) if boot == boot_id() else None)


def acquire(db: sqlite3.Connection, kind: str) -> int | None:
    """A new epoch for this process; None while a lease lives, be it another's or one of this very process."""
    with transaction(db):
        lease = read_lease(db)
        if lease.live:
            return None
        epoch = lease.epoch + 1
        db.execute(
            "UPDATE lease SET epoch = ?, holder = ?, kind = ?, boot_id = ?, renewed_ms = ?",
            (epoch, me(), kind, boot_id(), boot_now_ms()),
        )
        return epoch


def renew(db: sqlite3.Connection, epoch: int) -> bool:
    """False when another epoch has begun meanwhile."""
    cursor = db.execute("UPDATE lease SET renewed_ms = ? WHERE epoch = ? AND holder = ?", (boot_now_ms(), epoch, me()))
    return cursor.rowcount == 1


def release(db: sqlite3.Connection, epoch: int) -> None:
    db.execute("UPDATE lease SET holder = '' WHERE epoch = ?", (epoch,))
