"""Weighted max-min shares with minimum and maximum, alone and down trees."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.errors import SchedulerCoreError, UnknownIdError
from scheduler_core.shares.maxmin import Claim, Queue, instantaneous_shares, steady_shares, weighted_max_min

HALF = Fraction(1, 2)

# -- examples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "claims", "shares"),
    [
        pytest.param(12, [Claim(), Claim(), Claim()], [4, 4, 4], id="equal weights"),
        pytest.param(12, [Claim(2), Claim(1), Claim(HALF), Claim(HALF)], [6, 3, 1.5, 1.5], id="by weight, in parts"),
        pytest.param(12, [Claim(maximum=2), Claim(), Claim()], [2, 5, 5], id="what a maximum leaves goes to the rest"),
        pytest.param(12, [Claim(maximum=2), Claim(maximum=3)], [2, 3], id="what nobody may take is left over"),
        pytest.param(12, [Claim(minimum=8), Claim(), Claim()], [8, 2, 2], id="a minimum comes first"),
        pytest.param(12, [Claim(minimum=3), Claim(), Claim()], [4, 4, 4], id="a minimum below the share is no gift"),
        pytest.param(
            4, [Claim(minimum=3), Claim(minimum=3), Claim()], [3, 3, 0], id="minima beyond the total are kept"
        ),
        pytest.param(9, [Claim(minimum=5, maximum=2), Claim()], [2, 7], id="the maximum counts last"),
        pytest.param(9, [Claim(0, minimum=1), Claim()], [1, 8], id="weight 0: its minimum"),
        pytest.param(9, [Claim(0), Claim(0, maximum=5)], [0, 0], id="no weight at all: nothing"),
        pytest.param(9, [], [], id="nobody"),
        pytest.param(0, [Claim(), Claim(maximum=3)], [0, 0], id="nothing"),
    ],
)
def test_shares(total: int, claims: list[Claim], shares: list[float]) -> None:
    assert weighted_max_min(total, claims) == shares


TREE = [
    Queue("a", claim=Claim(3)),
    Queue("a1", "a"),
    Queue("a2", "a"),
    Queue("b", claim=Claim(1)),
    Queue("b1", "b", Claim(3)),
    Queue("b2", "b", Claim(1)),
]


def test_steady_shares_follow_the_weights_down_the_tree() -> None:
    shares = steady_shares(80, TREE)
    assert shares == {"a": 60, "a1": 30, "a2": 30, "b": 20, "b1": 15, "b2": 5}


def test_who_is_not_active_has_no_instantaneous_share_and_leaves_its_own_to_its_siblings_first() -> None:
    assert instantaneous_shares(80, TREE, {"a1", "b2"}) == {"a": 60, "a1": 60, "a2": 0, "b": 20, "b1": 0, "b2": 20}
    assert instantaneous_shares(80, TREE, {"b1", "b2"})["b1"] == 60
    assert set(instantaneous_shares(80, TREE, ()).values()) == {0}


def test_all_active_is_steady() -> None:
    assert instantaneous_shares(80, TREE, [queue.id for queue in TREE]) == steady_shares(80, TREE)


def test_a_branch_with_a_maximum_holds_its_children_back() -> None:
    capped = [Queue("a", claim=Claim(maximum=10)), Queue("a1", "a"), Queue("a2", "a", Claim(maximum=2)), Queue("b")]
    assert steady_shares(40, capped) == {"a": 10, "a1": 8, "a2": 2, "b": 30}


def test_trees_that_are_none() -> None:
    with pytest.raises(SchedulerCoreError, match="'a' stands twice"):
        steady_shares(1, [Queue("a"), Queue("a")])
    with pytest.raises(SchedulerCoreError, match="hangs below itself"):
        steady_shares(1, [Queue("a", "b"), Queue("b", "a")])
    with pytest.raises(UnknownIdError, match="no 'x'"):
        instantaneous_shares(1, TREE, {"x"})


# -- properties ----------------------------------------------------------------------------------------------------

parts = st.fractions(0, 50, max_denominator=8)
claims_drawn = st.lists(st.builds(Claim, parts, parts, st.none() | parts), max_size=6)
checked = settings(max_examples=300, deadline=None)


def least(claim: Claim) -> Fraction:
    return Fraction(claim.minimum if claim.maximum is None else min(claim.minimum, claim.maximum))


@checked
@given(parts, claims_drawn)
def test_all_is_given_within_the_bounds_and_nobody_could_give_to_a_poorer_one(
    total: Fraction, claims: list[Claim]
) -> None:
    """These three say what weighted max-min is: there is one such division."""
    shares = weighted_max_min(total, claims)
    for share, claim in zip(shares, claims, strict=True):
        assert least(claim) <= share and (claim.maximum is None or share <= claim.maximum)
    can_grow = [s for s, c in zip(shares, claims, strict=True) if c.weight and (c.maximum is None or s < c.maximum)]
    floor = sum(map(least, claims), Fraction(0))
    assert sum(shares) == max(total, floor) if can_grow else sum(shares) <= max(total, floor)
    weighed = [(s / c.weight, s, c) for s, c in zip(shares, claims, strict=True) if c.weight]
    for poor, share, claim in weighed:
        for rich, more, other in weighed:
            if poor < rich:
                assert share == claim.maximum or more == least(other)


@checked
@given(parts, parts, claims_drawn)
def test_more_to_divide_is_less_for_nobody(total: Fraction, more: Fraction, claims: list[Claim]) -> None:
    before, after = weighted_max_min(total, claims), weighted_max_min(total + more, claims)
    assert all(a <= b for a, b in zip(before, after, strict=True))


@checked
@given(parts, claims_drawn, st.randoms(use_true_random=False))
def test_the_order_of_the_claims_does_not_count(total: Fraction, claims: list[Claim], random: Random) -> None:
    order = random.sample(range(len(claims)), len(claims))
    shares = weighted_max_min(total, claims)
    assert weighted_max_min(total, [claims[n] for n in order]) == [shares[n] for n in order]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 30), st.lists(st.tuples(st.integers(1, 3), st.integers(0, 12)), min_size=1, max_size=4))
def test_as_if_poured_drop_by_drop(total: int, bounds: list[tuple[int, int]]) -> None:
    """Small drops, each to the one with the least for its weight that may still take one."""
    drop = Fraction(1, 24)
    poured = [Fraction(0)] * len(bounds)
    for _ in range(total * 24):
        open_to_more = [n for n, (_, most) in enumerate(bounds) if poured[n] < most]
        if not open_to_more:
            break
        poured[min(open_to_more, key=lambda n: poured[n] / bounds[n][0])] += drop
    shares = weighted_max_min(total, [Claim(weight, 0, most) for weight, most in bounds])
    assert all(abs(a - b) < 6 * drop for a, b in zip(shares, poured, strict=True))


@checked
@given(parts, st.lists(st.tuples(st.integers(0, 5), parts), min_size=1, max_size=8))
def test_down_a_tree_children_divide_what_their_parent_has(total: Fraction, rows: list[tuple[int, Fraction]]) -> None:
    queues = [Queue(f"q{n}", f"q{parent % n}" if n and parent else "", Claim(w)) for n, (parent, w) in enumerate(rows)]
    shares = steady_shares(total, queues)
    for queue in queues:
        kids = [kid for kid in queues if kid.parent == queue.id]
        if any(kid.claim.weight for kid in kids):
            assert sum(shares[kid.id] for kid in kids) == shares[queue.id]
