"""What no pass may do, on random small states with caps (rules 8, 11, 17 to 19), and that every promise is kept."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.decisions import Claimed, Placed, StopDecided
from scheduler_core.ids import BudgetId
from scheduler_core.invariants import check
from scheduler_core.lifecycle import apply
from scheduler_core.observations import MemberReleased
from scheduler_core.planner import plan_pass
from scheduler_core.state import ClusterState
from tests.core.planner.small_states import random_state

seeds = st.integers(0, 10**9)


def below(state: ClusterState, budget: BudgetId, leaving: bool) -> int:
    """GPUs held or claimed below a budget; without the runs that stop, unless `leaving`."""
    chains = state.budgets.chains
    runs = [r for r in state.runs.values() if budget in chains[r.budget] and (leaving or r.stop is None)]
    claims = [w.workload.gpus for w in state.workloads.values() if w.claim and budget in chains[w.workload.budget]]
    return sum(r.gpus for r in runs) + sum(claims)


@settings(max_examples=300, deadline=None)
@given(seeds)
def test_a_cap_holds_once_the_victims_have_gone(seed: int) -> None:
    state = random_state(seed, caps=True)
    before = {b: below(state, b, leaving=True) for b in state.budgets.by_id}
    for decision in plan_pass(state).decisions:
        apply(state, decision)
    for budget in state.budgets.budgets:
        if budget.max_gpus is not None:
            assert below(state, budget.id, leaving=False) <= max(budget.max_gpus, before[budget.id])


@settings(max_examples=300, deadline=None)
@given(seeds)
def test_nobody_protected_goes_and_nobody_without_need(seed: int) -> None:
    state = random_state(seed, caps=True)
    result = plan_pass(state)
    stops = [d for d in result.decisions if isinstance(d, StopDecided)]
    claims = {d.workload: d for d in result.decisions if isinstance(d, Claimed)}
    assert len({s.run for s in stops}) == len(stops)
    for stop in stops:
        run = state.runs[stop.run]
        assert not run.protected(state.now) and run.stop is None
        assert stop.for_workload is not None and state.workloads[stop.for_workload].workload.allocated
        assert stop.run in claims[stop.for_workload].waits_for


@settings(max_examples=300, deadline=None)
@given(seeds)
def test_every_claimant_starts_where_it_was_promised_when_its_victims_have_gone(seed: int) -> None:
    state = random_state(seed, caps=True)
    for decision in plan_pass(state).decisions:
        apply(state, decision)
    assert not check(state)
    promised = {wid: record.claim for wid, record in state.workloads.items() if record.claim}
    for run in list(state.runs.values()):
        if run.stop is not None:
            for host in list(run.members):
                apply(state, MemberReleased(run.id, host))
    state.now += 5_000
    placed = {d.workload: d.members for d in plan_pass(state).decisions if isinstance(d, Placed)}
    assert {wid: placed.get(wid) for wid in promised} == promised


@settings(max_examples=150, deadline=None)
@given(seeds)
def test_what_a_pass_left_waiting_it_leaves_again(seed: int) -> None:
    """Without news the passes end: one finds nothing more to do."""
    state = random_state(seed)
    for _ in range(8):
        decisions = plan_pass(state).decisions
        for decision in decisions:
            apply(state, decision)
        if len(decisions) == 1:
            return
    raise AssertionError(f"still deciding: {decisions}")
