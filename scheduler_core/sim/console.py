"""The process that leads, as it fails: it crashes at any point of a tick, or another one takes over from it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from scheduler_core.engine import Engine, Step
from scheduler_core.errors import InvariantBroken
from scheduler_core.image import from_image, to_image
from scheduler_core.observations import HostUnreachable, Observation
from scheduler_core.units import MINUTE, SECOND

if TYPE_CHECKING:
    from scheduler_core.sim.scenario import Scenario

SNAPSHOT_TICKS = 100  # between two of them


@dataclass
class Tick:
    """One entry of the journal."""

    now: int
    observations: list[Observation]
    step: Step


class Console:
    """Its snapshots, what goes wrong with it, and how it comes back."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.draw = Random(f"{scenario.seed} console")
        self.image, self.at = self._snapshot()

    def _snapshot(self) -> tuple[bytes, int]:
        """And how many ticks it has in it."""
        return pickle.dumps(to_image(self.scenario.engine.state)), len(self.scenario.ticks)

    def restart(self, away_ms: int, reaches_all: bool = True) -> None:
        """From the newest snapshot and the journal after it; what hosts report meanwhile nobody hears. Then it asks
        every host that it can reach, and sends again what has no outcome."""
        scenario, world = self.scenario, self.scenario.world
        recovered, before = Engine(from_image(pickle.loads(self.image))), scenario.engine
        for tick in scenario.ticks[self.at :]:
            recovered.fold(tick.now, tick.observations, tick.step.decisions)
        if to_image(recovered.state) != to_image(before.state) or recovered.outstanding() != before.outstanding():
            raise InvariantBroken("the journal gives another state than the one that was lost")
        scenario.engine = recovered
        self.image, self.at = self._snapshot()
        scenario.now += away_ms
        world.advance(scenario.now)
        found = list[Observation]()
        for host in world.hosts.values():
            answers = host.reachable and (reaches_all or self.draw.randrange(3) > 0)
            world.cut(host)
            found += world.reconnect(host.name) if answers else [HostUnreachable(host.name, "timed out")]
        scenario.step(found)
        scenario.look_again()

    def crash(self) -> None:
        self.restart(self.draw.choice((SECOND, 30 * SECOND, 20 * MINUTE)))

    def take_over(self) -> None:
        """The one before still sends what it had decided, also to hosts that the new one does not reach yet."""
        self.scenario.world.taken_over(self.scenario.engine.outstanding())
        self.restart(self.draw.randrange(SECOND), reaches_all=False)

    def keep(self) -> None:
        """A snapshot from time to time."""
        faults = self.scenario.faults
        if (faults.crash or faults.takeover) and len(self.scenario.ticks) - self.at >= SNAPSHOT_TICKS:
            self.image, self.at = self._snapshot()
