"""Opening the SQLite file: pragmas, schema, migrations, and its errors in words."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from opsconsole.store.errors import StoreError, StoreUnavailable
from opsconsole.store.guard import prepare_directory

VERSION = 1
MIGRATIONS: dict[int, str] = {}  # from version -> SQL that makes the next one
BUSY_S = 5.0
NOW_UNAVAILABLE = ("full", "locked", "busy", "i/o error", "disk", "readonly", "unable to open", "no such table")


def open_database(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """A connection with WAL and FULL. Raises StoreError with what to do."""
    if not read_only:
        prepare_directory(path.parent)
    elif not path.exists():
        raise StoreError(f"there is no store at {path}", advice="start a leader: opsconsole serve")
    with speaking(path):
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        _migrate(db, path)
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer version (schema {version}, this one knows {VERSION})",
            advice="use the newer opsconsole",
        )
    if version == 0:
        with transaction(db):
            if db.execute("PRAGMA user_version").fetchone()[0] == 0:
                for statement in _statements(files("opsconsole.store").joinpath("schema.sql").read_text()):
                    db.execute(statement)
                db.execute("INSERT INTO meta VALUES ('store', ?)", (uuid.uuid4().hex,))
                db.execute(f"PRAGMA user_version = {VERSION}")
    while 0 < version < VERSION:
        with transaction(db):
            for statement in _statements(MIGRATIONS[version]):
                db.execute(statement)
            version += 1
            db.execute(f"PRAGMA user_version = {version}")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, so that all of them run in one transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, writing from the start, so that nobody is surprised in the middle."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def speaking(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into sentences: now unavailable, or not usable at all."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if any(word in text.lower() for word in NOW_UNAVAILABLE):
            advice = "free some space" if "full" in text else "look at the disk and at who holds the file"
            raise StoreUnavailable(f"the store {path} cannot be written: {text}", advice=advice) from error
        raise StoreError(f"the store {path} cannot be used: {text}", advice="restore it from a copy") from error
