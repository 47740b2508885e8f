"""A world in which hosts fail: at random, one by one, for as long as a repair takes. Runs there die with them.

The engine hears that the host is unreachable, counts it as lost after `lost_after`, asks for its power to be cut, and
starts elsewhere what is then known dead (rule 27); the other members of a gang it stops. A host that returns has
booted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from opsconsole.simulating.replay import ENDS, SIGTERM_EXIT, STARTS, Attempt, World
from opsconsole.simulating.rules import Rules
from opsconsole.simulating.workloads import Stream
from scheduler_core.commands import FenceHost
from scheduler_core.engine import Step
from scheduler_core.fleet import Host
from scheduler_core.ids import CommandId, HostName, RunId
from scheduler_core.observations import (
    HostFenced,
    HostSeen,
    HostUnreachable,
    MemberExited,
    MemberReleased,
    MemberStarted,
    Observation,
)
from scheduler_core.policy import Policy
from scheduler_core.units import DAY, GPU, MINUTE
from scheduler_core.workload import WorkloadPhase

FAILS, RETURNS, FENCED = range(10, 13)
FENCE_MS = MINUTE  # until the power is known to be off


@dataclass(slots=True)
class Broken:
    """A run under which hosts failed: which, how many GPUs it holds since when, and GPUs x ms that it held before."""

    held: int
    since: int
    gpu_ms: int = 0
    hosts: dict[HostName, None] = field(default_factory=dict)

    def holds(self, at: int, gpus: int) -> None:
        self.gpu_ms += self.held * (at - self.since)
        self.held, self.since = gpus, at


class FaultyWorld(World):
    """`rate`: failures of a host in a day that it serves."""

    def __init__(
        self,
        stream: Stream,
        hosts: Sequence[Host],
        policy: Policy,
        rules: Rules,
        begin: int,
        rate: float,
        seed: int,
    ) -> None:
        super().__init__(stream, hosts, policy, rules, begin)
        self.rate, self.draw = rate, Random(f"{seed} faults")
        self.boots = {host.name: 1 for host in hosts}
        self.down: dict[HostName, CommandId | None] = {}  # with the power-off that was asked for
        self.broken: dict[RunId, Broken] = {}
        for host in hosts:
            self._fails_later(begin, host.name)

    def _fails_later(self, at: int, host: HostName) -> None:
        self._push(at + max(1, round(self.draw.expovariate(self.rate) * DAY)), FAILS, host)

    def _goes_on(self, wake: int | None) -> bool:
        """That hosts will fail is nothing to wait for."""
        return bool(self.attempts or self.down) or wake is not None

    def _happen(self, at: int, number: int, kind: int, name: str) -> list[Observation]:
        host, run = HostName(name), RunId(name)
        if kind == FAILS:
            return self._fails(at, host)
        if kind == RETURNS:
            return self._returns(at, host)
        if kind == FENCED:
            command = self.down.get(host)
            return [HostFenced(host, command)] if command is not None else []
        if run in self.broken:
            return self._of_broken(at, kind, run)
        return super()._happen(at, number, kind, name)

    def _fails(self, at: int, host: HostName) -> list[Observation]:
        self.down[host] = None
        self._push(at + self.rules.repair_ms, RETURNS, host)
        for run, attempt in self.attempts.items():
            if any(member.host == host for member in attempt.members):
                if run not in self.broken:
                    self.outcome.interrupted[attempt.number] += 1
                    attempt.stop_at = at if attempt.stop_at is None else attempt.stop_at
                    self.broken[run] = Broken(self.stream.workloads[attempt.number].gpus, attempt.placed_at)
                self.broken[run].hosts[host] = None
        return [HostUnreachable(host, "it failed")]

    def _returns(self, at: int, host: HostName) -> list[Observation]:
        del self.down[host]
        self.boots[host] += 1
        self._fails_later(at, host)
        return [HostSeen(host, f"boot{self.boots[host]}", empty=True)]

    def _of_broken(self, at: int, kind: int, run: RunId) -> list[Observation]:
        """Members on other hosts start, hang, and stop when they are told to."""
        alive = [m.host for m in self.attempts[run].members if m.host not in self.broken[run].hosts]
        if kind == ENDS:
            return []
        if kind == STARTS:
            return [MemberStarted(run, host) for host in alive]
        exits: list[Observation] = [MemberExited(run, host, SIGTERM_EXIT, None, True) for host in alive]
        return [*exits, *(MemberReleased(run, host) for host in alive)]

    def _follow(self, at: int, step: Step) -> None:
        super()._follow(at, step)
        for command in step.commands:
            if isinstance(command, FenceHost) and command.host in self.down:
                self.down[command.host] = command.id
                self._push(at + FENCE_MS, FENCED, command.host)
        state = self.engine.state
        for run, broken in list(self.broken.items()):
            live = state.runs.get(run)
            gpus = live.gpus if live is not None else 0
            if gpus != broken.held:
                w = self.stream.workloads[self.attempts[run].number]
                self.outcome.meter.holds(w.budget, at, gpus - broken.held, w.allocated)
                broken.holds(at, gpus)
            if live is None:
                self._known_dead(at, run, self.attempts.pop(run))
        self.outcome.meter.serves(at, state.ledgers.service.rate // GPU)

    def _known_dead(self, at: int, run: RunId, attempt: Attempt) -> None:
        """All of it has gone, as the engine knows; what is left of the work waits again, or ended."""
        number, outcome = attempt.number, self.outcome
        w = self.stream.workloads[number]
        self._event(at, "release", w.id, run)
        kept = self._kept_ms(attempt) if w.resumable else 0
        self.left_ms[number] -= kept
        outcome.lost_to_faults_gpu_ms[number] += self.broken.pop(run).gpu_ms - w.gpus * kept
        record = self.engine.state.workloads[w.id]
        if record.phase is WorkloadPhase.ENDED:
            self._over(at, run, number)
