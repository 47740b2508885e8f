"""The engine: observations in, decisions and commands out. Pure, synchronous, deterministic.

Theory of operation. A tick applies what was observed, then lets time act, then plans. Every decision is applied
through the same
`apply` as observations are, so the journal of both, folded in order, gives the same state without deciding again.
Commands
follow from decisions; one without an outcome is not sent again blindly: `outstanding` names it, and the shell
looks at the host first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scheduler_core.breaker import automatic, preemptable_gpus
from scheduler_core.commands import Command, StartMember, StopMember
from scheduler_core.decisions import BreakerTripped, Decision, Placed, StopCause, StopDecided
from scheduler_core.drain import drained, due_stops, next_release
from scheduler_core.ids import CommandId, HostName
from scheduler_core.lifecycle import apply
from scheduler_core.observations import Observation
from scheduler_core.planner import plan_pass
from scheduler_core.state import ClusterState, MemberPhase, Run
from scheduler_core.timers import due, kill_at, next_timer

OWN_WORD = (StopCause.CANCEL, StopCause.START_TIMEOUT, StopCause.TIME_LIMIT, StopCause.GANG_BROKEN)


class Step(NamedTuple):
    """What came of a tick, in order."""

    decisions: tuple[Decision, ...]
    commands: tuple[Command, ...]


class Engine:
    """The only door to a cluster's state."""

    def __init__(self, state: ClusterState | None = None) -> None:
        self.state = state or ClusterState()

    def step(self, now: int, observations: Sequence[Observation] = ()) -> Step:
        """One tick at `now` (ms). An instant before the last one counts as the last one: time does not run
        backwards."""
        state = self.state
        state.now = max(now, state.now)
        for observation in observations:
            apply(state, observation)
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
        self.state.now = max(now, self.state.now)
        for observation in observations:
            apply(self.state, observation)
        if self.state.index.expire(self.state.now):
            self.state.dirty = True
        due(self.state)  # what it would decide stands in the journal
        for decision in decisions:
            apply(self.state, decision)

    # -- deciding --------------------------------------------------------------------------------------------------

    def _decide(self) -> Iterator[Decision]:
        """Each decision is applied before the next kind is thought about."""
        state = self.state
        if state.index.expire(state.now):
            state.dirty = True
        yield from due(state)
        while state.wanted:
            yield state.wanted[min(state.wanted)]
        yield from due_stops(state)
        yield from drained(state)
        yield from automatic(state)
        if self._pass_is_due():
            result = plan_pass(state, preemptable_gpus(state))
            yield from result.decisions
            for wid in result.breaker:
                if f"workload {wid}" not in state.tripped:
                    yield BreakerTripped(f"workload {wid}", "preempting for it is past the breaker's limit")

    def _pass_is_due(self) -> bool:
        """Rule 15: after events, at most one per `pass_interval`."""
        state = self.state
        if not state.dirty or not self._anybody_waits():
            return False
        return state.last_pass_at is None or state.now - state.last_pass_at >= state.policy.pass_interval_ms

    def _anybody_waits(self) -> bool:
        index = self.state.index
        return any(q.by_signature for q in index.queues.values()) or any(
            q.by_signature for q in index.unallocated_queues.values()
        )

    def next_wakeup(self) -> int | None:
        """The next instant at which time alone makes a step do something; None where only events can."""
        state = self.state
        instants = [next_timer(state), next_release(state)]
        if self._anybody_waits():
            instants.append(state.index.next_expiry())
            if state.dirty:
                instants.append((state.last_pass_at or 0) + state.policy.pass_interval_ms)
        return min((at for at in instants if at is not None), default=None)

    # -- commands --------------------------------------------------------------------------------------------------

    def _stops(self, decision: StopDecided) -> bool:
        run = self.state.runs.get(decision.run)
        return run is None or run.stop is not None

    def _commands(self, decision: Decision) -> list[Command]:
        if isinstance(decision, Placed):
            return list(self._starts(self.state.runs[decision.run]))
        if isinstance(decision, StopDecided):
            return list(self._stop_members(self.state.runs[decision.run]))
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
        guarded = 0 if stop.override or stop.cause in OWN_WORD else run.min_runtime_ms
        kill = kill_at(state, run)
        checkpoint_ms = kill - (run.stop_at or 0) - state.policy.stop_grace_ms
        for host, member in run.members.items():
            if not member.phase.gone:
                yield StopMember(
                    CommandId(f"{run.id}/{host}/stop"),
                    run.id,
                    host,
                    stop.reason,
                    guarded,
                    checkpoint_ms,
                    state.policy.stop_grace_ms,
                    kill + state.policy.stop_deadline_ms,
                )

    def outstanding(self, host: HostName | None = None) -> tuple[Command, ...]:
        """Every command without an outcome, with the ids of its first issue. Look at the host before sending one
        again."""
        found: list[Command] = []
        for run in self.state.runs.values():
            if host is None or host in run.members:
                commands = self._starts(run) if run.stop is None else self._stop_members(run)
                found.extend(c for c in commands if host is None or c.host == host)
        return tuple(found)
