"""The store: whole ticks or none, fenced by epoch, recovered after any end (groups G2 and G6 of the field reports)."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from opsconsole.store.errors import LostLease, StoreError, StoreUnavailable
from opsconsole.store.guard import filesystem, prepare_directory
from opsconsole.store.store import Store
from scheduler_core.engine import Engine
from scheduler_core.sim.scenario import Scenario

CRASHER = """
import os, signal, sys
from opsconsole.store.store import Store
from scheduler_core.sim.scenario import Scenario
from pathlib import Path
path, stop_at = Path(sys.argv[1]), int(sys.argv[2])
count = 0
def before_write(point):
    global count
    count += 1
    if count == stop_at:
        os.kill(os.getpid(), signal.SIGKILL)
store = Store(path, before_write=before_write)
epoch = store.acquire("serve")
scenario = Scenario(7)
scenario.run(40)
for number, tick in enumerate(scenario.ticks, start=1):
    if not tick.observations and not tick.step.decisions:
        continue  # nothing to keep
    seq = store.commit(epoch, number, tick.now, tick.observations, tick.step.decisions, tick.step.commands)
    print(number, flush=True)
    if number % 15 == 0:
        engine = Engine()
        for done in scenario.ticks[:number]:
            engine.fold(done.now, done.observations, done.step.decisions)
        store.snapshot(engine, number, seq)
print("end", flush=True)
""".replace("import os, signal, sys", "import os, signal, sys\nfrom scheduler_core.engine import Engine")


def filled(path: Path, ticks: int) -> tuple[Store, Scenario]:
    store, scenario = Store(path), Scenario(7)
    epoch = store.acquire("serve")
    assert epoch == 1
    scenario.run(ticks)
    for number, tick in enumerate(scenario.ticks, start=1):
        store.commit(epoch, number, tick.now, tick.observations, tick.step.decisions, tick.step.commands)
    return store, scenario


def folded(scenario: Scenario, ticks: int) -> Engine:
    engine = Engine()
    for tick in scenario.ticks[:ticks]:
        engine.fold(tick.now, tick.observations, tick.step.decisions)
    return engine


def test_recovery_gives_the_same_state_and_outstanding_commands(tmp_path: Path) -> None:
    store, scenario = filled(tmp_path / "a.db", 100)
    recovered = Store(store.path).recover()
    assert recovered.engine.state.workloads == scenario.engine.state.workloads
    assert recovered.engine.state.ledgers == scenario.engine.state.ledgers
    assert recovered.engine.outstanding() == scenario.engine.outstanding()


def test_a_damaged_snapshot_falls_back_to_the_older_one_and_says_so(tmp_path: Path) -> None:
    store, scenario = filled(tmp_path / "a.db", 60)
    total = len(scenario.ticks)
    for at in (20, 40):
        rows = [e.seq for e in store.tail(0) if e.tick == at]
        store.snapshot(folded(scenario, at), at, rows[-1] if rows else 0)
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE snapshots SET body = x'00' WHERE tick = 40")
    recovered = Store(store.path).recover()
    assert recovered.tick <= total and "tick 40 is damaged" in recovered.warnings[0]
    assert recovered.engine.state.workloads == scenario.engine.state.workloads


@pytest.mark.parametrize("stop_at", [*range(1, 14), 46, 47, 48, 90])
def test_a_kill_at_any_write_point_leaves_whole_ticks(tmp_path: Path, stop_at: int) -> None:
    path = tmp_path / "a.db"
    done = subprocess.run([sys.executable, "-c", CRASHER, str(path), str(stop_at)], capture_output=True, text=True)
    acknowledged = [int(line) for line in done.stdout.split() if line != "end"]
    assert done.returncode == -signal.SIGKILL or "end" in done.stdout
    recovered = Store(path).recover()
    last = acknowledged[-1] if acknowledged else 0
    scenario = Scenario(7)
    scenario.run(40)
    kept = [n for n, t in enumerate(scenario.ticks, start=1) if t.observations or t.step.decisions]
    following = next((n for n in kept if n > last), last)
    assert recovered.tick in (last, following), "nothing acknowledged is lost, nothing half done is kept"
    assert recovered.engine.state.workloads == folded(scenario, recovered.tick).state.workloads


def test_an_older_epoch_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    old, new = Store(path), Store(path)
    first = old.acquire("serve")
    assert first is not None
    old.release(first)
    second = new.acquire("serve")
    assert second == first + 1
    with pytest.raises(LostLease):
        old.commit(first, 1, 1, [], [], [])
    with pytest.raises(LostLease):
        old.renew(first)


def test_the_journal_is_append_only(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "a.db", 5)
    with sqlite3.connect(store.path) as db, pytest.raises(sqlite3.DatabaseError, match="append-only"):
        db.execute("UPDATE journal SET body = ''")


def test_durability_is_not_traded_away(tmp_path: Path) -> None:
    """G6-14: the pragmas as they are at run time."""
    store = Store(tmp_path / "a.db")
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer version"):
        Store(path)


def test_directories_that_are_not_safe_are_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(StoreError, match="others can write"):
        prepare_directory(shared)
    with pytest.raises(StoreError, match="characters long"):
        prepare_directory(tmp_path / ("x" * 1000))


def test_network_file_systems_are_known_by_their_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nnas:/home {tmp_path} nfs4 rw 0 0\n")
    assert filesystem(tmp_path / "state", str(mounts)) == "nfs4"
    assert filesystem(Path("/usr"), str(mounts)) == "ext4"


def test_a_full_disk_is_unavailable_not_broken_and_nothing_is_lost(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "a.db", 5)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    more = Scenario(8)
    more.run(200)
    before = store.last_seq()
    with pytest.raises(StoreUnavailable, match="full"):
        for number, tick in enumerate(more.ticks, start=1000):
            store.commit(1, number, tick.now, tick.observations, tick.step.decisions, tick.step.commands)
            before = store.last_seq()
    assert store.last_seq() == before
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.commit(1, 5000, more.now, more.ticks[0].observations, [], [])
    assert store.last_seq() > before


def test_a_request_is_answered_by_the_tick_that_holds_it(tmp_path: Path) -> None:
    from scheduler_core.ids import HostName
    from scheduler_core.observations import By, CordonRequested

    store = Store(tmp_path / "a.db")
    epoch = store.acquire("serve")
    assert epoch is not None
    wish = CordonRequested(HostName("h1"), By("ann", "why"))
    rid = store.ask(wish)
    assert store.outcome(rid) is None
    (request,) = store.open_requests()
    store.commit(epoch, 1, 1, [request.observation], [], [], [request.id])
    assert store.outcome(rid) == "accepted" and not store.open_requests()
    assert not store.withdraw(rid)
    assert store.tail(0)[0].value == wish


def test_a_store_of_nobody_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "none.db", read_only=True)
    assert not (tmp_path / "none.db").exists()


def test_an_unknown_kind_in_the_journal_is_refused_clearly(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "a.db", 2)
    with sqlite3.connect(store.path) as db:
        db.execute(
            "INSERT INTO journal (tick, at_ms, wall_ms, role, kind, body)"
            " VALUES (99, 0, 0, 'decision', 'Teleported', ?)",
            (json.dumps({}).encode(),),
        )
    with pytest.raises(StoreError, match="'Teleported'"):
        Store(store.path).recover()
    assert os.path.exists(store.path)
