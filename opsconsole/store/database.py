"""Opening the SQLite file: pragmas, schema, migrations, and its errors in words."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from opsconsole.errors import StoreError, StoreUnavailable
from opsconsole.store.guard import prepare_directory

VERSION = 1
MIGRATIONS: dict[int, str] = {}  # from version → SQL that makes the next one
BUSY_S = 5.0
UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "free some space on its disk",
    sqlite3.SQLITE_BUSY: "another process holds it: look with fuser",
    sqlite3.SQLITE_LOCKED: "another process holds it: look with fuser",
    sqlite3.SQLITE_IOERR: "look at the disk: dmesg, df",
    sqlite3.SQLITE_READONLY: "make it writable again",
    sqlite3.SQLITE_CANTOPEN: "look at the directory and its permissions",
    sqlite3.SQLITE_PROTOCOL: "another process holds it: look with fuser",
    sqlite3.SQLITE_NOMEM: "free some memory",
}


def open_database(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """A connection with WAL and FULL. `read_only` means: make nothing where there is none. Raises StoreError."""
    if read_only and not path.exists():
        raise StoreError(f"there is no store at {path}", advice="start a leader: opsconsole serve")
    if not read_only:
        prepare_directory(path.parent)
    _require_own_file(path)
    with speaking(path):
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _use_wal(db)
            db.execute("PRAGMA synchronous = FULL")
            _migrate(db, path)
        except BaseException:
            db.close()
            raise
    return db


def _use_wal(db: sqlite3.Connection) -> None:
    """Waits by itself: SQLite gives up at once where another process opens a new file, or closes it as the last one."""
    end = time.monotonic() + BUSY_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _require_own_file(path: Path) -> None:
    """The file is a plain one, ours, and nobody else can write it."""
    try:
        info = path.lstat()
    except OSError:
        return  # not there yet, or the open says better why
    if not stat.S_ISREG(info.st_mode):
        raise StoreError(f"{path} is not a plain file", advice="move it away, or set state_dir to another directory")
    if info.st_uid != os.geteuid():
        raise StoreError(f"{path} belongs to another user", advice="set state_dir to a directory of your own")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"others can write to {path}", advice=f"run: chmod go-w {path}")


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """To the newest schema, one transaction per version; several processes may try at once."""
    while (version := _version(db)) != VERSION:
        if version > VERSION:
            raise StoreError(
                f"{path} was written by a newer version (schema {version}, this one knows {VERSION})",
                advice="use the newer opsconsole",
            )
        with transaction(db):
            if _version(db) == version:
                _make(db) if version == 0 else _run(db, MIGRATIONS[version])
                db.execute(f"PRAGMA user_version = {version + 1 if version else VERSION}")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _make(db: sqlite3.Connection) -> None:
    _run(db, files("opsconsole.store").joinpath("schema.sql").read_text())
    db.execute("INSERT INTO meta VALUES ('store', ?)", (uuid.uuid4().hex,))


def _run(db: sqlite3.Connection, script: str) -> None:
    """The statements of a script within the transaction that is open (`executescript` would end it)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, writing from the start, so that nobody is surprised in the middle."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def speaking(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into sentences: now unavailable, or not usable at all."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes keep the primary one below
        if code in UNAVAILABLE:
            raise StoreUnavailable(f"the store {path} cannot be written: {error}", advice=UNAVAILABLE[code]) from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise Damaged(path, str(error)) from error
        raise StoreError(f"the store {path} cannot be used: {error}", advice="restore it from a copy") from error


class Damaged(StoreError):
    """The file is not what was written. What follows in it is believed no more than what is broken."""

    def __init__(self, path: Path, what: str) -> None:
        kept = f"{path.with_suffix('')}.*"
        advice = f"keep {kept} elsewhere, then lead with a new store: docs/operations.md, A damaged store"
        super().__init__(f"the store {path} is damaged: {what}", advice=advice)
