"""A whole world from one seed: a tree, a fleet, people and faults, driven step by step with every invariant checked.

A failure is its seed: the message names seed and step, and the same call fails again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from scheduler_core.budget import BudgetTree
from scheduler_core.engine import Engine, Step
from scheduler_core.errors import InvariantBroken
from scheduler_core.ids import BudgetId, DrainId, HostName
from scheduler_core.invariants import require
from scheduler_core.observations import (
    AutoDrainProposed,
    BreakerReset,
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostDeclared,
    InventoryLoaded,
    Observation,
    ReleaseRequested,
    RequeueRequested,
    UndrainRequested,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.policy import Policy
from scheduler_core.sim.arrivals import edited, random_fleet, random_tree, random_workload
from scheduler_core.sim.faults import USUAL, Faults, misfortune
from scheduler_core.sim.world import World
from scheduler_core.units import HOUR, MINUTE, SECOND
from scheduler_core.witness import Witness

START = 1_700_000_000_000
OPERATOR = By("ops", "drill")


@dataclass
class Tick:
    """One entry of the scenario's journal."""

    now: int
    observations: list[Observation]
    step: Step


@dataclass
class Scenario:
    """Everything of a run that came from the seed, and its journal."""

    seed: int
    faults: Faults = field(default_factory=Faults)
    policy: Policy = field(default_factory=lambda: Policy(lookback_ms=12 * HOUR, lost_after_ms=2 * MINUTE))
    ticks: list[Tick] = field(default_factory=list)

    witness: Witness = field(default_factory=Witness)

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.fleet = random_fleet(self.draw)
        self.world = World(self.seed, {h.name: h.gpus for h in self.fleet}, self.faults)
        self.engine = Engine()
        self.now = START
        self.submitted = 0
        self.tree = random_tree(self.draw)
        self.step([InventoryLoaded(self.policy, self.tree, self.fleet)])
        self.step([self.world.seen(h.name) for h in self.fleet])

    @property
    def leaves(self) -> tuple[BudgetId, ...]:
        return BudgetTree.of(self.tree).leaves

    def run(self, steps: int) -> None:
        """So many steps; raises InvariantBroken with seed and step."""
        for number in range(steps):
            try:
                self.turn()
            except InvariantBroken as error:
                raise InvariantBroken(f"seed {self.seed}, step {number}: {error}") from None

    def turn(self) -> None:
        """Time passes, the world reports, people and faults act, the engine steps."""
        self.now = self._next_instant()
        observations = self.world.advance(self.now)
        observations += misfortune(self.world)
        observations += self.people()
        if self.draw.randrange(20) == 0 and observations:
            observations.append(self.draw.choice(observations))  # a fact that arrives twice
        self.step(observations)
        if self.draw.randrange(10) == 0:
            self.look_again()

    def _next_instant(self) -> int:
        """Sometimes exactly when the engine wants to be woken, else whenever."""
        at = self.engine.next_wakeup()
        if at is not None and at < self.now + HOUR and self.draw.randrange(4) == 0:
            return max(self.now, at)
        return self.now + self.draw.choice((0, 100, SECOND, 5 * SECOND, 30 * SECOND, 3 * MINUTE))

    def step(self, observations: list[Observation]) -> None:
        step = self.engine.step(self.now, observations)
        self.ticks.append(Tick(self.now, observations, step))
        require(self.engine.state, self.witness)
        for command in step.commands:
            self.world.send(command)

    def look_again(self) -> None:
        """What the shell does with commands that have no outcome: look at the host, then send."""
        found: list[Observation] = []
        for host in self.world.hosts.values():
            if host.reachable:
                found += self.world.listing(host.name)
        self.step(found)
        for command in self.engine.outstanding():
            answers = self.world.resend(command)
            if answers:
                self.step(answers)

    # -- people ----------------------------------------------------------------------------------------------------

    def people(self) -> list[Observation]:
        """One thing that somebody asks for, often a submission."""
        roll = self.draw.randrange(100)
        if roll < 45:
            return [self.workload()]
        if roll < 60:
            return self._on_host(roll)
        if roll < 70:
            return self._on_workload(roll)
        if roll < 72:
            self.tree = edited(self.draw, self.tree)
            return [self._inventory()]
        return [BreakerReset(OPERATOR)] if roll < 73 else []

    def _inventory(self) -> InventoryLoaded:
        """Now and then a host has left it."""
        fleet = self.fleet[:-1] if self.draw.randrange(4) == 0 else self.fleet
        return InventoryLoaded(self.policy, self.tree, fleet)

    def workload(self) -> WorkloadSubmitted:
        self.submitted += 1
        found = random_workload(self.draw, self.submitted, self.now, self.leaves, self.fleet)
        self.world.limits[found.id] = found.time_limit_ms
        return WorkloadSubmitted(found)

    def _on_host(self, roll: int) -> list[Observation]:
        host = self.draw.choice(self.fleet).name
        if roll < 49:
            return [UndrainRequested(host, OPERATOR)]
        if roll < 52:
            return [CordonRequested(host, OPERATOR)]
        if roll < 54:
            silent = [h.name for h in self.world.hosts.values() if not h.reachable]
            return self._bury(self.draw.choice(silent)) if silent else []
        name = DrainId(f"d{len(self.ticks)}")
        if roll < 55:
            return [AutoDrainProposed(name, host, "XID 79", self.draw.random() < 0.5)]
        mode = self.draw.choice(("contract", "contract", "finish", "now"))
        if mode == "now":
            self._excuse(host)
        deadline = self.now + 10 * MINUTE if mode == "finish" else None
        return [DrainRequested(name, host, OPERATOR, mode, deadline)]  # type: ignore[arg-type]

    def _bury(self, name: HostName) -> list[Observation]:
        """An operator declares a silent host dead, and is sometimes wrong: then its processes live on, disowned."""
        host, known = self.world.hosts[name], self.engine.state.hosts.get(name)
        if known is None:
            return []
        if self.draw.random() < 0.5:
            host.processes.clear()
            host.boot += 1
        for run in known.runs:
            host.burnt[run] = None  # what was on its way does not start
        for process in host.processes.values():
            process.disowned = True
        return [HostDeclared(name, "dead", OPERATOR)]

    def _excuse(self, host: HostName) -> None:
        known = self.engine.state.hosts.get(host)
        for run in known.runs if known is not None else ():
            self.world.excused[run] = None

    def _on_workload(self, roll: int) -> list[Observation]:
        known = sorted(self.engine.state.workloads)
        if not known:
            return []
        wid = self.draw.choice(known)
        record = self.engine.state.workloads[wid]
        if roll < 63:
            return [CancelRequested(wid, OPERATOR)]
        if roll < 66:
            override = self.draw.random() < 0.3
            if override and record.run is not None:
                self.world.excused[record.run] = None
            return [RequeueRequested(wid, OPERATOR, override)]
        if roll < 68:
            return [HoldRequested(wid, OPERATOR)]
        if roll < 69:
            return [WorkloadMoved(wid, OPERATOR, self.draw.choice(self.leaves))]
        return [ReleaseRequested(wid, OPERATOR)]


def run(seed: int, steps: int, faults: Faults = USUAL) -> Scenario:
    """The whole world of a seed, so many steps on. Raises InvariantBroken with seed and step."""
    scenario = Scenario(seed, faults)
    scenario.run(steps)
    return scenario
