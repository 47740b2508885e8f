"""The planner against the plain one of `reference`, on small random states and on what follows from them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.decisions import Claimed, Placed, StopDecided
from scheduler_core.invariants import check
from scheduler_core.lifecycle import apply
from scheduler_core.observations import MemberReleased
from scheduler_core.planner import plan_pass
from scheduler_core.state import ClusterState
from tests.core.planner.reference import Outcome, Reference
from tests.core.planner.small_states import random_state

seeds = st.integers(0, 10**9)


def decided(state: ClusterState) -> Outcome:
    found = Outcome()
    for decision in plan_pass(state).decisions:
        if isinstance(decision, Placed):
            found.placed[decision.workload] = decision.members
        elif isinstance(decision, Claimed):
            found.claimed[decision.workload] = decision.members
        elif isinstance(decision, StopDecided):
            assert decision.for_workload is not None
            found.victims[decision.run] = decision.for_workload
    return found


@settings(max_examples=400, deadline=None)
@given(seeds)
def test_the_fast_planner_decides_as_the_plain_one(seed: int) -> None:
    state = random_state(seed)
    assert decided(state) == Reference(state).run()


@settings(max_examples=150, deadline=None)
@given(seeds)
def test_and_so_in_the_passes_that_follow(seed: int) -> None:
    """Claims wait while some victims have gone and others have not."""
    state = random_state(seed)
    for turn in range(3):
        for decision in plan_pass(state).decisions:
            apply(state, decision)
        assert not check(state)
        state.now += 7_000
        for number, run in enumerate(list(state.runs.values())):
            if run.stop is not None and (seed + turn + number) % 2:
                for host in list(run.members):
                    apply(state, MemberReleased(run.id, host))
        state.index.expire(state.now)
        assert decided(state) == Reference(state).run()
