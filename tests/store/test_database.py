"""Schema, migrations, durability, and SQLite's errors in words (G6-14, G6-15)."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opsconsole.errors import StoreError, StoreUnavailable
from opsconsole.store import database
from opsconsole.store.store import Store
from tests.disks import fill_up
from tests.store.filling import commit_all, filled, scenario_of


def test_durability_is_not_traded_away(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    for connection in (store, store.another()):
        assert connection._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_many_may_make_the_same_store_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: Store(tmp_path / "s" / "a.db").id, range(8)))
    assert len(set(ids)) == 1


def test_who_opens_a_store_while_another_makes_it_waits(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    maker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    maker.execute("BEGIN IMMEDIATE")  # before it is WAL: here SQLite itself would not wait
    done = threading.Timer(0.3, maker.execute, ["COMMIT"])
    done.start()
    assert Store(path).acquire("serve") == 1
    done.join()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer version") as refused:
        Store(path)
    assert refused.value.advice == "use the newer opsconsole"


def test_a_migration_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    Store(path).close()
    monkeypatch.setattr(database, "VERSION", 2)
    monkeypatch.setattr(database, "MIGRATIONS", {1: "CREATE TABLE extra (x);\nINSERT INTO nowhere VALUES (1);\n"})
    with pytest.raises(StoreError, match="nowhere"):
        Store(path)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchall()
    monkeypatch.setattr(database, "MIGRATIONS", {1: "CREATE TABLE extra (x);\nINSERT INTO extra VALUES (1);\n"})
    store = Store(path)
    assert store._db.execute("SELECT x FROM extra").fetchall() == [(1,)]


def test_the_journal_can_be_neither_changed_nor_shortened(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "a.db", 5)
    with sqlite3.connect(store.path) as db:
        for statement in ("UPDATE journal SET body = ''", "DELETE FROM journal WHERE seq = 1"):
            with pytest.raises(sqlite3.DatabaseError, match="append-only"):
                db.execute(statement)


def test_a_store_of_nobody_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "none.db", read_only=True)
    assert not (tmp_path / "none.db").exists()


def test_a_full_disk_loses_nothing_and_is_over_when_there_is_room(small_disk: Path) -> None:
    store = Store(small_disk / "a.db")
    epoch = store.acquire("serve")
    assert epoch == 1
    scenario = scenario_of(40)
    commit_all(store, epoch, scenario)
    ballast = fill_up(small_disk)
    count, more = len(scenario.ticks), scenario_of(400, seed=8)
    acknowledged = before = store.last_seq()
    with pytest.raises(StoreUnavailable, match="cannot be written") as refused:
        for number, tick in enumerate(more.ticks * 9, start=count + 1):
            acknowledged = store.commit(epoch, number, tick.now, tick.observations, [], [])
    assert refused.value.advice in ("free some space on its disk", "look at the disk: dmesg, df")
    assert store.last_seq() == acknowledged >= before
    with pytest.raises(StoreUnavailable):
        for _ in range(500):
            store.renew(epoch)
    ballast.unlink()
    store.renew(epoch)
    assert store.commit(epoch, 9999, more.now, more.ticks[0].observations, [], []) > acknowledged
    assert Store(store.path).recover().tick == 9999


def test_making_a_store_on_a_full_disk_leaves_nothing_half_made(small_disk: Path) -> None:
    ballast = fill_up(small_disk)
    with pytest.raises(StoreUnavailable):
        Store(small_disk / "a.db")
    ballast.unlink()
    assert Store(small_disk / "a.db").acquire("serve") == 1


def test_a_locked_store_is_unavailable_not_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    store = Store(tmp_path / "a.db")
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        store.acquire("serve")
    assert not store.lease().live, "reading goes on"
    holder.execute("ROLLBACK")
    assert store.acquire("serve") == 1


def test_a_store_that_was_removed_is_not_written_to_nor_followed(tmp_path: Path) -> None:
    store, scenario = filled(tmp_path / "a.db", 5)
    aside = store.path.rename(tmp_path / "aside.db")
    with pytest.raises(StoreUnavailable, match="moved or removed"):
        store.commit(1, 99, scenario.now, scenario.ticks[0].observations, [], [])
    with pytest.raises(StoreUnavailable, match="moved or removed"):
        store.lease()
    store.path.write_bytes(b"")  # another file under its name is no better
    with pytest.raises(StoreUnavailable, match="moved or removed"):
        store.renew(1)
    aside.rename(store.path)
    store.commit(1, 99, scenario.now, scenario.ticks[0].observations, [], [])


def test_a_file_that_is_no_database_is_said_to_be_damaged(tmp_path: Path) -> None:
    """G6-13."""
    path = tmp_path / "a.db"
    path.write_bytes(b"not a database, " * 1000)
    path.chmod(0o600)
    with pytest.raises(StoreError, match="damaged"):
        Store(path)
