"""Who has what open: a small fact for each console, gone when the console is. Never part of the journal."""

from __future__ import annotations

import sqlite3

KEY = "presence "  # of the small facts; behind it the console's own id
LIVES_MS = 30_000  # without being renewed


def put(db: sqlite3.Connection, console: str, wall_ms: int, text: str) -> None:
    """Says it anew, or for the first time; those that were not renewed are forgotten."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY + console, f"{wall_ms} {text}"))
    for key, at, _ in _all(db):
        if at < wall_ms - LIVES_MS:
            db.execute("DELETE FROM meta WHERE key = ?", (key,))


def drop(db: sqlite3.Connection, console: str) -> None:
    db.execute("DELETE FROM meta WHERE key = ?", (KEY + console,))


def others(db: sqlite3.Connection, console: str, wall_ms: int) -> list[str]:
    """What the other consoles say that live."""
    return [text for key, at, text in _all(db) if key != KEY + console and at >= wall_ms - LIVES_MS]


def _all(db: sqlite3.Connection) -> list[tuple[str, int, str]]:
    rows = db.execute("SELECT key, value FROM meta WHERE key >= ? AND key < ?", (KEY, KEY + "\U0010ffff")).fetchall()
    parts = ((key, *value.partition(" ")[::2]) for key, value in rows)
    return [(key, int(at), text) for key, at, text in parts]
