"""Commits: ticks per second, each durable (WAL, FULL) before the next, as the leader writes them.

python -m benchmarks.store.commits [DIRECTORY]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from opsconsole.store.store import Store
from scheduler_core.sim.scenario import Scenario

TICKS = 1500


def main(directory: str | None = None) -> float:
    scenario = Scenario(11)
    scenario.run(TICKS)
    with tempfile.TemporaryDirectory(dir=directory) as made:
        store = Store(Path(made) / "state" / "bench.db")
        epoch = store.acquire("serve")
        assert epoch is not None
        took = []
        for number, tick in enumerate(scenario.ticks, start=1):
            began = time.perf_counter()
            store.commit(epoch, number, tick.now, tick.observations, tick.step.decisions, tick.step.commands)
            took.append((time.perf_counter() - began) * 1000)
        rows = store.last_seq()
        store.close()
    rate = len(took) / sum(took) * 1000
    took.sort()
    p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
    print(f"commits: {rate:.0f} ticks/s, {rows / sum(took) * 1000:.0f} rows/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    return rate


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
