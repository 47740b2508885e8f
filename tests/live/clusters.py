"""Live clusters for tests: real sshd where there is one, real agents, real processes, a real store."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opsconsole.cli.wiring import Place
from opsconsole.config.inventory import read_inventory
from opsconsole.demo.cluster import DemoCluster
from opsconsole.runtime import Runtime
from opsconsole.store.store import Event
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.observations import WorkloadSubmitted
from scheduler_core.units import SECOND
from scheduler_core.workload import Launch, Workload

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
PATIENCE_S = 40.0


@dataclass
class Live:
    """A demo cluster with the command line pointed at it."""

    cluster: DemoCluster

    @property
    def place(self) -> Place:
        inventory = read_inventory(str(self.cluster.inventory))
        return Place(inventory, inventory.cluster(None))

    def environment(self) -> dict[str, str]:
        return {**os.environ, "OPSCONSOLE_INVENTORY": str(self.cluster.inventory)}

    def run(self, *words: str, status: int = 0) -> str:
        """One command, as a user types it."""
        done = subprocess.run(
            [sys.executable, "-m", "opsconsole", *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout if status == 0 else done.stdout + done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def serve(self, *words: str) -> subprocess.Popen[str]:
        """A headless leader; returns once it leads."""
        leader = subprocess.Popen(
            [sys.executable, "-m", "opsconsole", "serve", "--yes", *words],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert leader.stdout is not None
        return leader

    def until(self, true: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
        """Waits for something that the command line shows."""
        end = time.monotonic() + patience_s
        while True:
            with contextlib.suppress(AssertionError):
                if found := true():
                    return found
            assert time.monotonic() < end, f"waited {patience_s} s for {what}"
            time.sleep(0.2)

    def events(self) -> list[Event]:
        store = self.place.open_store(read_only=True)
        try:
            return store.tail(0)
        finally:
            store.close()


@asynccontextmanager
async def live_cluster(hosts: int = 2) -> AsyncIterator[Live]:
    """Hosts that answer; whatever happens, nothing is left behind."""
    cluster = DemoCluster(hosts)
    await cluster.start()
    try:
        yield Live(cluster)
    finally:
        await cluster.stop()
        assert not cluster.root.exists()


@asynccontextmanager
async def leading(live: Live) -> AsyncIterator[Runtime]:
    """A runtime of this process that leads."""
    runtime = live.place.leader()
    task = asyncio.create_task(runtime.lead("test"))
    try:
        await until(
            lambda: runtime.pool is not None and bool(runtime.state.hosts) and _all_fresh(runtime),
            "all hosts to answer",
            task,
        )
        yield runtime
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _all_fresh(runtime: Runtime) -> bool:
    return all(host.reach.value == "fresh" for host in runtime.state.hosts.values())


async def until(
    true: Callable[[], Any], what: str, task: asyncio.Task[None] | None = None, patience_s: float = PATIENCE_S
) -> None:
    end = time.monotonic() + patience_s
    while not true():
        if task is not None and task.done():
            task.result()
        assert time.monotonic() < end, f"waited {patience_s} s for {what}"
        await asyncio.sleep(0.05)


def job(
    wid: str,
    budget: str = "vision",
    gpus: int = 8,
    min_s: int = 1,
    argv: tuple[str, ...] = ("sleep", "600"),
    **more: Any,
) -> WorkloadSubmitted:
    """A submission of a real process."""
    return WorkloadSubmitted(
        Workload(WorkloadId(wid), BudgetId(budget), gpus, min_s * SECOND, 0, owner="test", launch=Launch(argv), **more)
    )
