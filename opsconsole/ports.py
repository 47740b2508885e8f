"""What the live loop needs from the world. Adapters implement these; runtime imports nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from scheduler_core.commands import Command
from scheduler_core.decisions import Decision
from scheduler_core.observations import Observation


class Clock(Protocol):
    """Instants in ms. `now` never goes back, survives NTP steps and suspends (boot-time clock), and restarts where
    it was."""

    def now(self) -> int: ...


class Sensor(Protocol):
    """Where observations come from: probes, run events, reconciliation."""

    async def next_batch(self, timeout_s: float) -> Sequence[Observation]: ...


class Effector(Protocol):
    """Carries a command out. Returns when it was handed over; its outcome comes back through the sensor."""

    def send(self, command: Command) -> None: ...


class Journal(Protocol):
    """Commits one tick durably before any effect of it starts (journal first)."""

    def commit(
        self, now: int, observations: Sequence[Observation], decisions: Sequence[Decision], commands: Sequence[Command]
    ) -> int: ...
