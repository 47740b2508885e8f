"""A fleet that answers commands, with delays and faults drawn from one seed. It keeps its own truth.

Hosts start tokens at most once, stop by rule 13, lose their network, reboot, hang, and hold GPUs too long. A judge
looks at what the engine does by what really happened here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from random import Random

from scheduler_core.commands import Command, FenceHost, StartMember, StopMember
from scheduler_core.engine import Step
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import (
    HostFenced,
    HostSeen,
    HostUnreachable,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    Observation,
)
from scheduler_core.sim.clock import Agenda
from scheduler_core.sim.faults import USUAL, Faults
from scheduler_core.sim.hosts import Process, SimHost
from scheduler_core.sim.judge import Judge
from scheduler_core.units import HOUR, MINUTE, SECOND

KEPT_MS = 2 * HOUR  # so long a host tells of runs that are over and that the console has heard the end of


class World:
    """The fleet. `advance` moves it to an instant and returns what it reports."""

    nobody = RunId("")

    def __init__(self, seed: int, hosts: dict[HostName, int], faults: Faults = USUAL) -> None:
        self.draw = Random(seed)
        self.hosts = {name: SimHost(name, gpus) for name, gpus in hosts.items()}
        self.faults = faults
        self.now = 0
        self.injected = Counter[str]()  # faults by kind
        self.longest_ms = 40 * MINUTE  # of what runs, by itself
        self.epoch = 1  # of the console that leads
        self.agenda = Agenda()
        self.judge = Judge(self)
        self._reports: list[Observation] = []

    # -- commands --------------------------------------------------------------------------------------------------

    def take(self, step: Step, sent: int | None = None) -> None:
        """What the engine decided is judged, what it asks for is sent: all of it, or so many commands of it."""
        self.judge.decided(step)
        for command in step.commands[:sent]:
            self.send(command)

    def send(self, command: Command) -> None:
        """A command may be lost on the way; the engine finds out by looking again."""
        host = self.hosts[command.host]
        if isinstance(command, FenceHost):
            host.fence = command.id
            self.agenda.push(self.now + self.draw.randrange(SECOND, MINUTE), "fence", host.name, self.nobody)
            return
        if isinstance(command, StopMember):
            self.judge.sent(host, command)
        if not host.reachable or self.chance("lose_command"):
            return
        for _ in range(1 + self.chance("repeat_command")):
            self._arrives(command, host.link)

    def _arrives(self, command: StartMember | StopMember, link: int, earlier: str = "") -> None:
        host, at = self.hosts[command.host], self.now + self.draw.randrange(50, 3 * SECOND)
        if isinstance(command, StartMember):
            host.slots[command.run] = command.slots
        kind = "start" if isinstance(command, StartMember) else "stop"
        self.agenda.push(at, earlier + kind, command.host, command.run, link)

    def taken_over(self, outstanding: Iterable[Command]) -> None:
        """Another console leads from now on. The one before goes on sending what it had decided, over links of its
        own, which last as long as the host is up: hosts that have heard of the new one refuse it."""
        self.epoch += 1
        for command in outstanding:
            if not isinstance(command, FenceHost) and self.hosts[command.host].reachable:
                self._arrives(command, -self.hosts[command.host].boot, "late_")

    def _late_start(self, host: SimHost, run: RunId) -> None:
        if not host.fenced(self.epoch):
            self._start(host, run)

    def _late_stop(self, host: SimHost, run: RunId) -> None:
        if not host.fenced(self.epoch):
            self._stop(host, run)

    def chance(self, fault: str, draw: Random | None = None) -> bool:
        """Does it strike now? Counted by its kind."""
        per_thousand: int = getattr(self.faults, fault)
        struck = per_thousand > 0 and (draw or self.draw).randrange(1000) < per_thousand
        self.injected[fault] += struck
        return struck

    # -- time ------------------------------------------------------------------------------------------------------

    def advance(self, now: int) -> list[Observation]:
        """Everything that happens up to `now`, and what the reachable hosts report of it."""
        while (event := self.agenda.pop_until(now)) is not None:
            self.now = event.at
            host = self.hosts[event.host]
            if event.link in (0, host.link, -host.boot):
                getattr(self, f"_{event.kind}")(host, event.run)
        self.now = now
        reports, self._reports = self._reports, []
        return reports

    def _report(self, host: SimHost, observation: Observation) -> None:
        if not host.reachable:
            return
        if host.late or host.lag_until > self.now:
            if not host.late:
                self.agenda.push(host.lag_until, "deliver", host.name, self.nobody, host.link)
            host.late.append(observation)
        else:
            self._reports.append(observation)

    def _deliver(self, host: SimHost, run: RunId) -> None:
        self._reports += host.late
        host.late.clear()

    def _fresh(self, host: SimHost, run: RunId) -> None:
        host.stale = False
        self._report(host, self.seen(host.name))

    def _start(self, host: SimHost, run: RunId) -> None:
        if run in host.burnt:
            return  # a token starts at most once
        host.burnt[run] = None
        if self.chance("fail_start"):
            self._report(host, MemberNeverStarted(run, host.name, "cannot start"))
            return
        workload = WorkloadId(run.rpartition("~")[0])
        process = Process(run, workload, host.slots[run], self.now)
        self.judge.start(host, process)
        host.processes[run] = process
        self._report(host, MemberStarted(run, host.name))
        self._plan_end(host, process)

    def _plan_end(self, host: SimHost, process: Process) -> None:
        """How long it would run, and how it ends by itself: well, badly, or so that nobody knows."""
        runtime = self.draw.choice((0, self.draw.randrange(5 * SECOND), self.draw.randrange(self.longest_ms)))
        process.exit_code = None if self.chance("vanish") else int(self.chance("fail_run"))
        declared = self.judge.declared.get(process.workload)
        limit = declared.time_limit_ms if declared is not None else None
        if limit is not None and runtime > limit:
            self.agenda.push(self.now + limit, "stop", host.name, process.run)
        self.agenda.push(self.now + runtime, "exit", host.name, process.run)

    def _stop(self, host: SimHost, run: RunId) -> None:
        process = host.processes.get(run)
        if process is None:
            if run not in host.burnt:
                host.burnt[run] = None
            self._report(host, MemberNeverStarted(run, host.name, "stopped before it started"))
        elif process.alive and not process.stopping:
            process.stopping = True
            longest = 30 * MINUTE if self.chance("slow_stop") else 90 * SECOND
            self.agenda.push(self.now + self.draw.randrange(1, longest), "exit", host.name, run)

    def _exit(self, host: SimHost, run: RunId) -> None:
        process = host.processes.get(run)
        if process is None or not process.alive:
            return
        process.alive = False
        process.exit_code = self.draw.choice((0, 143, 137)) if process.stopping else process.exit_code
        self._report(host, MemberExited(run, host.name, process.exit_code, None, process.stopping))
        longest = 40 * MINUTE if self.chance("leak") else 5 * SECOND
        self.agenda.push(self.now + self.draw.randrange(longest), "release", host.name, run)

    def _release(self, host: SimHost, run: RunId) -> None:
        process = host.processes.get(run)
        if process is not None and process.holding:
            process.holding, process.freed_at = False, self.now
            self._report(host, MemberReleased(run, host.name))
            if not host.stale:
                self._report(host, self.seen(host.name))

    def _fence(self, host: SimHost, run: RunId) -> None:
        """Powered off, which whoever is connected notices; confirmed later, when the host may be back."""
        if host.reachable:
            self._reports.append(HostUnreachable(host.name, "no route"))
        self.reboot(host)
        self.agenda.push(self.now + self.draw.randrange(5 * MINUTE), "fenced", host.name, self.nobody)

    def _fenced(self, host: SimHost, run: RunId) -> None:
        if host.fence is not None:
            self._reports.append(HostFenced(host.name, host.fence))

    # -- what the console sees of hosts ----------------------------------------------------------------------------

    def cut(self, host: SimHost) -> None:
        """The connection is gone, with everything that was on its way."""
        host.reachable, host.stale, host.lag_until = False, False, 0
        host.link += 1
        host.late.clear()

    def reboot(self, host: SimHost) -> None:
        """All processes end with the kernel; it comes back under another boot id when somebody connects."""
        self.cut(host)
        host.boot += 1
        host.processes.clear()

    def reconnect(self, name: HostName) -> list[Observation]:
        """The host answers again, as the console hears it: first what it knows of runs, then what it is."""
        self.hosts[name].reachable, self.hosts[name].epoch = True, self.epoch
        return [*self.listing(name), self.seen(name)]

    def seen(self, name: HostName) -> HostSeen:
        host = self.hosts[name]
        holding = [process for process in host.processes.values() if process.holding]
        foreign = host.foreign
        for process in holding:
            foreign |= process.slots if process.stranger else 0
        empty = not foreign and not holding
        return HostSeen(name, host.boot_id, foreign=foreign, unfit=host.unfit, empty=empty)

    def forgotten_but(self, known: Collection[HostName]) -> None:
        """A host that left the inventory takes along what was known of its runs."""
        for name in [name for name in self.hosts if name not in known]:
            for process in self.hosts[name].processes.values():
                process.stranger = True

    def listing(self, name: HostName) -> list[Observation]:
        """What the host says of every token it knows, as after a reconnect."""
        host, found, heard = self.hosts[name], list[Observation](), self.judge.released
        past = [(r, p) for r, p in host.processes.items() if not p.holding and (r, name) in heard]
        for run in [run for run, process in past if process.freed_at < self.now - KEPT_MS]:
            del host.processes[run]
        for run, process in host.processes.items():
            found.append(MemberStarted(run, name, self.now - process.began_at))
            if not process.alive:
                found.append(MemberExited(run, name, process.exit_code, None, process.stopping))
            if not process.holding:
                found.append(MemberReleased(run, name, self.now - process.freed_at))
        return found

    def resend(self, command: Command) -> list[Observation]:
        """The shell looks again: what the host does not know is sent again, what it knows is reported."""
        if isinstance(command, FenceHost):
            return []
        host = self.hosts[command.host]
        known = command.run in host.burnt
        if isinstance(command, StartMember) and known and host.reachable:
            if command.run in host.processes:
                return []
            return [MemberNeverStarted(command.run, command.host, "gone before it could be seen")]
        self.send(command)
        return []
