"""What the engine may never do, judged by what really happened on the hosts and not by what the engine believes.

Two live attempts of a workload, two processes on one GPU (rule 27), every stop that the machine decides against a
guarantee (rule 11): the cause that a stop names must be true of the world; and promises that are not kept (rule 21).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler_core.commands import StartMember, StopMember
from scheduler_core.decisions import Claimed, Placed, StopCause, StopDecided
from scheduler_core.engine import Step
from scheduler_core.errors import InvariantBroken
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import (
    CancelRequested,
    DrainRequested,
    MemberExited,
    MemberReleased,
    MemberStarted,
    Observation,
    RequeueRequested,
    WorkloadSubmitted,
)
from scheduler_core.sim.promises import Promises
from scheduler_core.workload import Workload

if TYPE_CHECKING:
    from scheduler_core.sim.hosts import Process, SimHost
    from scheduler_core.sim.world import World


@dataclass
class Judge:
    """Hears what people ask for and what hosts report, as the engine does, and sees what it decides."""

    world: World
    declared: dict[WorkloadId, Workload] = field(default_factory=dict)
    cancelled: dict[WorkloadId, None] = field(default_factory=dict)
    excused: dict[RunId, None] = field(default_factory=dict)  # an operator's override
    gangs: dict[RunId, tuple[HostName, ...]] = field(default_factory=dict)
    newest: dict[WorkloadId, RunId] = field(default_factory=dict)
    told: dict[tuple[RunId, HostName], None] = field(default_factory=dict)  # starts that the console has heard of
    released: dict[tuple[RunId, HostName], None] = field(default_factory=dict)  # ends that it has heard of
    guards: dict[RunId, int] = field(default_factory=dict)  # the least that a stop's `min_ran_ms` must be

    def __post_init__(self) -> None:
        self.promises = Promises(self)

    def heard(self, observations: Iterable[Observation]) -> None:
        """Before the engine acts on them."""
        for fact in observations:
            self.promises.heard(fact)
            match fact:
                case WorkloadSubmitted(workload):
                    self.declared.setdefault(workload.id, workload)
                case CancelRequested(wid):
                    self.cancelled[wid] = None
                case RequeueRequested(wid, override=True) if wid in self.newest:
                    self.excused[self.newest[wid]] = None
                case DrainRequested(host=host, mode="now"):
                    self.excused |= {run: None for run, gang in self.gangs.items() if host in gang}
                case MemberStarted(run, host) | MemberExited(run, host):
                    self.told[run, host] = None
                case MemberReleased(run, host):
                    self.released[run, host] = None

    def decided(self, step: Step) -> None:
        """Before its commands are sent."""
        plans = {d.workload: d.waits_for for d in step.decisions if isinstance(d, Claimed)}
        for decision in step.decisions:
            if isinstance(decision, Placed) and decision.run in self.gangs:
                raise InvariantBroken(f"the token {decision.run} is issued twice")
            if isinstance(decision, StopDecided) and decision.cause is StopCause.PREEMPT:
                self._preempted(decision, plans)
        for command in step.commands:
            if isinstance(command, StartMember):
                self.gangs[command.run], self.newest[command.workload] = command.peers, command.run
        for decision in step.decisions:
            if isinstance(decision, StopDecided):
                self._stop(decision)
        self.promises.decided(step.decisions)

    def _preempted(self, stop: StopDecided, plans: dict[WorkloadId, tuple[RunId, ...]]) -> None:
        """Only for an allocated workload (rule 17), in a plan that starts it (rule 18), with the reason (rule 23)."""
        wid = stop.for_workload
        if wid is None or stop.run not in plans.get(wid, ()) or not self.declared[wid].allocated or not stop.reason:
            raise InvariantBroken(f"{stop.run} is preempted for {wid}, which has no plan with it: {stop.reason}")

    def start(self, host: SimHost, new: Process) -> None:
        """One live attempt of a workload, one process on a GPU."""
        for other in self.world.hosts.values():
            for process in other.processes.values():
                same = process.workload == new.workload and process.run != new.run
                if process.alive and same and not process.disowned:
                    raise InvariantBroken(f"{new.run} starts while {process.run} lives on {other.name}")
        for process in host.processes.values():
            if process.holding and process.slots & new.slots:
                raise InvariantBroken(f"{new.run} starts on GPUs of {host.name} that {process.run} still holds")

    def _stop(self, stop: StopDecided) -> None:
        """At the moment of its decision: is its cause true, and does it keep the contract?"""
        wid = WorkloadId(stop.run.rpartition("~")[0])
        if stop.run in self.excused or wid in self.cancelled:
            self.guards.pop(stop.run, None)
        elif wrong := self._wrong(stop, self.declared[wid]):
            raise InvariantBroken(f"{stop.run} is stopped by {stop.cause} ({stop.reason}): {wrong}")

    def _wrong(self, stop: StopDecided, workload: Workload) -> str:
        ran = [self.world.now - process.began_at for process in self._alive(stop.run)]
        started = all((stop.run, name) in self.told for name in self.gangs[stop.run])
        if stop.cause is StopCause.CANCEL or stop.override:
            return "nobody asked for it"
        if stop.cause is StopCause.START_TIMEOUT:
            return "all its members have reported their start" if started else ""
        if stop.cause is StopCause.TIME_LIMIT:
            limit = workload.time_limit_ms
            return f"it has run for {ran}" if limit is None or any(ms < limit for ms in ran) else ""
        if stop.cause is StopCause.GANG_BROKEN:
            return "every member is well" if all(self._well(stop.run, name) for name in self.gangs[stop.run]) else ""
        self.guards[stop.run] = workload.min_runtime_ms
        if workload.allocated and not started:
            return "it is protected: its start is not known yet"
        return f"it is protected after {ran}" if any(ms < workload.min_runtime_ms for ms in ran) else ""

    def sent(self, host: SimHost, command: StopMember) -> None:
        """The host's own guard goes with each stop that the machine decided."""
        process = host.processes.get(command.run)
        if process is None or not process.alive or process.disowned:
            return
        if command.min_ran_ms < self.guards.get(command.run, 0):
            raise InvariantBroken(f"{command.id} has no guard: {command.reason}")
        if self.world.now - process.began_at < command.min_ran_ms:
            raise InvariantBroken(f"{command.id} comes after {self.world.now - process.began_at} ms: {command.reason}")

    def _alive(self, run: RunId) -> Iterator[Process]:
        for name in self.gangs[run]:
            process = self.world.hosts[name].processes.get(run)
            if process is not None and process.alive and not process.disowned:
                yield process

    def _well(self, run: RunId, name: HostName) -> bool:
        """Nothing that could break a gang has happened to its member there."""
        host = self.world.hosts[name]
        process = host.processes.get(run)
        if process is None:
            return host.reachable and run not in host.burnt
        fine = process.alive or (process.exit_code == 0 and not process.stopping)
        return host.reachable and fine and not process.disowned
