"""Live clusters for tests: real sshd where there is one, real agents, real processes, a real store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opsconsole.demo.cluster import DemoCluster
from opsconsole.runtime import Runtime
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.observations import WorkloadSubmitted
from scheduler_core.units import SECOND
from scheduler_core.workload import Launch, Workload
from tests.live.commands import CommandLine
from tests.waiting import until as until  # for all who use a cluster

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@dataclass
class Live(CommandLine):
    """A demo cluster with the command line pointed at it."""

    cluster: DemoCluster

    def submit(self, *words: str, status: int = 0) -> str:
        """Of budget vision, protected for a second, unless `words` say otherwise. Returns the id, or what was said."""
        options = ("--yes", "--budget", "vision", "--min-runtime", "1s")
        return self.run("submit", *options, *words, status=status).strip()


@asynccontextmanager
async def live_cluster(hosts: int = 2) -> AsyncIterator[Live]:
    """Hosts that answer; whatever happens, nothing is left behind."""
    cluster = DemoCluster(hosts)
    await cluster.start()
    try:
        yield Live(cluster.inventory, cluster)
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
