"""Commits: ticks per second, each durable (WAL, FULL) before the next, as the leader writes them.

python -m benchmarks.store.commits [DIRECTORY]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import say
from opsconsole.store.store import Store
from scheduler_core.sim.scenario import Scenario

TICKS = 1500


def main(directory: str | None = None) -> None:
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
    rows_rate = rows / sum(took) * 1000
    say(
        "commit of a tick, durable, median",
        p50,
        "ms",
        more=f"p99 {p99:.2f} ms; {rate:.0f} ticks/s, {rows_rate:.0f} rows/s",
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
