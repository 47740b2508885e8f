"""What a pass leaves out because nothing changed (module settled) is what a pass that looks at everything finds too."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import pytest

from scheduler_core.breaker import preemptable_gpus
from scheduler_core.decisions import Claimed, Decision, PassDone, Placed, ReservationEnded, Reserved, StopDecided
from scheduler_core.fairshare import Standings
from scheduler_core.ids import WorkloadId
from scheduler_core.planner import PassResult, plan_pass
from scheduler_core.settled import Settled
from scheduler_core.sim.scenario import Scenario
from scheduler_core.state import ClusterState
from scheduler_core.victims import Pool, Rights
from tests.demo_on_a_clock import DemoOnAClock


@pytest.mark.parametrize("seed", [*range(700, 708), 1068])  # the last one: a brake of one that is no head
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


@pytest.mark.parametrize("seed", [1, 2, 12, 19, 40])
def test_a_pass_decides_what_one_that_looks_at_everything_would(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy cluster with a short window, where standings turn all the time: a head that had to wait for the
    protected, and stood worse while they lost their protection, is not forgotten."""
    compared = []

    def both(state: ClusterState, gpus: int, settled: Settled) -> PassResult:
        cold = plan_pass(deepcopy(state), gpus)
        warm = plan_pass(state, gpus, settled)
        compared.append((state.now, state.index.reservations.copy(), _starts(cold), _starts(warm)))
        return warm

    monkeypatch.setattr("scheduler_core.engine.plan_pass", both)
    DemoOnAClock(seed).run(400)
    for (now, promised, cold, warm), (_, _, _, following) in pairwise(compared):
        more = cold[len(warm) :]
        assert cold[: len(warm)] == warm, (seed, now)
        # What the pass itself turned is left to the next one: behind a stop, or for one that has a reservation.
        later = [d for d in more if isinstance(d, Placed | Claimed) and d.workload not in promised]
        in_time = {d.workload: None for d in following if isinstance(d, Placed | Claimed)}
        stopped = any(isinstance(d, StopDecided) for d in warm)
        assert stopped or all(d.workload in in_time for d in later), (seed, now, later)
    assert len(compared) > 100


def _starts(result: PassResult) -> list[Decision]:
    """Without reservations: a pass that knows what the last one found may make them later, when standings are read."""
    return [d for d in result.decisions if not isinstance(d, PassDone | Reserved | ReservationEnded)]
