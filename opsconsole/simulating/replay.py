"""One replay: a stream of workloads through the engine that decides live, on a clock that jumps from event to event.

The hosts of this world do what they are told after fixed delays; a workload ends when the work is done that its log
says. What a preempted run had done since its last checkpoint is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

from opsconsole.simulating.meter import Meter
from opsconsole.simulating.rules import Rules
from opsconsole.simulating.workloads import Stream
from scheduler_core.commands import StartMember, StopMember
from scheduler_core.decisions import Member, Placed, StopCause, StopDecided
from scheduler_core.engine import Engine, Step
from scheduler_core.fleet import Host
from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import (
    HostSeen,
    InventoryLoaded,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    Observation,
    WorkloadSubmitted,
)
from scheduler_core.policy import Policy

STARTS, ENDS, STOPS = range(3)
SIGTERM_EXIT = 143
STEPS_BETWEEN_WORDS = 50
Progress = Callable[[float], bool]  # how much of it is done; False: nobody wants the rest


class Cancelled(Exception):
    """Nobody wants the rest of the replay."""


class Event(NamedTuple):
    """What happened, for notebooks. A run holds its GPUs from `place` to `release`; one that ended does not stop.

    `kind`: submit, place, start, preempt (decided, for whom and why), stop (decided otherwise), release, end (of the
    workload).
    """

    at: int
    kind: str
    workload: str
    run: str = ""
    members: tuple[Member, ...] = ()
    for_workload: str = ""
    reason: str = ""


@dataclass(slots=True)
class Attempt:
    """A run in this world. `number` is the place of its workload in the stream."""

    number: int
    members: tuple[Member, ...]
    placed_at: int
    begun_at: int | None = None
    stop_at: int | None = None  # when it was told to stop, or a host of it failed


@dataclass(slots=True)
class Outcome:
    """What came of a stream. By number of the workload: the first start (None: none), and when it ended."""

    stream: Stream
    meter: Meter
    begin: int
    end: int
    started_at: list[int | None]
    ended_at: list[int | None]
    preempted: list[int]  # how often
    lost_gpu_ms: list[int]  # held by runs that were stopped, and what they did there has to be done again
    lost_to_faults_gpu_ms: list[int]  # the same of runs whose host failed
    interrupted: list[int]  # how often that was
    steps: int = 0

    @classmethod
    def nothing_yet(cls, stream: Stream, meter: Meter, begin: int) -> Outcome:
        count = len(stream.workloads)
        never: list[list[int | None]] = [[None] * count for _ in range(2)]
        none: list[list[int]] = [[0] * count for _ in range(4)]
        return cls(stream, meter, begin, begin, never[0], never[1], none[0], none[1], none[2], none[3])


class World:
    def __init__(self, stream: Stream, hosts: Sequence[Host], policy: Policy, rules: Rules, begin: int) -> None:
        self.stream, self.rules = stream, rules
        self.engine = self.begins(hosts, policy, begin)
        self.heap: list[tuple[int, int, int, str]] = []  # when, number, what, of which run or host
        self.pushed = self.ended = 0
        self.attempts: dict[RunId, Attempt] = {}
        self.numbers = {w.id: number for number, w in enumerate(stream.workloads)}
        self.left_ms = list(stream.run_ms)
        meter = Meter(stream.tree, begin)
        self.outcome = Outcome.nothing_yet(stream, meter, begin)
        self.tell: list[Callable[[Event], None]] = []  # who hears of everything that happens
        meter.serves(begin, sum(host.gpus for host in hosts))

    def begins(self, hosts: Sequence[Host], policy: Policy, begin: int) -> Engine:
        """With every host empty and answering."""
        engine = Engine()
        engine.step(begin, [InventoryLoaded(policy, self.stream.tree.budgets, tuple(hosts))])
        engine.step(begin, [HostSeen(host.name, "boot") for host in hosts])
        return engine

    def run(self, until: int | None, progress: Progress) -> Outcome:
        """To the end of the period, or until everything has ended. Raises Cancelled."""
        workloads, engine, heap, outcome = self.stream.workloads, self.engine, self.heap, self.outcome
        arrived, count, at = 0, len(workloads), outcome.begin
        while True:
            if self._is_over():
                break
            instants = [heap[0][0]] if heap else []
            if arrived < count:
                instants.append(workloads[arrived].submitted_at)
            if (wake := engine.next_wakeup()) is not None:
                instants.append(wake)
            if not instants or (arrived == count and not self._goes_on(wake)):
                break  # what waits now waits for ever
            at = max(at, min(instants))
            if until is not None and at >= until:
                break
            facts: list[Observation] = []
            while heap and heap[0][0] <= at:
                facts += self._happen(*heappop(heap))
            while arrived < count and workloads[arrived].submitted_at <= at:
                facts.append(self._arrive(arrived))
                arrived += 1
            self._follow(at, engine.step(at, facts))
            outcome.steps += 1
            if outcome.steps % STEPS_BETWEEN_WORDS == 0 and not progress(self.ended / count):
                raise Cancelled
        outcome.end = at if until is None else until
        outcome.meter.close(outcome.end)
        return outcome

    def _is_over(self) -> bool:
        """What is left of the heap is about runs that were stopped."""
        return self.ended == len(self.stream.workloads)

    def _goes_on(self, wake: int | None) -> bool:
        """Can anything still come of what is on the heap, or of time?"""
        return bool(self.heap) or wake is not None

    def _event(self, at: int, kind: str, workload: str, run: str = "", *more: Any) -> None:
        for tell in self.tell:
            tell(Event(at, kind, workload, run, *more))

    # -- what the engine decided ----------------------------------------------------------------------------------

    def _follow(self, at: int, step: Step) -> None:
        for decision in step.decisions:
            if isinstance(decision, Placed):
                self._placed(at, decision)
            elif isinstance(decision, StopDecided):
                self._stop_decided(at, decision)
        for command in step.commands:
            if isinstance(command, StartMember) and command.rank == 0:
                self._push(at + self.rules.start_delay_ms, STARTS, command.run)
            elif isinstance(command, StopMember) and self._is_first(command):
                self._push(at + self.rules.stop_delay_ms, STOPS, command.run)

    def _is_first(self, command: StopMember) -> bool:
        """A run stops whole, with its first member; one that this world does not know stops nowhere."""
        attempt = self.attempts.get(command.run)
        return attempt is not None and command.host == attempt.members[0].host

    def _push(self, at: int, kind: int, name: str) -> None:
        self.pushed += 1
        heappush(self.heap, (at, self.pushed, kind, name))

    def _placed(self, at: int, decision: Placed) -> None:
        number = self.numbers[decision.workload]
        w = self.stream.workloads[number]
        self.attempts[decision.run] = Attempt(number, decision.members, at)
        self.outcome.meter.holds(w.budget, at, w.gpus, w.allocated)
        self._event(at, "place", w.id, decision.run, decision.members)

    def _stop_decided(self, at: int, decision: StopDecided) -> None:
        attempt = self.attempts[decision.run]
        attempt.stop_at = at if attempt.stop_at is None else attempt.stop_at
        if decision.cause is StopCause.PREEMPT:
            self.outcome.preempted[attempt.number] += 1
        w = self.stream.workloads[attempt.number]
        kind = "preempt" if decision.cause is StopCause.PREEMPT else "stop"
        self._event(at, kind, w.id, decision.run, (), decision.for_workload or "", decision.reason)

    # -- what happens to hosts and workloads ----------------------------------------------------------------------

    def _arrive(self, number: int) -> Observation:
        w = self.stream.workloads[number]
        if w.allocated:
            self.outcome.meter.wants(w.budget, w.submitted_at, w.gpus)
        self._event(w.submitted_at, "submit", w.id)
        return WorkloadSubmitted(w)

    def _happen(self, at: int, _: int, kind: int, name: str) -> list[Observation]:
        """A run that is gone already is not heard of again."""
        run = RunId(name)
        attempt = self.attempts.get(run)
        if attempt is None:
            return []
        hosts = [member.host for member in attempt.members]
        if kind == STARTS:
            return self._begin(at, run, attempt, hosts)
        self._gone(at, run, attempt, done=kind == ENDS)
        if attempt.begun_at is None:
            return [MemberNeverStarted(run, host, "stopped before it started") for host in hosts]
        code, signalled = (0, False) if kind == ENDS else (SIGTERM_EXIT, True)
        exits: list[Observation] = [MemberExited(run, host, code, None, signalled) for host in hosts]
        return [*exits, *(MemberReleased(run, host) for host in hosts)]

    def _begin(self, at: int, run: RunId, attempt: Attempt, hosts: Sequence[HostName]) -> list[Observation]:
        attempt.begun_at = at
        if self.outcome.started_at[attempt.number] is None:
            self.outcome.started_at[attempt.number] = at
        self._event(at, "start", self.stream.workloads[attempt.number].id, run)
        self._push(at + self.left_ms[attempt.number], ENDS, run)
        return [MemberStarted(run, host) for host in hosts]

    def _gone(self, at: int, run: RunId, attempt: Attempt, done: bool) -> None:
        number, outcome = attempt.number, self.outcome
        w = self.stream.workloads[number]
        del self.attempts[run]
        outcome.meter.holds(w.budget, at, -w.gpus, w.allocated)
        self._event(at, "release", w.id, run)
        begun = attempt.begun_at is not None
        if not done:
            kept = self._kept_ms(attempt) if w.resumable else 0
            self.left_ms[number] -= kept
            outcome.lost_gpu_ms[number] += w.gpus * (at - attempt.placed_at - kept)
        if done or (begun and not w.comes_back):
            self._over(at, run, number)

    def _over(self, at: int, run: RunId, number: int) -> None:
        """The workload never runs again."""
        w = self.stream.workloads[number]
        self.ended += 1
        self.outcome.ended_at[number] = at
        if w.allocated:
            self.outcome.meter.wants(w.budget, at, -w.gpus)
        self._event(at, "end", w.id, run)

    def _kept_ms(self, attempt: Attempt) -> int:
        """Work that need not be done again: up to the last checkpoint before the stop, or to the stop itself."""
        if attempt.begun_at is None or attempt.stop_at is None:
            return 0
        worked, every = max(0, attempt.stop_at - attempt.begun_at), self.rules.checkpoint_every_ms
        return worked - worked % every if every else worked
