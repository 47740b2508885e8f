"""Images of the state, so that a restart folds minutes of journal and not years. They only save time.

A body is MessagePack, packed by zlib: a twentieth of the state as JSON, and read faster. The first ones were
plain JSON.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from opsconsole.store.database import transaction
from opsconsole.store.journal import Event, folds
from scheduler_core.engine import Engine
from scheduler_core.image import StateImage, from_image, to_image

KEPT = 3
PACKING = 1  # zlib's fastest
_DECODER = msgspec.msgpack.Decoder(StateImage)


@dataclass
class Recovered:
    """An engine as of `seq`, the last journal row folded into it. `warnings` are for people."""

    engine: Engine = field(default_factory=Engine)
    tick: int = 0
    seq: int = 0
    warnings: list[str] = field(default_factory=list)

    def fold(self, events: Sequence[Event]) -> None:
        """Folds whole ticks; the journal holds no others."""
        for last, observations, decisions in folds(events):
            self.engine.fold(last.at_ms, observations, decisions)
            self.tick, self.seq = last.tick, last.seq


def image_of(engine: Engine) -> bytes:
    """The state as bytes. Nothing may move while this is made."""
    return zlib.compress(msgspec.msgpack.encode(to_image(engine.state)), PACKING)


def keep(db: sqlite3.Connection, image: bytes, tick: int, seq: int, fence: Callable[[], None]) -> None:
    """Stores the state as of `seq`, and drops all but the newest few."""
    with transaction(db):
        fence()
        db.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (tick, seq, sha256(image).hexdigest(), image)
        )
        db.execute(
            "DELETE FROM snapshots WHERE tick NOT IN (SELECT tick FROM snapshots ORDER BY tick DESC LIMIT ?)", (KEPT,)
        )


def newest(db: sqlite3.Connection) -> Recovered:
    """The newest intact one, with a warning for each that is damaged; an empty state where there is none."""
    found = Recovered()
    for tick, seq, checksum in db.execute("SELECT tick, seq, checksum FROM snapshots ORDER BY tick DESC").fetchall():
        row = db.execute("SELECT body FROM snapshots WHERE tick = ?", (tick,)).fetchone()
        engine = _engine(row[0], checksum) if row is not None else None
        if engine is not None:
            found.engine, found.tick, found.seq = engine, tick, seq
            break
        found.warnings.append(
            f"the snapshot of tick {tick} is damaged and was passed over; the journal since an older one was read"
        )
    return found


def _engine(image: bytes, checksum: str) -> Engine | None:
    """None where the bytes are not those that were written, or this version cannot read them."""
    if sha256(image).hexdigest() != checksum:
        return None
    try:
        return Engine(from_image(_state(image)))
    except (msgspec.MsgspecError, zlib.error):
        return None


def _state(image: bytes) -> StateImage:
    if image.startswith(b"{"):
        return msgspec.json.decode(image, type=StateImage)
    return _DECODER.decode(zlib.decompress(image))
