"""A fleet that answers commands, with delays and faults drawn from one seed. It keeps its own truth, and checks
the engine by it.

Hosts start tokens at most once, stop by rule 13, lose their network, reboot, hang, and hold GPUs too long. What
the engine may
never do is checked here, against what really happened: two live attempts of a workload, or an early stop of a
protected run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from scheduler_core.commands import Command, StartMember, StopMember
from scheduler_core.errors import InvariantBroken
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import (
    HostSeen,
    HostUnreachable,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    Observation,
)
from scheduler_core.units import MINUTE, SECOND


@dataclass(slots=True)
class Process:
    """One member of a run as it really is on its host."""

    run: RunId
    workload: WorkloadId
    began_at: int
    ends_at: int
    exit_code: int = 0
    stopping: bool = False
    alive: bool = True
    holding: bool = True


@dataclass(slots=True)
class SimHost:
    name: HostName
    boot: int = 1
    reachable: bool = True
    processes: dict[RunId, Process] = field(default_factory=dict)
    burnt: dict[RunId, None] = field(default_factory=dict)

    @property
    def boot_id(self) -> str:
        return f"{self.name}-boot{self.boot}"


@dataclass(frozen=True, slots=True)
class Faults:
    """How often things go wrong, in events per thousand steps of the world, and what a command may meet."""

    cut: int = 8
    reboot: int = 4
    lose_command: int = 30
    fail_start: int = 10
    fail_run: int = 60
    slow_stop: int = 20


class World:
    """The fleet. `advance` moves it to an instant and returns what it reports."""

    def __init__(self, seed: int, hosts: dict[HostName, int], faults: Faults = Faults()) -> None:
        self.draw = Random(seed)
        self.hosts = {name: SimHost(name) for name in hosts}
        self.faults = faults
        self.now = 0
        self._heap: list[tuple[int, int, str, HostName, RunId]] = []
        self._count = 0
        self._reports: list[Observation] = []
        self.minimum: dict[RunId, int] = {}  # min runtime by run, 0 when not protected
        self.excused: dict[RunId, None] = {}  # runs that may be stopped early: their owner or an operator said so

    # -- commands --------------------------------------------------------------------------------------------------

    def send(self, command: Command) -> None:
        """A command may be lost on the way; the engine finds out by looking again."""
        if isinstance(command, StartMember | StopMember):
            host = self.hosts[command.host]
            if not host.reachable or self._chance(self.faults.lose_command):
                return
            at = self.now + self.draw.randrange(50, 3 * SECOND)
            kind = "start" if isinstance(command, StartMember) else "stop"
            if isinstance(command, StopMember):
                self._check_contract(host, command)
            self._push(at, kind, command.host, command.run)

    def _check_contract(self, host: SimHost, command: StopMember) -> None:
        """A stop that the machine decided may not come before the minimum, by the world's own clock."""
        process = host.processes.get(command.run)
        if process is None or command.run in self.excused or command.min_ran_ms == 0:
            return
        if process.alive and self.now - process.began_at < command.min_ran_ms:
            raise InvariantBroken(f"{command.run} is stopped after {self.now - process.began_at} ms: {command.reason}")

    def _push(self, at: int, kind: str, host: HostName, run: RunId) -> None:
        self._count += 1
        heappush(self._heap, (at, self._count, kind, host, run))

    def _chance(self, per_thousand: int) -> bool:
        return self.draw.randrange(1000) < per_thousand

    # -- time ------------------------------------------------------------------------------------------------------

    def next_at(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def advance(self, now: int) -> list[Observation]:
        """Everything that happens up to `now`, and what the reachable hosts report of it."""
        while self._heap and self._heap[0][0] <= now:
            self.now, _, kind, name, run = heappop(self._heap)
            getattr(self, f"_{kind}")(self.hosts[name], run)
        self.now = now
        reports, self._reports = self._reports, []
        return reports

    def _report(self, host: SimHost, observation: Observation) -> None:
        if host.reachable:
            self._reports.append(observation)

    def _start(self, host: SimHost, run: RunId) -> None:
        if run in host.burnt or not host.reachable:
            return  # a token starts at most once
        host.burnt[run] = None
        if self._chance(self.faults.fail_start):
            self._report(host, MemberNeverStarted(run, host.name, "cannot start"))
            return
        workload = WorkloadId(run.rpartition("~")[0])
        self._check_single(workload, run)
        runtime = self.draw.randrange(5 * SECOND, 40 * MINUTE)
        failed = self._chance(self.faults.fail_run)
        process = Process(run, workload, self.now, self.now + runtime, int(failed))
        host.processes[run] = process
        self._report(host, MemberStarted(run, host.name))
        self._push(process.ends_at, "exit", host.name, run)

    def _check_single(self, workload: WorkloadId, run: RunId) -> None:
        for host in self.hosts.values():
            for process in host.processes.values():
                if process.alive and process.workload == workload and process.run != run:
                    raise InvariantBroken(f"{run} starts on while {process.run} lives on {host.name}")

    def _stop(self, host: SimHost, run: RunId) -> None:
        process = host.processes.get(run)
        if process is None:
            if run not in host.burnt:
                host.burnt[run] = None
            self._report(host, MemberNeverStarted(run, host.name, "stopped before it started"))
        elif process.alive and not process.stopping:
            process.stopping = True
            longest = 30 * MINUTE if self._chance(self.faults.slow_stop) else 90 * SECOND
            self._push(self.now + self.draw.randrange(1, longest), "exit", host.name, run)

    def _exit(self, host: SimHost, run: RunId) -> None:
        process = host.processes.get(run)
        if process is None or not process.alive:
            return
        process.alive = False
        process.exit_code = self.draw.choice((0, 143, 137)) if process.stopping else process.exit_code
        self._report(host, MemberExited(run, host.name, process.exit_code, None, process.stopping))
        self._push(self.now + self.draw.randrange(0, 5 * SECOND), "release", host.name, run)

    def _release(self, host: SimHost, run: RunId) -> None:
        process = host.processes.get(run)
        if process is not None and process.holding:
            process.holding = False
            self._report(host, MemberReleased(run, host.name))

    # -- faults ----------------------------------------------------------------------------------------------------

    def misfortune(self) -> list[Observation]:
        """One draw of what may go wrong now; what the console notices of it."""
        host = self.draw.choice(list(self.hosts.values()))
        if host.reachable and self._chance(self.faults.cut):
            host.reachable = False
            return [HostUnreachable(host.name, "timed out")]
        if self._chance(self.faults.reboot):
            host.boot += 1
            host.processes.clear()  # the kernel's end is theirs
        elif host.reachable or not self._chance(300):
            return []
        return self.reconnect(host.name)

    def reconnect(self, name: HostName) -> list[Observation]:
        """The host answers again: what it is, and what of its runs it knows."""
        host = self.hosts[name]
        host.reachable = True
        return [self.seen(name), *self.listing(name)]

    def seen(self, name: HostName) -> HostSeen:
        host = self.hosts[name]
        empty = not any(p.alive or p.holding for p in host.processes.values())
        return HostSeen(name, host.boot_id, empty=empty)

    def listing(self, name: HostName) -> list[Observation]:
        """What the host says of every token it knows, as after a reconnect."""
        host, found = self.hosts[name], list[Observation]()
        for run, process in host.processes.items():
            found.append(MemberStarted(run, name, self.now - process.began_at))
            if not process.alive:
                found.append(MemberExited(run, name, process.exit_code, None, process.stopping))
            if not process.holding:
                found.append(MemberReleased(run, name))
        return found

    def resend(self, command: Command) -> list[Observation]:
        """The shell looks again: what the host does not know is sent again, what it knows is reported."""
        if not isinstance(command, StartMember | StopMember):
            return []
        host = self.hosts[command.host]
        known = command.run in host.burnt
        if isinstance(command, StartMember) and known:
            if command.run in host.processes:
                return []
            return [MemberNeverStarted(command.run, command.host, "gone before it could be seen")]
        self.send(command)
        return []
