"""What a pass leaves out because nothing changed (module settled) is what a pass that looks at everything finds too."""

from __future__ import annotations

from copy import deepcopy
from heapq import heappop, heappush
from itertools import count

import pytest

from opsconsole.demo.stream import submissions
from scheduler_core.breaker import preemptable_gpus
from scheduler_core.budget import Budget
from scheduler_core.commands import Command, StartMember, StopMember
from scheduler_core.decisions import Claimed, PassDone, Placed, StopDecided
from scheduler_core.engine import Engine
from scheduler_core.fairshare import Standings
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, HostName, WorkloadId
from scheduler_core.observations import (
    HostSeen,
    InventoryLoaded,
    MemberExited,
    MemberReleased,
    MemberStarted,
    Observation,
    WorkloadSubmitted,
)
from scheduler_core.planner import PassResult, plan_pass
from scheduler_core.policy import Policy
from scheduler_core.settled import Settled
from scheduler_core.sim.scenario import Scenario
from scheduler_core.state import ClusterState
from scheduler_core.units import MINUTE, SECOND, WEIGHT
from scheduler_core.victims import Pool, Rights
from scheduler_core.workload import Workload

T0 = 1_800_000_000_000


@pytest.mark.parametrize("seed", range(700, 708))
def test_right_after_a_pass_one_that_looks_at_everything_finds_no_more(seed: int) -> None:
    """But for what the pass itself has made possible, by turning standings: that is left to the next one."""
    scenario, passes = Scenario(seed), 0
    for _ in range(400):
        seen = len(scenario.ticks)
        scenario.turn()
        state = scenario.engine.state
        ticks = scenario.ticks[seen:]
        if not any(isinstance(d, PassDone) for t in ticks[-1:] for d in t.step.decisions) or state.index.news:
            continue
        passes += 1
        claimants = dict(state.index.claimants)
        for decision in plan_pass(deepcopy(state), preemptable_gpus(state)).decisions:
            assert not isinstance(decision, Placed) or decision.workload in claimants, (seed, state.now, decision)
            assert not isinstance(decision, Claimed) or _turned(state, decision.workload), (seed, state.now, decision)
    assert passes > 20


def _turned(state: ClusterState, wid: WorkloadId) -> bool:
    """Has it rights that it did not have when it failed, or did only a cap keep it?"""
    workload, settled = state.workloads[wid].workload, state.index.settled
    blocked = settled.blocked.get(workload.budget)
    if workload.budget in settled.open or blocked is None or blocked.head is None or blocked.head[2] != wid:
        return workload.budget in settled.open
    return blocked.rights is not None and not Rights(Pool(Standings(state)), workload).within(blocked.rights)


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_pass_decides_what_one_that_looks_at_everything_would(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy cluster with a short window, where standings turn all the time: a head that had to wait for the
    protected, and stood worse while they lost their protection, is not forgotten."""
    compared = []

    def both(state: ClusterState, gpus: int, settled: Settled) -> PassResult:
        cold = plan_pass(deepcopy(state), gpus)
        warm = plan_pass(state, gpus, settled)
        compared.append((state.now, cold.decisions[:-1], warm.decisions[:-1]))
        return warm

    monkeypatch.setattr("scheduler_core.engine.plan_pass", both)
    _Busy(seed).run(400)
    for now, cold, warm in compared:
        more = cold[len(warm) :]
        assert cold[: len(warm)] == warm, (seed, now)
        assert not more or any(isinstance(d, StopDecided) for d in warm), (seed, now, more)  # left to the next pass
    assert len(compared) > 100


class _Busy:
    """Eight hosts and the demo's teams. Hosts do what they are told after a second."""

    def __init__(self, seed: int) -> None:
        self.engine, self.now, self.number = Engine(), T0, count()
        self.left: dict[str, int] = {}
        self.happens: list[tuple[int, int, tuple[Observation, ...]]] = []
        policy = Policy(lookback_ms=5 * MINUTE, pass_interval_ms=SECOND, claim_horizon_ms=30 * SECOND)
        shares = (("olmo", ROOT, 3), ("vision", ROOT, 2), ("nlp", ROOT, 1))
        tree = [Budget(BudgetId(name), name, parent, weight * WEIGHT) for name, parent, weight in shares]
        for name, weight in (("pretrain", 3), ("eval", 1)):
            tree.append(Budget(BudgetId(f"olmo/{name}"), name, BudgetId("olmo"), weight * WEIGHT))
        hosts = tuple(Host(HostName(f"gpu{n}"), 8) for n in range(8))
        self.engine.step(T0, [InventoryLoaded(policy, tuple(tree), hosts)])
        self.engine.step(T0, [HostSeen(host.name, "boot1") for host in hosts])
        for asked in submissions(seed):
            self.left[asked.name] = asked.runtime_s * SECOND
            at = T0 + int(asked.at_s * SECOND)
            wid, budget = WorkloadId(asked.name), BudgetId(asked.budget)
            minimum = asked.min_runtime_s * SECOND
            self.at(at, WorkloadSubmitted(Workload(wid, budget, asked.gpus, minimum, at, resumable=asked.resumable)))

    def at(self, at: int, *facts: Observation) -> None:
        heappush(self.happens, (at, next(self.number), facts))

    def run(self, seconds: int) -> None:
        while self.now < T0 + seconds * SECOND:
            self.now = min(self.happens[0][0], self.engine.next_wakeup() or self.happens[0][0])
            facts: list[Observation] = []
            while self.happens and self.happens[0][0] <= self.now:
                facts += heappop(self.happens)[2]
            for command in self.engine.step(self.now, facts).commands:
                self.obey(command)

    def obey(self, command: Command) -> None:
        soon = self.now + SECOND
        if isinstance(command, StartMember):
            workload = self.engine.state.runs[command.run].workload
            self.at(soon, MemberStarted(command.run, command.host))
            ended = MemberExited(command.run, command.host, 0), MemberReleased(command.run, command.host)
            self.at(soon + self.left[workload], *ended)
        elif isinstance(command, StopMember):
            self.at(soon, MemberExited(command.run, command.host, 143, None, True))
            self.at(soon, MemberReleased(command.run, command.host))
