"""One future of the live state: what runs goes on as long as was drawn, what waits and what comes is scheduled.

Hosts that answer now do what they are told, and none of them fails. Of those that do not answer nobody knows more in
this future than now: their runs stay, and end only where the engine says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from opsconsole.forecasting.draft import Draft
from opsconsole.simulating.replay import ENDS, STARTS, STOPS, Attempt, Outcome, Progress, World
from opsconsole.simulating.rules import Rules
from opsconsole.simulating.workloads import Stream
from scheduler_core.decisions import Member, StopDecided
from scheduler_core.drain import active_drains
from scheduler_core.engine import Engine, Step
from scheduler_core.fleet import Host, HostState, Reach
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import HostSeen, Observation
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState, HostRecord, MemberPhase, Run
from scheduler_core.units import GPU

EMPTIES = 20  # beside the kinds of replays: a host says that nothing is left there
RULES = Rules()  # how long starts and stops take, and how often work is saved
ANSWERS = (Reach.FRESH, Reach.STALE)


class LiveWorld(World):
    """`state` is used up. The stream holds what lives now, what the draft submits and what comes, by submission."""

    def __init__(self, state: ClusterState, stream: Stream, draft: Draft) -> None:
        self.state = state
        super().__init__(stream, [r.host for r in state.hosts.values()], state.policy, RULES, state.now)
        self.draft = draft
        self.emptied: set[HostName] = set()
        self.stopped: dict[WorkloadId, StopDecided] = {}  # of each the first that ran when it all began
        self.running_now = {run.id for run in state.runs.values()}
        self.outcome.meter.serves(state.now, state.ledgers.service.rate // GPU)
        for run in state.runs.values():
            self._goes_on_running(state.now, run)

    def begins(self, hosts: Sequence[Host], policy: Policy, begin: int) -> Engine:
        return Engine(self.state)

    def run(self, until: int | None, progress: Progress) -> Outcome:
        """`progress` hears of time, not of ends."""
        begin = self.outcome.begin
        stale = [r for r in self.state.hosts.values() if r.reach is Reach.STALE]
        facts: list[Observation] = [_seen(record, empty=False) for record in stale]
        self._follow(begin, self.engine.step(begin, [*facts, *self.draft.facts(self.state)]))
        length = max(1, (until or begin) - begin)
        return super().run(until, lambda _: progress((self.state.now - begin) / length))

    def _is_over(self) -> bool:
        """Hosts may still be emptied."""
        return False

    def _goes_on_running(self, at: int, run: Run) -> None:
        number = self.numbers[run.workload]
        w = self.stream.workloads[number]
        self.outcome.meter.holds(w.budget, at, w.gpus, w.allocated)
        self.outcome.started_at[number] = run.started_at
        living = {name: m for name, m in run.members.items() if not m.phase.gone and m.phase is not MemberPhase.LEAKED}
        heard = {name: m for name, m in living.items() if self.state.hosts[name].reach in ANSWERS}
        if not heard:
            return
        members, remaining = tuple(Member(name, m.slots) for name, m in heard.items()), self.left_ms[number]
        begun_at = run.started_at
        if begun_at is not None:
            self.left_ms[number] += at - begun_at  # from the begin of this attempt, as replays count
        elif any(m.started_at is not None for m in heard.values()):
            begun_at = at
        self.attempts[run.id] = Attempt(number, members, run.placed_at, begun_at, run.stop_at)
        if run.stop is not None:
            self._push(at + self.rules.stop_delay_ms, STOPS, run.id)
        elif any(m.phase is MemberPhase.EXITED for m in heard.values()):
            self._push(at + self.rules.stop_delay_ms, ENDS, run.id)
        elif len(heard) == len(living):
            starts = run.started_at is None
            self._push(at + (self.rules.start_delay_ms if starts else remaining), STARTS if starts else ENDS, run.id)

    def _follow(self, at: int, step: Step) -> None:
        """A host that is drained says so when its last run has gone."""
        super()._follow(at, step)
        self.outcome.meter.serves(at, self.state.ledgers.service.rate // GPU)
        for drain in active_drains(self.state):
            host = self.state.hosts[drain.host]
            gone = host.state is HostState.DRAINING and not host.runs and not host.foreign
            if gone and host.reach is Reach.FRESH and drain.host not in self.emptied:
                self.emptied.add(drain.host)
                self._push(at, EMPTIES, drain.host)

    def _stop_decided(self, at: int, decision: StopDecided) -> None:
        if decision.run in self.running_now:
            self.stopped.setdefault(self.state.runs[decision.run].workload, decision)
        if decision.run in self.attempts:
            super()._stop_decided(at, decision)

    def _happen(self, at: int, number: int, kind: int, name: str) -> list[Observation]:
        if kind != EMPTIES:
            return super()._happen(at, number, kind, name)
        record = self.state.hosts.get(HostName(name))
        return [] if record is None else [_seen(record, empty=True)]

    def _over(self, at: int, run: RunId, number: int) -> None:
        """What was requeued by hand comes back though it does not by itself."""
        if self.outcome.ended_at[number] is None:
            super()._over(at, run, number)


def _seen(host: HostRecord, empty: bool) -> HostSeen:
    return HostSeen(host.host.name, host.boot_id, host.gpu_ids, host.foreign, host.unfit, empty, host.machine)
