"""Restart: the newest snapshot, decoded and rebuilt, with a tail of 10,000 journal rows folded into it. Goal: 200 ms.

The busy cluster is the one of `benchmarks.core.engine_step`: 1,000 hosts, 8,000 GPUs held, 10,000 waiting, 200 budgets.

python -m benchmarks.store.restart [ROWS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from random import Random

from benchmarks.core import worlds
from benchmarks.core.engine_step import events
from benchmarks.figures import say
from opsconsole.store.store import Recovered, Store
from scheduler_core.engine import Engine
from scheduler_core.sim.scenario import Scenario
from scheduler_core.units import SECOND

BEST_OF = 7
GOAL_MS = 200
GAP_MS = 200  # between two events of the busy cluster


def fill_small(store: Store, rows: int) -> None:
    """A seeded world of a few hosts: a snapshot after so many rows, and as many behind it."""
    epoch, scenario, engine = store.acquire("serve"), Scenario(11), Engine()
    assert epoch is not None
    number, snapshot_seq = 0, 0
    while not snapshot_seq or store.last_seq() - snapshot_seq < rows:
        scenario.turn()
        for tick in scenario.ticks[number:]:
            number += 1
            seq = store.commit(epoch, number, tick.now, tick.observations, tick.step.decisions, tick.step.commands)
            engine.fold(tick.now, tick.observations, tick.step.decisions)
        if not snapshot_seq and seq >= rows:
            store.snapshot(engine, number, seq, epoch)
            snapshot_seq = seq


def fill_busy(store: Store, rows: int) -> None:
    """Snapshots of a full cluster, as many as are kept, and so many rows of its life behind the last."""
    epoch, (engine, now) = store.acquire("serve"), worlds.full()
    assert epoch is not None
    for number in (1, 2, 3):
        seq = store.commit(epoch, number, now, [], [], [])
        store.snapshot(engine, number, seq, epoch)
    now += 60 * SECOND
    life, last = events(engine, Random(3), now), seq + rows
    while seq < last:
        number, now = number + 1, now + GAP_MS
        facts = next(life)
        step = engine.step(now, facts)
        seq = store.commit(epoch, number, now, facts, step.decisions, step.commands)


def measure(name: str, path: Path, rows: int) -> None:
    """Opening and recovering, again and again."""
    wall, cpu = [], []
    for _ in range(BEST_OF):
        recovered = Recovered()  # the last one's million objects go before the clock starts
        began = time.perf_counter(), time.process_time()
        opened = Store(path)
        recovered = opened.recover()
        wall.append((time.perf_counter() - began[0]) * 1000)
        cpu.append((time.process_time() - began[1]) * 1000)
        opened.close()
    state = recovered.engine.state
    size = f"{len(state.hosts)} hosts, {len(state.runs)} runs, {len(state.workloads)} workloads"
    what = f"restart of a {name} cluster ({size}), tail of {rows} rows, best of {BEST_OF}"
    say(what, min(wall), "ms", GOAL_MS, f"{max(wall):.0f} ms worst; {min(cpu):.0f} ms of CPU")


def main(rows: int) -> None:
    for name, fill in (("small", fill_small), ("busy", fill_busy)):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "state" / "bench.db"
            store = Store(path)
            fill(store, rows)
            store.close()
            measure(name, path, rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
