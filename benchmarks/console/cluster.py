"""1,024 hosts that replay recorded lines, a run on each, and 10,000 workloads waiting, all in a real store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.console.screen import servers_first
from benchmarks.ssh.leading import place_of
from opsconsole.cli.wiring import Place
from opsconsole.clock import wall_now_ms
from opsconsole.runtime import Runtime
from scheduler_core.ids import WorkloadId
from scheduler_core.observations import Observation, WorkloadSubmitted
from scheduler_core.units import HOUR
from scheduler_core.workload import Workload

GPUS = 4  # free on each host, as recorded; the others are somebody else's
PATIENCE_S = 300.0
AGE_MS = 5 * HOUR


@dataclass
class Hosts:
    """The servers, in a process of their own."""

    process: subprocess.Popen[bytes]
    inventory: Path

    def cut(self) -> None:
        """Every connection at once. They may come back."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"drop\n")
        self.process.stdin.flush()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def serving(root: Path, count: int) -> Iterator[Hosts]:
    words = [sys.executable, "-m", "benchmarks.ssh.servers", str(root), str(count)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=servers_first)
    hosts = Hosts(process, root / "inventory.yaml")
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise SystemExit("the servers did not start")
        yield hosts
    finally:
        hosts.close()


def fill(inventory: Path, waiting: int) -> None:
    """A run on every host and so many waiting, decided, started and journalled by a leader."""
    place = place_of(inventory)
    submit(place, waiting)
    asyncio.run(start_all(place))


def submit(place: Place, waiting: int) -> None:
    """One tick of submissions: first those that fill every host for eight hours."""
    store, now = place.open_store(), wall_now_ms()
    epoch, engine = store.acquire("bench"), store.recover().engine
    assert epoch is not None
    leaves, hosts = [b.id for b in place.cluster.budgets.budgets], len(place.cluster.hosts)
    facts: list[Observation] = [place.cluster.loaded()]
    for n in range(hosts + waiting):
        of = f"train-{n:05}" if n < hosts else f"wait-{n - hosts:05}"
        gpus, priority = GPUS if n < hosts else (1, 2, 4, 8)[n % 4], 9 if n < hosts else 0
        leaf, at = leaves[n % len(leaves)], now - AGE_MS + n
        facts.append(
            WorkloadSubmitted(
                Workload(WorkloadId(of), leaf, gpus, 8 * HOUR, at, "maria", of, priority=priority, resumable=True)
            )
        )
    step = engine.step(now, facts)
    seq = store.commit(epoch, 1, now, facts, step.decisions, step.commands)
    store.snapshot(engine, 1, seq, epoch)
    store.release(epoch)
    store.close()


async def start_all(place: Place) -> None:
    runtime = place.leader()
    leading = asyncio.create_task(runtime.lead("bench"))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not _full(runtime):
                if leading.done():
                    leading.result()
                await asyncio.sleep(0.2)
    finally:
        leading.cancel()
        await asyncio.wait([leading])


def _full(runtime: Runtime) -> bool:
    state = runtime.state
    return len(state.runs) >= len(state.hosts) > 0 and all(r.started_at is not None for r in state.runs.values())


if __name__ == "__main__":
    fill(Path(sys.argv[1]), int(sys.argv[2]))
