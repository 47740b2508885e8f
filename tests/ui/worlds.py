"""Clusters for screens: built through the engine's own door, with a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsconsole.presenting.view import ClusterView, Happening, HostFacts, OpenPlan, PendingInventory
from opsconsole.ui.source import Confirm, Outcome, OutputPiece
from scheduler_core.engine import Step
from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import By, CordonRequested, DrainRequested, HostUnreachable, Observation
from scheduler_core.state import ClusterState
from scheduler_core.units import HOUR, MINUTE
from tests.core.clusters import Cluster

WALL_MS = 1_764_513_127_000  # a Sunday, 14:32:07 in UTC
OTHER = By("lee", "was faster")  # whoever acts beside the console
HOSTILE = "[red]x[/][@click=app.quit]q[/] [b +"


def probe(gpus: int, busy: int = 90, failed: int | None = None) -> dict[str, Any]:
    """What a host's probe says of its GPUs; the one that failed says why."""

    def gpu(slot: int) -> dict[str, Any]:
        if slot == failed:
            reading: dict[str, Any] = {"failed": "GPU is lost"}
            return {"slot": slot, "uuid": reading, "readings": {"temperature_c": reading}}
        readings = {
            "utilization_percent": {"v": (busy + 3 * slot) % 101},
            "temperature_c": {"v": 50 + slot % 30},
            "power_w": {"v": 400.0 + slot},
            "ecc_volatile_uncorrected": {"v": 0},
            "memory_used_bytes": {"v": slot << 30},
            "memory_total_bytes": {"v": 80 << 30},
        }
        return {"slot": slot, "uuid": {"v": f"GPU-{slot}"}, "name": {"v": "H100"}, "readings": readings}

    return {"driver": {"v": "570.86"}, "gpus": [gpu(slot) for slot in range(gpus)]}


@dataclass
class FakeSource:
    """A ConsoleSource over an engine. `ages` are of the readings; `broken` is raised by `view`."""

    cluster: Any  # a Cluster, or a DemoOnAClock
    ages: dict[str, float] = field(default_factory=dict)
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, list[OutputPiece]] = field(default_factory=dict)
    output_fails: Exception | None = None
    kernels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    pending: PendingInventory | None = None
    version: int = 1
    actor: str = "kim"
    write_refused: str = ""
    leader: str = "serve at head"
    lag_s: float = 0.0
    alarms: dict[str, str] = field(default_factory=dict)
    happenings: list[Happening] = field(default_factory=list)
    asked: list[Observation] = field(default_factory=list)
    refuse: str = ""
    others: list[OpenPlan] = field(default_factory=list)
    told_plan: OpenPlan | None = None
    broken: Exception | None = None
    run_fails: Exception | None = None
    beside: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    close_takes_s: float = 0.0
    polled: int = 0
    closed: bool = False

    @property
    def state(self) -> ClusterState:
        state: ClusterState = self.cluster.engine.state
        return state

    def view(self) -> ClusterView:
        if self.broken is not None:
            raise self.broken
        facts = {name: self._facts(name) for name in self.cluster.hosts}
        return ClusterView(
            "h100",
            self.state,
            WALL_MS + (self.cluster.now - self.state.now),
            facts,
            self.leader,
            self.leader == "this console",
            self.lag_s,
            2.0,
            dict(self.alarms),
            list(self.happenings),
            self.version,
            self.pending,
            self.others,
        )

    def _facts(self, name: str) -> HostFacts:
        record = self.state.hosts[HostName(name)]
        if record.unreachable_why:
            return HostFacts("lost", record.unreachable_why, 240.0, None, self.probes.get(name))
        return HostFacts("live", "", self.ages.get(name, 0.6), 0.01, self.probes.get(name), self.kernels.get(name, ()))

    def changed(self) -> None:
        self.version += 1

    def happen(self, *observations: Observation, later_ms: int = 0) -> None:
        """Facts arrive; the engine decides; all of it stands in the timeline."""
        step = self.cluster.later(later_ms, *observations)
        self.happenings += happenings([(self.cluster.now, observations, step)], self.cluster.now, len(self.happenings))
        self.changed()

    async def run(self) -> None:
        if self.run_fails is not None:
            raise self.run_fails
        await asyncio.Event().wait()

    async def login(self, host: str) -> Sequence[str]:
        return ["ssh", "-p", "22", host]

    async def request(self, observations: Sequence[Observation]) -> Outcome:
        if self.refuse:
            return Outcome(0, (self.refuse,))
        self.asked += observations
        self.happen(*observations)
        return Outcome(len(observations))

    async def lead(self, reason: str, confirm: Confirm) -> None:
        if not await confirm(["2 runs go on."]):
            raise RuntimeError("not confirmed")
        self.leader = "this console"

    async def output(self, run: str, host: str) -> AsyncIterator[OutputPiece]:
        """As the test wrote it; without an end mark it goes on, with nothing more."""
        if self.output_fails is not None:
            raise self.output_fails
        for piece in self.outputs.get(run, ()):
            yield piece
        await asyncio.Event().wait()

    def tell_plan(self, plan: OpenPlan | None) -> None:
        self.told_plan = plan

    async def history(self, since_ms: int) -> tuple[list[Happening], int]:
        return [h for h in self.happenings if h.wall_ms >= since_ms], since_ms

    def poll_now(self) -> None:
        self.polled += 1

    async def close(self) -> None:
        await asyncio.sleep(self.close_takes_s)
        self.closed = True


