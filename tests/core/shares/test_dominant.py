"""Dominant resource fairness, weighted and not, in whole tasks and in fractions; asset fairness; YARN's order."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.errors import SchedulerCoreError
from scheduler_core.shares.dominant import (
    asset_fair_allocation,
    asset_share,
    dominant_share,
    drf_allocation,
    fractional_drf_allocation,
    progressive_filling,
)
from scheduler_core.shares.drf_order import Use, compare_drf

GPU_HEAVY, CPU_HEAVY = [4, 8], [1, 16]  # GPUs, CPUs of one task
POOL = [32, 256]


def test_the_dominant_share_is_the_largest() -> None:
    assert dominant_share([8, 32], POOL) == Fraction(1, 4)
    assert asset_share([8, 32], POOL) == Fraction(3, 8)


def test_who_needs_different_things_gets_equal_dominant_shares() -> None:
    """A task takes an eighth of the GPUs, or a sixteenth of the CPUs: twice as many of the second."""
    tasks = drf_allocation(POOL, {"train": GPU_HEAVY, "prepare": CPU_HEAVY})
    assert tasks == {"train": 5, "prepare": 12}
    assert drf_allocation(POOL, {"train": GPU_HEAVY, "prepare": CPU_HEAVY}, {"train": 3}) == {"train": 7, "prepare": 4}


def test_every_grant_goes_to_the_least_share_and_ties_as_they_are_told() -> None:
    demands = {"a": [2, 1], "b": [1, 2]}
    assert [g.user for g in progressive_filling([6, 6], demands)] == ["a", "b", "a", "b"]
    grants = progressive_filling([6, 6], demands, ties=["b"])
    assert [(g.user, g.share) for g in grants[:2]] == [("b", Fraction(1, 3)), ("a", Fraction(1, 3))]
    assert grants[-1].used == (6, 6)


def test_who_no_longer_fits_drops_out_and_the_others_go_on() -> None:
    assert drf_allocation([10, 10], {"big": [6, 1], "small": [1, 1]}) == {"big": 1, "small": 4}


def test_fractions_of_tasks_until_what_they_share_is_full() -> None:
    """Both stop at the GPUs; then one that needs none has the rest of the CPUs."""
    demands = {"a": [1, 1], "b": [1, 1], "c": [0, 1]}
    assert fractional_drf_allocation([4, 10], demands) == {"a": 2, "b": 2, "c": 6}
    assert fractional_drf_allocation([4, 10], {"a": [1, 1], "b": [1, 1]}, {"b": 3}) == {"a": 1, "b": 3}


def test_what_is_not_there_goes_to_nobody() -> None:
    assert drf_allocation([0, 8], {"a": [1, 1], "b": [0, 1]}) == {"a": 0, "b": 8}
    assert fractional_drf_allocation([0, 8], {"a": [1, 1], "b": [0, 1]}) == {"a": 0, "b": 8}


@pytest.mark.parametrize("allocate", [drf_allocation, asset_fair_allocation, fractional_drf_allocation])
def test_a_task_that_needs_nothing_is_a_mistake(allocate: object) -> None:
    with pytest.raises(SchedulerCoreError, match="'a' needs nothing"):
        allocate([4, 4], {"a": [0, 0]})  # type: ignore[operator]


def test_asset_fairness_may_give_less_than_an_equal_part() -> None:
    """Alone with its half of the pool `b` would have 10; by asset fairness it gets 8 of each: why DRF was made."""
    demands = {"a": [1, 3], "b": [1, 1]}
    assert asset_fair_allocation([20, 20], demands) == {"a": 4, "b": 8}
    assert drf_allocation([20, 20], demands)["b"] >= 10


# -- the order between two (YARN) ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        pytest.param(Use([4, 8]), Use([8, 8]), -1, id="less of the same dominant resource"),
        pytest.param(Use([8, 0]), Use([0, 32]), 1, id="a quarter of one against an eighth of the other"),
        pytest.param(Use([8, 8]), Use([8, 64]), -1, id="a tie goes by the next resource"),
        pytest.param(Use([8, 64]), Use([8, 64]), 0, id="nothing tells them apart"),
        pytest.param(Use([16, 8], 3), Use([8, 8]), -1, id="weight divides"),
        pytest.param(Use([16, 8], minimum=[24, 0]), Use([4, 8]), -1, id="who is below its minimum goes first"),
        pytest.param(Use([8, 8], minimum=[8, 0]), Use([4, 8]), 1, id="a minimum that is reached counts no more"),
        pytest.param(Use([4, 8], minimum=[8, 0]), Use([6, 8], minimum=[24, 0]), 1, id="two in need: by their minima"),
        pytest.param(Use([4, 0], minimum=[0, 64]), Use([1, 0]), 1, id="need is of the dominant resource only"),
        pytest.param(Use([1, 0], 0), Use([32, 0]), 1, id="weight 0 comes last"),
    ],
)
def test_who_gets_the_next_container(first: Use, second: Use, order: int) -> None:
    assert compare_drf(first, second, POOL) == order
    assert compare_drf(second, first, POOL) == -order


# -- properties ----------------------------------------------------------------------------------------------------

amounts = st.lists(st.integers(0, 6), min_size=2, max_size=2).filter(any)
wanted = st.dictionaries(st.sampled_from("abcd"), amounts, min_size=1)
capacities = st.lists(st.integers(1, 40), min_size=2, max_size=2)
weighed = st.fixed_dictionaries(dict.fromkeys("abcd", st.integers(1, 4)))
checked = settings(max_examples=200, deadline=None)


@checked
@given(capacities, wanted, weighed)
def test_filling_step_by_step(capacity: Sequence[int], demands: dict[str, list[int]], weights: dict[str, int]) -> None:
    """Each grant fits, goes to one of the least among those that fit, and at the end nobody fits."""
    of = {user: [0, 0] for user in demands}

    def fits(user: str) -> bool:
        used = [sum(column) for column in zip(*of.values(), strict=True)]
        return all(u + d <= c for u, d, c in zip(used, demands[user], capacity, strict=True))

    def share(user: str) -> Fraction:
        return max(Fraction(u, c) for u, c in zip(of[user], capacity, strict=True)) / weights[user]

    for grant in progressive_filling(capacity, demands, weights):
        able = [user for user in demands if fits(user)]
        assert grant.user in able and share(grant.user) == min(map(share, able))
        of[grant.user] = [u + d for u, d in zip(of[grant.user], demands[grant.user], strict=True)]
        assert list(grant.used) == [sum(column) for column in zip(*of.values(), strict=True)]
        assert grant.share == share(grant.user) * weights[grant.user]
    assert not any(map(fits, demands))


@checked
@given(capacities, wanted, weighed)
def test_fractions_are_the_limit_of_ever_smaller_tasks(
    capacity: Sequence[int], demands: dict[str, list[int]], weights: dict[str, int]
) -> None:
    small = 60
    whole = drf_allocation([c * small for c in capacity], demands, weights)
    parts = fractional_drf_allocation(capacity, demands, weights)
    assert all(abs(Fraction(whole[user], small) - part) < Fraction(1, 2) for user, part in parts.items())


@checked
@given(capacities, wanted, weighed)
def test_in_fractions_all_who_need_the_same_have_shares_as_their_weights_and_everybody_is_held_by_something_full(
    capacity: Sequence[int], demands: dict[str, list[int]], weights: dict[str, int]
) -> None:
    tasks = fractional_drf_allocation(capacity, demands, weights)
    used = [sum(tasks[u] * need[r] for u, need in demands.items()) for r in range(2)]
    assert all(u <= c for u, c in zip(used, capacity, strict=True))
    full = [r for r in range(2) if used[r] == capacity[r]]
    shares = {u: dominant_share([tasks[u] * d for d in need], capacity) / weights[u] for u, need in demands.items()}
    for user, need in demands.items():
        assert any(need[r] for r in full)
        for other, theirs in demands.items():
            if all(need) and all(theirs):
                assert shares[user] == shares[other]


uses = st.builds(Use, st.lists(st.integers(0, 8), min_size=2, max_size=2), st.integers(1, 3))


@checked
@given(uses, uses, uses)
def test_without_minima_the_order_is_an_order(a: Use, b: Use, c: Use) -> None:
    cluster = [8, 12]
    assert compare_drf(a, a, cluster) == 0 and compare_drf(a, b, cluster) == -compare_drf(b, a, cluster)
    if compare_drf(a, b, cluster) <= 0 and compare_drf(b, c, cluster) <= 0:
        assert compare_drf(a, c, cluster) <= 0
