"""A cluster of fake hosts with a real store and a real runtime; what must hold of it at the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import opsconsole.leader as live
from opsconsole.errors import OpsConsoleError
from opsconsole.health.acting import Automatic
from opsconsole.runtime import Runtime
from opsconsole.site import Site
from opsconsole.store.store import Store
from scheduler_core.budget import Budget
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, HostName, WorkloadId
from scheduler_core.invariants import check
from scheduler_core.observations import By, InventoryLoaded, WorkloadSubmitted
from scheduler_core.policy import Policy
from scheduler_core.state import WorkloadRecord
from scheduler_core.units import WEIGHT
from scheduler_core.workload import Launch, Workload, WorkloadPhase
from tests.runtime.fakehosts import FakeHost, FakePool
from tests.waiting import until as until  # for all who use the rig

OPS = By("ops", "test")
POLICY = Policy(pass_interval_ms=20, stop_grace_ms=500, checkpoint_grace_ms=0, retry_delay_ms=50, lost_after_ms=60_000)
SOON_LOST = replace(POLICY, lost_after_ms=150)


def job(wid: str, runs_s: float = 60.0, gpus: int = 4, min_s: float = 0.1, budget: str = "a", **more: Any) -> Any:
    launch = Launch(("work", str(runs_s)))
    w = Workload(WorkloadId(wid), BudgetId(budget), gpus, int(min_s * 1000), 0, owner="me", launch=launch, **more)
    return WorkloadSubmitted(w)


@dataclass
class Rig:
    """`path` holds the store and the truth of the hosts."""

    path: Path
    names: tuple[str, ...] = ("h1", "h2")
    gpus: int = 4
    policy: Policy = POLICY
    fence: tuple[str, ...] = ()  # the command of every host
    digest: str = ""  # of the inventory; `names`, `policy` and this are what a reload reads anew
    auto: Automatic = field(default_factory=Automatic)  # what health may do by itself
    before_write: Callable[[str], None] | None = None
    hosts: dict[str, FakeHost] = field(default_factory=dict)
    pools: list[FakePool] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in self.names:
            self.hosts.setdefault(name, FakeHost(self.path, name, self.gpus))

    @property
    def store_path(self) -> Path:
        return self.path / "c.db"

    @property
    def pool(self) -> FakePool:
        return self.pools[-1]

    def site(self) -> Site:
        budgets = tuple(Budget(BudgetId(name), name, ROOT, WEIGHT) for name in "ab")
        hosts = tuple(Host(HostName(name), self.gpus, fence=bool(self.fence)) for name in self.names)
        fence = dict.fromkeys(self.names, self.fence)
        reach = {name: SimpleNamespace(name=name, address=f"addr-{name}") for name in self.names}
        loaded = InventoryLoaded(self.policy, budgets, hosts)
        return Site("c", loaded, reach, 0.1, (), fence, 1.0, self.digest, auto=self.auto)

    def runtime(self) -> Runtime:
        def make(hosts: Iterable[Any], hello: Callable[[str], Any], hear: Callable[[str, str, Any], None]) -> FakePool:
            self.pools.append(FakePool(self.hosts, hello, hear))
            self.pools[-1].replace(hosts)
            return self.pools[-1]

        async def reread(digest: str) -> Site:
            if digest != self.digest:
                raise OpsConsoleError("not the file that was agreed to")
            return self.site()

        return Runtime(self.site(), Store(self.store_path, before_write=self.before_write), make, reread)

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[Runtime]:
        """A runtime that leads, once all hosts have been seen."""
        async with self.leading_anyhow() as runtime:
            await until(lambda: all_fresh(runtime), "hosts to be seen")
            yield runtime

    @asynccontextmanager
    async def leading_anyhow(self) -> AsyncIterator[Runtime]:
        """A runtime that leads, whichever hosts it has seen."""
        runtime = self.runtime()
        task = asyncio.create_task(runtime.lead("test", reconcile_s=2.0))
        try:
            await until(lambda: acts(runtime), "it to act", task)
            yield runtime
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OpsConsoleError):
                await task
            runtime.store.close()


def acts(runtime: Runtime) -> bool:
    return runtime.leader is not None and runtime.leader.acted


def on_disk(runtime: Runtime) -> bool:
    """Memory is not ahead of the journal."""
    return runtime.leader is None or not runtime.leader.journal.ahead


def all_fresh(runtime: Runtime) -> bool:
    hosts = runtime.state.hosts.values()
    return bool(hosts) and all(host.reach.value == "fresh" for host in hosts)


def record(runtime: Runtime, wid: str) -> WorkloadRecord:
    return runtime.state.workloads[WorkloadId(wid)]


def started(runtime: Runtime, wid: str) -> bool:
    found = runtime.state.workloads.get(WorkloadId(wid))
    return found is not None and found.run is not None and runtime.state.runs[found.run].started_at is not None


def ended(runtime: Runtime, *wids: str) -> bool:
    """In the journal too: memory may be ahead of it."""
    found = [runtime.state.workloads.get(WorkloadId(wid)) for wid in wids]
    return on_disk(runtime) and all(r is not None and r.phase is WorkloadPhase.ENDED for r in found)


def quick(expires_ms: int = 300) -> None:
    """Leases of a killed leader run out soon; for processes of their own."""
    import opsconsole.store.lease as leases

    leases.EXPIRES_MS = expires_ms
    live.RENEW_S = 0.05
    live.TICK_S = 0.03


def spans(rig: Rig) -> dict[str, list[tuple[int, int, int, str]]]:
    """By workload, what really ran: from, to (boot-time ms), GPUs, token, over all hosts."""
    found: dict[str, list[tuple[int, int, int, str]]] = {}
    for host in rig.hosts.values():
        for token, run in host.runs.items():
            span = (run["began_ms"], run["ends_ms"], len(run["gpus"]), token)
            found.setdefault(run["spec"]["workload"], []).append(span)
    return found


def problems(rig: Rig, runtime: Runtime, wids: tuple[str, ...]) -> list[str]:
    """What was lost, run twice, stopped early or charged wrongly; what the journal does not say."""
    wrong = [f"{wid} was lost" for wid in wids if WorkloadId(wid) not in runtime.state.workloads]
    wrong += [f"{wid} has not ended" for wid in wids if not ended(runtime, wid)]
    wrong += [f"{h.name} refused {h.protected} early stops" for h in rig.hosts.values() if h.protected]
    true_ms, placed = 0, placed_at(rig, runtime)
    for wid, ran in spans(rig).items():
        for began, ends, gpus, token in ran:
            true_ms += gpus * (ends - placed[token])
            wrong += [
                f"{token} and {other[3]} of {wid} overlap" for other in ran if overlap((began, ends, token), other)
            ]
    state = runtime.state
    used = (
        sum(state.ledgers.used(b, state.now, state.policy.lookback_ms) for b in (BudgetId("a"), BudgetId("b"))) / 1000
    )
    held = sum(len(r["gpus"]) for h in rig.hosts.values() for r in h.runs.values())
    if abs(used - true_ms) > 1000 * held:
        wrong.append(f"charged {used} GPU-ms, really held {true_ms}")
    replayed = replay(rig.store_path)
    if (replayed.workloads, replayed.ledgers) != (state.workloads, state.ledgers):
        wrong.append("the journal alone gives another state")
    return wrong + check(state)


def placed_at(rig: Rig, runtime: Runtime) -> dict[str, int]:
    """By token, when its GPUs were promised and its budget began to pay (boot-time ms)."""
    store = Store(rig.store_path)
    _, boot, cluster = json.loads(store.get("clock") or "")
    store.close()
    attempts = [attempt for r in runtime.state.workloads.values() for attempt in r.attempts]
    placed = {attempt.run: attempt.placed_at for attempt in attempts}
    placed |= {run: live.placed_at for run, live in runtime.state.runs.items()}
    return {str(run): at - cluster + boot for run, at in placed.items()}


def overlap(one: tuple[int, int, str], other: tuple[int, int, int, str]) -> bool:
    """Two attempts at once. Members of one attempt have one token."""
    return one[2] < other[3] and one[0] < other[1] and other[0] < one[1]


def replay(path: Path) -> Any:
    """The state from the whole journal, snapshots left aside."""
    from opsconsole.store.snapshots import Recovered

    store, found = Store(path), Recovered()
    found.fold(store.tail(0))
    store.close()
    return found.engine.state
