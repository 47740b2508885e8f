"""Small clusters for tests, built through the engine's own door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from scheduler_core.budget import Budget
from scheduler_core.engine import Engine, Step
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, HostName, RunId, WorkloadId
from scheduler_core.invariants import require
from scheduler_core.observations import (
    By,
    HostSeen,
    InventoryLoaded,
    MemberExited,
    MemberReleased,
    MemberStarted,
    Observation,
    WorkloadSubmitted,
)
from scheduler_core.policy import Policy
from scheduler_core.state import HostRecord, WorkloadRecord
from scheduler_core.units import HOUR, MINUTE, WEIGHT
from scheduler_core.witness import Witness
from scheduler_core.workload import Workload

T0 = 1_800_000_000_000
T = TypeVar("T")
OPS = By("ops", "because")


def budgets(weights: Mapping[str, int]) -> tuple[Budget, ...]:
    """`{"a": 1, "a/x": 2}` as a tree; ids are paths."""
    return tuple(
        Budget(BudgetId(path), path.rpartition("/")[2], BudgetId(path.rpartition("/")[0] or ROOT), weight * WEIGHT)
        for path, weight in weights.items()
    )


@dataclass
class Cluster:
    """An engine with hosts that answer at once. Every step checks every invariant."""

    weights: Mapping[str, int] = field(default_factory=lambda: {"a": 1, "b": 1})
    hosts: Mapping[str, int] = field(default_factory=lambda: {"h1": 8})
    policy: Policy = field(default_factory=Policy)
    tree: tuple[Budget, ...] | None = None
    now: int = T0
    engine: Engine = field(default_factory=Engine)
    witness: Witness = field(default_factory=Witness)

    def __post_init__(self) -> None:
        fleet = tuple(Host(HostName(name), gpus) for name, gpus in self.hosts.items())
        self.see(InventoryLoaded(self.policy, self.tree or budgets(self.weights), fleet))
        self.see(*(self.seen(name) for name in self.hosts))

    def seen(self, host: str, boot: str = "boot1", empty: bool = False, foreign: int = 0, unfit: int = 0) -> HostSeen:
        return HostSeen(HostName(host), boot, foreign=foreign, unfit=unfit, empty=empty)

    def see(self, *observations: Observation) -> Step:
        self.witness.hear(observations)
        step = self.engine.step(self.now, observations)
        require(self.engine.state, self.witness)
        return step

    def later(self, ms: int, *observations: Observation) -> Step:
        self.now += ms
        return self.see(*observations)

    def submit(self, wid: str, budget: str = "a", gpus: int = 8, min_runtime: int = HOUR, **more: object) -> Step:
        """Submits and lets a pass happen."""
        workload = Workload(WorkloadId(wid), BudgetId(budget), gpus, min_runtime, self.now, **more)  # type: ignore[arg-type]
        first = self.see(WorkloadSubmitted(workload))
        then = self.later(self.policy.pass_interval_ms)
        return Step(first.decisions + then.decisions, first.commands + then.commands)

    def start(self, wid: str) -> None:
        """Every member of its run reports that it runs."""
        run = self.run(wid)
        self.see(*(MemberStarted(run, host) for host in self.engine.state.runs[run].members))

    def finish(self, wid: str, code: int = 0, signalled: bool = False, ago_ms: int = 0) -> Step:
        """Every member ends and gives its GPUs back, or did so a while ago."""
        run = self.run(wid)
        facts: list[Observation] = []
        for host in self.engine.state.runs[run].members:
            facts += [MemberExited(run, host, code, None, signalled), MemberReleased(run, host, ago_ms)]
        return self.see(*facts)

    def running(self, wid: str, budget: str = "a", gpus: int = 8, min_runtime: int = HOUR, **more: object) -> None:
        """Submitted, placed and started."""
        self.submit(wid, budget, gpus, min_runtime, **more)
        self.start(wid)

    def run(self, wid: str) -> RunId:
        found = self.workload(wid).run
        assert found is not None, f"{wid} has no run"
        return found

    def workload(self, wid: str) -> WorkloadRecord:
        return self.engine.state.workloads[WorkloadId(wid)]

    def host(self, name: str) -> HostRecord:
        return self.engine.state.hosts[HostName(name)]


@dataclass
class Remembered(Cluster):
    """A cluster that keeps its journal: each step with its instant and what was observed."""

    steps: list[tuple[int, tuple[Observation, ...], Step]] = field(default_factory=list)

    def see(self, *observations: Observation) -> Step:
        step = super().see(*observations)
        self.steps.append((self.now, observations, step))
        return step


def of_kind(step: Step, kind: type[T]) -> list[T]:
    return [decision for decision in step.decisions if isinstance(decision, kind)]


PASS = 5_000
MIN = MINUTE
