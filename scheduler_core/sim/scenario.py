"""A whole world from one seed: a tree, a fleet, people and faults, driven step by step with every invariant checked.

A failure is its seed: the message names seed and step, and the same call fails again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from scheduler_core.budget import BudgetTree
from scheduler_core.engine import Engine
from scheduler_core.errors import InvariantBroken
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.invariants import require
from scheduler_core.lapses import lapsed
from scheduler_core.observations import (
    AutoDrainProposed,
    AutoDrainWithdrawn,
    BreakerReset,
    By,
    CancelRequested,
    ClockStepped,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostAdvanced,
    HostDeclared,
    HostSeen,
    HostStale,
    HostUnreachable,
    InventoryLoaded,
    Observation,
    ReleaseRequested,
    ReloadRequested,
    RequestRefused,
    RequeueRequested,
    UndrainRequested,
    UsageForgotten,
    WeightChanged,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.sim.arrivals import edited, random_fleet, random_policy, random_tree, random_workload
from scheduler_core.sim.console import Console, Tick
from scheduler_core.sim.faults import USUAL, Faults, misfortune
from scheduler_core.sim.world import World
from scheduler_core.units import DAY, HOUR, MINUTE, SECOND, WEIGHT
from scheduler_core.witness import Witness

START = 1_700_000_000_000
OPERATOR = By("ops", "drill")


@dataclass
class Scenario:
    """Everything of a run that came from the seed, and its journal."""

    seed: int
    faults: Faults = field(default_factory=Faults)
    ticks: list[Tick] = field(default_factory=list)
    witness: Witness = field(default_factory=Witness)

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.clock = Random(-1 - self.seed)  # of its own, so that steps of the wall clock change nothing else
        self.fleet = random_fleet(self.draw)
        self.world = World(self.seed, {h.name: h.gpus for h in self.fleet}, self.faults)
        self.engine = Engine()
        self.now = START
        self.submitted = 0
        self.tree = random_tree(self.draw)
        self.policy = random_policy(self.draw)
        self.step([InventoryLoaded(self.policy, self.tree, self.fleet)])
        self.step([self.world.seen(h.name) for h in self.fleet])
        self.console = Console(self)

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
        crashes = self.world.chance("crash", self.console.draw)
        observations = lapsed(self.engine.state, self.now) + self.world.advance(self.now)
        observations += misfortune(self.world)
        if crashes and self.console.draw.random() < 0.5:
            self.console.crash()  # before anything of it was journalled
            return
        observations += self.people()
        if self.draw.randrange(20) == 0 and observations:
            self.world.injected["repeat_report"] += 1
            self._repeat(observations)
        if self.clock.randrange(200) == 0:
            self.world.injected["clock"] += 1
            observations.append(ClockStepped(self.clock.randrange(-DAY, DAY)))
        self.step(observations, self.console.draw.randrange(3) if crashes else None)
        if crashes:
            self.console.crash()
        elif self.world.chance("takeover", self.console.draw):
            self.console.take_over()
        self.console.keep()
        if self.draw.randrange(10) == 0:
            self.look_again()

    def _repeat(self, observations: list[Observation]) -> None:
        """A fact arrives twice, the second time late; but what the console sees of its own links comes in order."""
        fact = self.draw.choice(observations)
        at_once = isinstance(fact, HostSeen | HostStale | HostUnreachable)
        observations.insert(observations.index(fact) if at_once else len(observations), fact)

    def _next_instant(self) -> int:
        """Sometimes exactly when the engine wants to be woken, else whenever; now and then we were away for long."""
        at = self.engine.next_wakeup()
        if self.draw.randrange(300) == 0:
            return self.now + self.draw.choice((HOUR, 8 * HOUR, DAY))
        if at is not None and at < self.now + HOUR and self.draw.randrange(4) == 0:
            return max(self.now, at)
        return self.now + self.draw.choice((0, 100, SECOND, 5 * SECOND, 30 * SECOND, 3 * MINUTE))

    def step(self, observations: list[Observation], sent: int | None = None) -> None:
        """`sent`: so many of its commands get out before the console is gone."""
        self.world.judge.heard(observations)
        self.witness.hear(observations)
        step = self.engine.step(self.now, observations)
        self.ticks.append(Tick(self.now, observations, step))
        require(self.engine.state, self.witness)
        self.world.take(step, sent)
        self.world.forgotten_but(self.engine.state.hosts)

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
        """One thing that somebody asks for, often a submission, or nothing."""
        if self.draw.randrange(100) >= 75:
            return []
        (ask,) = self.draw.choices(list(ASKS), weights=list(ASKS.values()))
        return ask(self)

    def _submit(self) -> list[Observation]:
        """Now and then under an id that was used before, which may be forgotten by now."""
        known = self.world.judge.declared
        if known and self.draw.randrange(30) == 0:
            return [WorkloadSubmitted(replace(self.draw.choice(list(known.values())), submitted_at=self.now))]
        self.submitted += 1
        return [WorkloadSubmitted(random_workload(self.draw, self.submitted, self.now, self.leaves, self.fleet))]

    def _inventory(self) -> list[Observation]:
        """Somebody edits a weight, a cap or the knobs; now and then a host has left, or is back."""
        self.tree = edited(self.draw, self.tree)
        if self.draw.randrange(4) == 0:
            self.policy = random_policy(self.draw)
        fleet = self.fleet[:-1] if self.draw.randrange(4) == 0 else self.fleet
        return [ReloadRequested("drill", OPERATOR), InventoryLoaded(self.policy, self.tree, fleet)]

    def _refused(self) -> list[Observation]:
        """The leader would not have it; the engine only hears of it."""
        return [RequestRefused("HoldRequested", self._workload(), "it is running, not waiting", OPERATOR)]

    def _reset(self) -> list[Observation]:
        return [BreakerReset(OPERATOR)]

    # -- of hosts --------------------------------------------------------------------------------------------------

    def _host(self) -> HostName:
        return self.draw.choice(self.fleet).name

    def _cordon(self) -> list[Observation]:
        return [CordonRequested(self._host(), OPERATOR, self._until())]

    def _until(self) -> int | None:
        return self.draw.choice((None, self.now + self.draw.randrange(30 * MINUTE)))

    def _undrain(self) -> list[Observation]:
        return [UndrainRequested(self._host(), OPERATOR)]

    def _drain(self) -> list[Observation]:
        mode: Any = self.draw.choice(("contract", "contract", "finish", "now"))
        deadline = self.now + 10 * MINUTE if mode == "finish" else None
        return [DrainRequested(self._drain_id(), self._host(), OPERATOR, mode, deadline)]

    def _drain_id(self) -> DrainId:
        """Now and then one that is taken."""
        taken = list(self.engine.state.drains)
        return self.draw.choice(taken) if taken and self.draw.random() < 0.1 else DrainId(f"d{len(self.ticks)}")

    def _propose(self) -> list[Observation]:
        asked = AutoDrainProposed(self._drain_id(), self._host(), "XID 79", self.draw.random() < 0.5)
        return [asked if self.clock.randrange(3) else AutoDrainWithdrawn(asked.host, "it is well again")]

    def _repair(self) -> list[Observation]:
        to: Any = self.draw.choice(("repairing", "verifying", "verify_failed"))
        return [HostAdvanced(self._host(), to, OPERATOR)]

    def _declare_empty(self) -> list[Observation]:
        return [HostDeclared(self._host(), "empty", OPERATOR)]

    def _declare_dead(self) -> list[Observation]:
        """An operator declares a silent host dead, and is sometimes wrong: then its processes live on, disowned."""
        silent = [h for h in self.world.hosts.values() if not h.reachable]
        if not silent:
            return []
        host = self.draw.choice(silent)
        if self.draw.random() < 0.5:
            self.world.reboot(host)
        known = self.engine.state.hosts.get(host.name)
        for run in known.runs if known is not None else ():
            host.burnt[run] = None  # what was on its way does not start
        for process in host.processes.values():
            process.disowned = process.disowned or known is not None
        return [HostDeclared(host.name, "dead", OPERATOR)]

    # -- of workloads ----------------------------------------------------------------------------------------------

    def _workload(self) -> WorkloadId:
        return self.draw.choice(sorted(self.engine.state.workloads) or [WorkloadId("w0")])

    def _cancel(self) -> list[Observation]:
        return [CancelRequested(self._workload(), OPERATOR)]

    def _requeue(self) -> list[Observation]:
        return [RequeueRequested(self._workload(), OPERATOR, override=self.draw.random() < 0.3)]

    def _hold(self) -> list[Observation]:
        return [HoldRequested(self._workload(), OPERATOR, self._until())]

    def _release(self) -> list[Observation]:
        return [ReleaseRequested(self._workload(), OPERATOR)]

    def _move(self) -> list[Observation]:
        budget, priority = self.draw.choice((None, self.draw.choice(self.leaves))), self.draw.choice((None, 0, 1))
        return [WorkloadMoved(self._workload(), OPERATOR, budget, priority)]

    # -- of budgets ------------------------------------------------------------------------------------------------

    def _budget(self) -> BudgetId:
        return self.draw.choice(self.tree).id

    def _weight(self) -> list[Observation]:
        return [WeightChanged(self._budget(), self.draw.choice((0, 1, 4)) * WEIGHT, OPERATOR)]

    def _forget(self) -> list[Observation]:
        return [UsageForgotten(self._budget(), OPERATOR)]


ASKS: dict[Callable[[Scenario], list[Observation]], int] = {
    Scenario._submit: 45,
    Scenario._inventory: 2,
    Scenario._reset: 1,
    Scenario._refused: 1,
    Scenario._cordon: 3,
    Scenario._undrain: 5,
    Scenario._drain: 5,
    Scenario._propose: 1,
    Scenario._repair: 2,
    Scenario._declare_empty: 1,
    Scenario._declare_dead: 2,
    Scenario._cancel: 3,
    Scenario._requeue: 3,
    Scenario._hold: 2,
    Scenario._release: 1,
    Scenario._move: 2,
    Scenario._weight: 1,
    Scenario._forget: 1,
}


def run(seed: int, steps: int, faults: Faults = USUAL) -> Scenario:
    """The whole world of a seed, so many steps on. Raises InvariantBroken with seed and step."""
    scenario = Scenario(seed, faults)
    scenario.run(steps)
    return scenario
