"""The engine: observations in, decisions and commands out. Pure, synchronous, deterministic.

Theory of operation. A tick applies what was observed, then lets time act, then plans. Every decision is applied through
the same `apply` as observations are, so the journal of both, folded in order, gives the same state without deciding
again. Commands follow from decisions; one without an outcome is not sent again blindly: `outstanding` names it, and the
shell looks at the host first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scheduler_core.agenda import turn_ms
from scheduler_core.breaker import automatic, next_relief, preemptable_gpus
from scheduler_core.commands import Command, FenceHost, StartMember, StopMember
from scheduler_core.contract import checkpoint_grace_ms, guarded_ms, kill_at
from scheduler_core.decisions import BreakerTripped, Decision, HostLost, Placed, StopDecided, StrayFound
from scheduler_core.drain import drained, due_stops, next_release
from scheduler_core.fleet import Reach
from scheduler_core.gangs import drained_gangs
from scheduler_core.ids import CommandId, HostName, RunId
from scheduler_core.lifecycle import apply
from scheduler_core.observations import Observation
from scheduler_core.planner import plan_pass
from scheduler_core.settled import Settled
from scheduler_core.state import ClusterState, HostRecord, MemberPhase, Run
from scheduler_core.timers import due, forget, next_timer


class Step(NamedTuple):
    """What came of a tick, in order."""

    decisions: tuple[Decision, ...]
    commands: tuple[Command, ...]


class Engine:
    """The only door to a cluster's state."""

    def __init__(self, state: ClusterState | None = None) -> None:
        self.state = state or ClusterState()

    def step(self, now: int, observations: Sequence[Observation] = ()) -> Step:
        """One tick at `now` (ms). Time does not run backwards: an instant before the last one counts as the last."""
        state = self.state
        self._observe(now, observations)
        decisions: list[Decision] = []
        commands: list[Command] = []
        for decision in self._decide():
            stopped_already = isinstance(decision, StopDecided) and self._stops(decision)
            apply(state, decision)
            decisions.append(decision)
            if not stopped_already:
                commands.extend(self._commands(decision))
        return Step(tuple(decisions), tuple(commands))

    def fold(self, now: int, observations: Sequence[Observation], decisions: Sequence[Decision]) -> None:
        """The tick of a journal: the same state as `step` gave, without deciding."""
        self._observe(now, observations)
        if self.state.index.expire(self.state.now):
            self.state.dirty = True
        due(self.state)  # what it would decide stands in the journal
        for decision in decisions:
            apply(self.state, decision)
        if not self.state.index.settled.fresh:
            self.state.index.settled = Settled()  # which passes looked at what is not written down

    def _observe(self, now: int, observations: Sequence[Observation]) -> None:
        """What a tick without observations and decisions does must not matter: it is not journalled."""
        self.state.now = max(now, self.state.now)
        forget(self.state)
        for observation in observations:
            apply(self.state, observation)

    # -- deciding --------------------------------------------------------------------------------------------------

    def _decide(self) -> Iterator[Decision]:
        """Each decision is applied before the next kind is thought about."""
        state = self.state
        if state.index.expire(state.now):
            state.dirty = True
        yield from due(state)
        while state.wanted:
            yield state.wanted[min(state.wanted)]
        yield from [StrayFound(run, host) for run, host in state.strays]
        yield from automatic(state)
        yield from due_stops(state)
        yield from drained(state)
        if self._pass_is_due():
            result = plan_pass(state, preemptable_gpus(state), state.index.settled)
            yield from result.decisions
            for wid in result.breaker:
                if f"workload {wid}" not in state.tripped:
                    yield BreakerTripped(f"workload {wid}", "preempting for it is past the breaker's limit")

    def _pass_is_due(self) -> bool:
        at = self._next_pass()
        return at is not None and at <= self.state.now

    def _next_pass(self) -> int | None:
        """Rule 15: passes follow events, at most one per `pass_interval`; time is an event where standings may turn."""
        state = self.state
        if not self._anybody_waits():
            return None
        if state.last_pass_at is None:
            return state.now
        index = state.index
        if state.dirty and (index.news or index.settled.fresh or index.settled.open):
            return state.last_pass_at + state.policy.pass_interval_ms
        instants = []
        if index.settled.braked or (index.settled.fresh and state.tripped):
            instants.append(next_relief(state))
        if index.settled.newcomers and len(index.reservations) < state.policy.max_reservations:
            instants.append(index.settled.reserve_at)
        if index.queues and any(index.interruptible.values()):
            instants.append((state.standings_read_at or 0) + turn_ms(state.policy))
        known = [max(at, state.last_pass_at + state.policy.pass_interval_ms) for at in instants if at is not None]
        return min(known, default=None)

    def _anybody_waits(self) -> bool:
        index = self.state.index
        return bool(index.queues or index.unallocated_queues or drained_gangs(self.state))

    def next_wakeup(self) -> int | None:
        """The next instant at which time alone makes a step do something; None where only events can."""
        state = self.state
        instants = [next_timer(state), next_release(state), self._next_pass()]
        if self._anybody_waits():
            instants.append(state.index.next_expiry())
        return min((at for at in instants if at is not None), default=None)

    # -- commands --------------------------------------------------------------------------------------------------

    def _stops(self, decision: StopDecided) -> bool:
        run = self.state.runs.get(decision.run)
        return run is None or run.stop is not None

    def _commands(self, decision: Decision) -> list[Command]:
        match decision:
            case Placed():
                return list(self._starts(self.state.runs[decision.run]))
            case StopDecided():
                return list(self._stop_members(self.state.runs[decision.run]))
            case StrayFound(run, host):
                return [self._stop_stray(run, host)]
            case HostLost(name):
                return list(self._fences(self.state.hosts[name]))
        return []

    def _starts(self, run: Run) -> Iterator[StartMember]:
        peers = tuple(run.members)
        deadline_at = run.placed_at + self.state.policy.start_timeout_ms
        for rank, (host, member) in enumerate(run.members.items()):
            if member.phase is MemberPhase.DISPATCHED:
                cid = CommandId(f"{run.id}/{host}/start")
                yield StartMember(cid, run.id, run.workload, host, member.slots, rank, peers, deadline_at)

    def _stop_members(self, run: Run) -> Iterator[StopMember]:
        state, stop = self.state, run.stop
        assert stop is not None
        for host, member in run.members.items():
            if not member.phase.gone:
                yield StopMember(
                    CommandId(f"{run.id}/{host}/stop"),
                    run.id,
                    host,
                    stop.reason,
                    guarded_ms(run, stop),
                    checkpoint_grace_ms(state, run),
                    state.policy.stop_grace_ms,
                    kill_at(state, run) + state.policy.stop_deadline_ms,
                )

    def _stop_stray(self, run: RunId, host: HostName) -> StopMember:
        """Its workload may run elsewhere by now: nobody's guarantee is asked for."""
        policy = self.state.policy
        deadline_at = self.state.now + policy.stop_grace_ms + policy.stop_deadline_ms
        reason = "it was declared dead"
        return StopMember(CommandId(f"{run}/{host}/stop"), run, host, reason, 0, 0, policy.stop_grace_ms, deadline_at)

    def _fences(self, host: HostRecord) -> Iterator[FenceHost]:
        """Where the inventory has a fence, a lost host with runs is powered off, so that they are known dead."""
        if host.host.fence and host.reach is Reach.LOST and host.runs:
            yield FenceHost(host.fence_id, host.host.name)

    def outstanding(self, host: HostName | None = None) -> tuple[Command, ...]:
        """Every command without an outcome, under the id of its first issue. Look at the host before sending again."""
        found: list[Command] = []
        for run in self.state.runs.values():
            if host is None or host in run.members:
                found.extend(self._starts(run) if run.stop is None else self._stop_members(run))
        hosts = self.state.hosts
        for name in hosts if host is None else (host,) if host in hosts else ():
            record = hosts[name]
            found.extend(self._stop_stray(run_id, name) for run_id in record.strays)
            found.extend(self._fences(record))
        return tuple(command for command in found if host is None or command.host == host)
