"""Races at random moments, against a world that knows what really ran: one seed each, invariants at every step."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from scheduler_core.budget import Budget
from scheduler_core.engine import Engine
from scheduler_core.fleet import Host, HostState
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.invariants import require
from scheduler_core.observations import (
    By,
    CancelRequested,
    DrainRequested,
    InventoryLoaded,
    Observation,
    UndrainRequested,
    WorkloadSubmitted,
)
from scheduler_core.policy import Policy
from scheduler_core.sim.faults import NONE
from scheduler_core.sim.world import World
from scheduler_core.units import MINUTE, SECOND
from scheduler_core.witness import Witness
from scheduler_core.workload import Outcome, Workload, WorkloadPhase

OPS = By("ops", "drill")
FLEET = (Host(HostName("h1"), 8), Host(HostName("h2"), 8))
W = WorkloadId("w")


@dataclass
class Small:
    """Two hosts, one budget, a world without faults but for the races."""

    seed: int
    now: int = 1_000_000
    engine: Engine = field(default_factory=Engine)
    witness: Witness = field(default_factory=Witness)

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.world = World(self.seed, {h.name: h.gpus for h in FLEET}, NONE)
        self.see(InventoryLoaded(Policy(), (Budget(BudgetId("a"), "a"),), FLEET))
        self.see(*(self.world.seen(h.name) for h in FLEET))

    def see(self, *observations: Observation) -> None:
        self.world.judge.heard(observations)
        step = self.engine.step(self.now, observations)
        require(self.engine.state, self.witness)
        self.world.take(step)

    def later(self, ms: int, *observations: Observation) -> None:
        self.now += ms
        self.see(*self.world.advance(self.now), *observations)

    def submit(self, min_runtime_ms: int) -> None:
        workload = Workload(W, BudgetId("a"), 8, min_runtime_ms, self.now, resumable=True)
        self.later(6 * SECOND, WorkloadSubmitted(workload))

    def alive(self) -> int:
        return sum(p.alive for h in self.world.hosts.values() for p in h.processes.values())


@pytest.mark.parametrize("seeds", [range(n, n + 50) for n in range(0, 500, 50)], ids=str)
def test_an_undrain_at_any_moment_leaves_one_live_attempt_and_a_clear_end(seeds: range) -> None:
    """G3-03: the stop is completed and the workload requeued, or it had not begun and the run goes on."""
    for seed in seeds:
        small = Small(seed)
        small.submit(0)
        small.later(small.draw.randrange(10 * SECOND))
        host = small.draw.choice(FLEET).name
        small.see(DrainRequested(DrainId("d"), host, OPS))
        small.later(small.draw.randrange(2 * MINUTE))
        small.see(UndrainRequested(host, OPS))
        assert small.engine.state.hosts[host].state is HostState.SERVING
        for _ in range(40):
            small.later(small.draw.randrange(20 * SECOND))
            assert small.alive() <= 1
        record = small.engine.state.workloads[W]
        assert record.phase in (WorkloadPhase.RUNNING, WorkloadPhase.ENDED)


@pytest.mark.parametrize("seeds", [range(n, n + 50) for n in range(0, 500, 50)], ids=str)
def test_a_cancel_at_any_moment_of_a_launch_ends_cancelled_with_nothing_left(seeds: range) -> None:
    """G3-27: the acknowledgement of the start may come after the cancel."""
    for seed in seeds:
        small = Small(seed)
        small.submit(MINUTE)
        small.world.hosts[FLEET[seed % 2].name].lag_until = small.now + small.draw.randrange(5 * SECOND)
        small.later(small.draw.randrange(4 * SECOND), CancelRequested(W, OPS))
        for _ in range(30):
            small.later(15 * SECOND)
        record = small.engine.state.workloads[W]
        assert record.phase is WorkloadPhase.ENDED and record.outcome in (Outcome.CANCELLED, Outcome.SUCCEEDED)
        assert small.alive() == 0 and not any(h.held for h in small.engine.state.hosts.values())


def test_a_drain_in_the_same_instant_as_a_placement_wins() -> None:
    """G3-28: nothing starts on a host that is leaving, in whichever order the two arrive."""
    for host in FLEET:
        small = Small(1)
        workload = Workload(W, BudgetId("a"), 8, 0, small.now)
        drains = [DrainRequested(DrainId(f"d-{h.name}"), h.name, OPS) for h in FLEET if h != host]
        small.later(6 * SECOND, WorkloadSubmitted(workload), *drains)
        assert list(small.engine.state.runs[next(iter(small.engine.state.runs))].members) == [host.name]
