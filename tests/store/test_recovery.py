"""After any end the state is that of the last whole tick (groups G2 and G6 of the field reports)."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from opsconsole.store.store import Store
from scheduler_core.engine import Engine
from scheduler_core.image import to_image
from tests.crashing import dies_at
from tests.store.filling import filled, folded, scenario_of

TICKS, SNAPSHOT_EVERY = 40, 15


def same(recovered: Engine, expected: Engine) -> bool:
    one, other = recovered.state, expected.state
    records = one.workloads == other.workloads and one.runs == other.runs and one.ledgers == other.ledgers
    return records and recovered.outstanding() == expected.outstanding()


def test_recovery_gives_the_same_state_and_outstanding_commands(tmp_path: Path) -> None:
    store, scenario = filled(tmp_path / "a.db", 100)
    assert same(Store(store.path).recover().engine, scenario.engine)


def test_a_damaged_snapshot_falls_back_to_the_older_one_and_says_so(tmp_path: Path) -> None:
    """G6-13."""
    store, scenario = filled(tmp_path / "a.db", 60)
    for at in (20, 40):
        rows = [event.seq for event in store.tail(0) if event.tick <= at]
        store.snapshot(folded(scenario, at), at, rows[-1])
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE snapshots SET body = x'00' WHERE tick = 40")
    recovered = Store(store.path).recover()
    assert "tick 40 is damaged" in recovered.warnings[0]
    assert same(recovered.engine, scenario.engine)


def test_the_first_snapshots_were_plain_json_and_are_read(tmp_path: Path) -> None:
    store, scenario = filled(tmp_path / "a.db", 60)
    image = msgspec.json.encode(to_image(scenario.engine.state))
    store.keep_image(image, 60, store.last_seq(), None)
    recovered = Store(store.path).recover()
    assert not recovered.warnings and recovered.seq == store.last_seq()
    assert same(recovered.engine, scenario.engine)


@pytest.mark.parametrize("stop_at", [*range(1, 14), 46, 47, 48, 90])
def test_a_kill_at_any_write_point_leaves_whole_ticks(tmp_path: Path, stop_at: int) -> None:
    """G6-13."""
    path = tmp_path / "a.db"
    done = subprocess.run([sys.executable, "-m", __name__, str(path), str(stop_at)], capture_output=True, text=True)
    acknowledged = [int(line) for line in done.stdout.split()]
    assert done.returncode == -signal.SIGKILL, done.stderr
    recovered, scenario = Store(path).recover(), scenario_of(TICKS)
    kept = [n for n, tick in enumerate(scenario.ticks, start=1) if tick.observations or tick.step.decisions]
    last = acknowledged[-1] if acknowledged else 0
    following = next((n for n in kept if n > last), last)
    assert recovered.tick in (last, following), "nothing acknowledged is lost, nothing half done is kept"
    assert same(recovered.engine, folded(scenario, recovered.tick))


def fill_and_die(path: Path, stop_at: int) -> None:
    """A writer that kills itself at the write point of that number; it prints each tick that was acknowledged."""
    store, scenario, engine = Store(path, before_write=dies_at(stop_at)), scenario_of(TICKS), Engine()
    epoch = store.acquire("serve")
    assert epoch == 1
    for number, tick in enumerate(scenario.ticks, start=1):
        engine.fold(tick.now, tick.observations, tick.step.decisions)
        if not tick.observations and not tick.step.decisions:
            continue  # nothing to keep
        seq = store.commit(epoch, number, tick.now, tick.observations, tick.step.decisions, tick.step.commands)
        print(number, flush=True)
        if number % SNAPSHOT_EVERY == 0:
            store.snapshot(engine, number, seq)


if __name__ == "__main__":
    fill_and_die(Path(sys.argv[1]), int(sys.argv[2]))