def happenings(steps: Sequence[tuple[int, Sequence[Observation], Step]], now: int, known: int = 0) -> list[Happening]:
    """What was observed and decided, as the timeline tells it; `now` is 14:32:07."""
    events = [(at, event) for at, facts, step in steps for event in (*facts, *step.decisions)]
    told = [(at, event) for at, event in events if type(event).__name__ not in ("PassDone", "InventoryLoaded")]
    return [
        Happening(seq, WALL_MS - (now - at), type(event).__name__, event)
        for seq, (at, event) in enumerate(told, start=known + 1)
    ]


def empty_world() -> FakeSource:
    """No hosts, no budgets, nobody leads."""
    return FakeSource(Cluster(weights={}, hosts={}), leader="nobody")


def busy_world() -> FakeSource:
    """Six hosts of 8 GPUs, three teams, a queue with reasons, one host lost, one draining, one with a bad GPU."""
    hosts = {f"gpu{n:03}": 8 for n in range(1, 7)}
    weights = {"olmo": 60, "olmo/pretrain": 3, "olmo/eval": 1, "vision": 30, "nlp": 10}
    cluster = Cluster(weights, hosts)
    source = FakeSource(cluster)
    for n in range(1, 4):
        cluster.running(f"w{n}", "vision", 8, 2 * HOUR, owner="maria", name=f"resnet-{n}", resumable=True)
    cluster.running("w4", "nlp", 4, 0, owner="ines", name="notebook")
    cluster.running("w5", "olmo/eval", 4, 30 * MINUTE, owner="ben", name="eval-mmlu", resumable=True)
    cluster.later(40 * MINUTE)
    cluster.running("w6", "olmo/pretrain", 16, 4 * HOUR, owner="ada", name="olmo-7b", resumable=True)
    cluster.later(10 * MINUTE)
    cluster.submit("w7", "olmo/pretrain", 32, 4 * HOUR, owner="ada", name="olmo-32b")
    cluster.submit("w8", "nlp", 2, HOUR, owner="raj", name=HOSTILE)
    cluster.submit("w9", "vision", 64, HOUR, owner="tom", name="too-big")
    source.probes = {name: probe(8, 60 + 5 * n) for n, name in enumerate(hosts)}
    source.probes["gpu003"] = probe(8, 80, failed=5)
    source.ages = {"gpu002": 5.2}
    lost = HostUnreachable(HostName("gpu006"), "auth failed: Permission denied (publickey)")
    source.happen(lost, later_ms=MINUTE)
    drain = DrainRequested(DrainId("d41"), HostName("gpu001"), By("kim", "fan change, ticket 118"))
    source.happen(drain, later_ms=4 * MINUTE)
    source.happen(CordonRequested(HostName("gpu005"), By("kim", "kernel update")), later_ms=20_000)
    return source


LINES = b"".join(b"step %d  loss \x1b[32m%.3f\x1b[0m\n" % (n, 3 / (n + 1)) for n in range(40))


def told_world() -> FakeSource:
    """The busy one, with what a kernel and a run have written."""
    source = busy_world()
    source.outputs = {"w6~1": [OutputPiece(LINES), OutputPiece(b"saving\r saved 10%\r saved 20%")]}
    xid = {"code": 79, "pci": "0000:1b:00", "pid": None, "process": None}
    text = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
    source.kernels = {"gpu003": [{"monotonic_s": 5000.0, "text": text, "xid": xid}]}
    source.probes["gpu003"]["uptime_s"] = 7200.0
    return source


def wide_world(hosts: int, gpus: int) -> FakeSource:
    """Idle hosts of one size."""
    names = {f"gpu{n:03}": gpus for n in range(1, hosts + 1)}
    source = FakeSource(Cluster({"a": 1}, names))
    source.probes = {name: probe(gpus) for name in names}
    return source


def long_queue(count: int) -> FakeSource:
    """One full host and a long line before it."""
    cluster = Cluster({"a": 1, "b": 1}, {"h1": 8})
    cluster.running("first", "a", 8)
    from scheduler_core.ids import BudgetId, WorkloadId
    from scheduler_core.observations import WorkloadSubmitted
    from scheduler_core.workload import Workload

    waiting = (
        Workload(WorkloadId(f"q{n:05}"), BudgetId("ab"[n % 2]), 1 + n % 8, HOUR, cluster.now, owner="bo")
        for n in range(count)
    )
    cluster.engine.step(cluster.now, [WorkloadSubmitted(w) for w in waiting])
    return FakeSource(cluster)
