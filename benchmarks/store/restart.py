"""Restart: the newest snapshot, decoded and rebuilt, with a tail of 10,000 journal rows folded into it (goal: 200 ms).

python -m benchmarks.store.restart [ROWS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from opsconsole.store.store import Store
from scheduler_core.engine import Engine
from scheduler_core.sim.scenario import Scenario

BEST_OF = 5


def fill(store: Store, rows: int) -> tuple[int, int]:
    """The life of a seeded world until so many rows lie behind the snapshot. Returns rows, workloads."""
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
    return store.last_seq() - snapshot_seq, len(engine.state.workloads)


def main(rows: int) -> float:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "state" / "bench.db"
        store = Store(path)
        tail, workloads = fill(store, rows)
        store.close()
        took = []
        for _ in range(BEST_OF):
            began = time.perf_counter()
            opened = Store(path)
            opened.recover()
            took.append((time.perf_counter() - began) * 1000)
            opened.close()
    best = min(took)
    print(f"restart: {best:.0f} ms best of {BEST_OF} ({max(took):.0f} worst), {workloads} workloads, tail {tail} rows")
    return best


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
