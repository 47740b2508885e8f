"""Division of a resource by deserved quota, priority, weight and past use."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.shares.amounts import Exact
from scheduler_core.shares.maxmin import Claim, weighted_max_min
from scheduler_core.shares.quota import Division, Queue, divide, divide_over_quota, divide_tree

HALF = Fraction(1, 2)


def whole(division: Division) -> tuple[dict[str, Exact], Exact]:
    return {**division.shares}, division.remaining


def shares(division: Division) -> list[Fraction]:
    return list(division.shares.values())


# -- examples ------------------------------------------------------------------------------------------------------


def test_deserved_as_far_as_asked_for_then_the_rest_by_weight() -> None:
    hungry, modest = Queue("a", 4, 3, request=90), Queue("b", 8, 1, request=6)
    assert whole(divide(30, [hungry, modest])) == ({"a": 24, "b": 6}, 0)
    assert whole(divide(30, [hungry, replace(modest, request=90)])) == ({"a": 18, "b": 12}, 0)
    assert divide(200, [hungry, modest]).remaining == 104


def test_what_is_deserved_is_kept_also_beyond_the_total() -> None:
    assert whole(divide(5, [Queue("a", 4, request=9), Queue("b", 4, request=9)])) == ({"a": 4, "b": 4}, 0)


def test_deserved_without_end_is_all_there_is() -> None:
    assert shares(divide(10, [Queue("a", None, request=7), Queue("b", 2, request=9)])) == [7, 3]


def test_a_limit_is_a_limit_of_what_is_asked_for() -> None:
    assert shares(divide(12, [Queue("a", 2, request=9, limit=3), Queue("b", 0, request=99)])) == [3, 9]
    assert shares(divide(12, [Queue("a", 6, request=9, limit=3), Queue("b", 0, 0, request=99)])) == [3, 0]


def test_weight_0_ends_at_what_is_deserved() -> None:
    assert whole(divide(12, [Queue("a", 2, 0, request=9)])) == ({"a": 2}, 10)


def test_the_higher_priority_has_all_of_the_surplus_that_it_wants() -> None:
    low, high = Queue("low", 2, 100, request=9), Queue("high", 2, 1, request=6, priority=1)
    assert shares(divide(8, [low, high])) == [2, 6]
    assert shares(divide(10, [low, high])) == [4, 6]


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param([Queue("a", 0, 1, 9), Queue("b", 0, 3, 9)], [2, 5], id="1.75 and 5.25: to the larger rest"),
        pytest.param([Queue("a", 0, 1, 9, created=2), Queue("b", 0, 1, 9, created=1)], [3, 4], id="equal: the older"),
        pytest.param([Queue("b", 0, 1, 9), Queue("a", 0, 1, 9)], [3, 4], id="as old: the lower id"),
        pytest.param([Queue("a", 0, 1, HALF), Queue("b", 0, 1, 9)], [0.5, 6.5], id="who asks for a part has a part"),
        pytest.param(
            [Queue("a", 0, 1, 9, priority=1), Queue("b", 0, 1, 9, priority=1), Queue("c", 0, 9, 9)],
            [3, 3, 1],
            id="what rounding leaves is offered to the next priority first",
        ),
    ],
)
def test_whole_units(queues: list[Queue], expected: list[float]) -> None:
    assert shares(divide(7, queues)) == expected


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        pytest.param(0, [16, 16], id="history does not count"),
        pytest.param(HALF, [8, 24], id="0.5 - 0.5 x 0.5 against 0.5 + 0.5 x 0.5"),
        pytest.param(1, [0, 32], id="0.5 - 1 x 0.5 against 0.5 + 1 x 0.5"),
        pytest.param(9, [0, 32], id="never below nothing"),
    ],
)
def test_past_use_bends_the_surplus(k: Fraction, expected: list[int]) -> None:
    used = [Queue("a", request=99, usage=1), Queue("b", request=99)]
    assert shares(divide(32, used, k)) == expected


def test_past_use_takes_nothing_of_what_is_deserved() -> None:
    used = [Queue("a", 6, request=99, usage=1), Queue("b", 6, request=99)]
    assert shares(divide(16, used, 1)) == [6, 10]


def test_only_the_surplus() -> None:
    queue = Queue("a", 3, 1, request=5, limit=4)
    assert whole(divide_over_quota(3, [queue], {"a": 3})) == ({"a": 4}, 2)


def test_a_queue_s_share_is_what_its_children_divide() -> None:
    queues = [
        Queue("team", 4, request=99),
        Queue("one", 2, 0, request=1, parent="team"),
        Queue("two", 1, 1, request=9, parent="team"),
        Queue("other", 4, 3, request=99),
    ]
    assert divide_tree(16, queues) == {"team": 6, "one": 1, "two": 5, "other": 10}


# -- properties ----------------------------------------------------------------------------------------------------

amounts = st.integers(0, 40) | st.fractions(0, 40, max_denominator=4)
rows = st.builds(
    Queue,
    id=st.just(""),
    deserved=st.none() | amounts,
    over_quota_weight=st.integers(0, 5),
    request=amounts,
    limit=st.none() | amounts,
    priority=st.integers(0, 2),
    usage=st.fractions(0, 2, max_denominator=10),
    created=st.integers(0, 2),
)
drawn = st.lists(rows, max_size=6).map(lambda qs: [replace(q, id=f"q{n}") for n, q in enumerate(qs)])
ks = st.sampled_from([Fraction(0), HALF, Fraction(1), Fraction(5)])
checked = settings(max_examples=300, deadline=None)


@checked
@given(amounts, drawn, ks)
def test_nothing_is_made_or_lost_and_nobody_has_less_than_it_deserves(
    total: Fraction, queues: list[Queue], k: Fraction
) -> None:
    division = divide(total, queues, k)
    deserved = {q.id: min(total if q.deserved is None else q.deserved, q.requestable) for q in queues}
    assert sum(division.shares.values()) + division.remaining == max(total, sum(deserved.values()))
    assert division.remaining >= 0
    for queue in queues:
        share = division.shares[queue.id]
        assert deserved[queue.id] <= share < max(deserved[queue.id], queue.requestable) + 1
        assert queue.over_quota_weight or share == deserved[queue.id]


@checked
@given(amounts, drawn, ks, st.randoms(use_true_random=False))
def test_the_order_of_the_queues_does_not_count(
    total: Fraction, queues: list[Queue], k: Fraction, random: Random
) -> None:
    again = divide(total, random.sample(queues, len(queues)), k)
    assert again == divide(total, queues, k)


@checked
@given(amounts, drawn)
def test_but_for_rounding_it_is_weighted_max_min_of_the_surplus(total: Fraction, queues: list[Queue]) -> None:
    """Without history and priorities. Each round of rounding moves less than a unit for each queue."""
    equals = [replace(q, priority=0, deserved=0) for q in queues if q.over_quota_weight]
    exact = weighted_max_min(total, [Claim(q.over_quota_weight, 0, q.requestable) for q in equals])
    assert all(abs(a - b) <= len(equals) for a, b in zip(shares(divide(total, equals)), exact, strict=True))


@checked
@given(st.integers(0, 60), drawn, ks)
def test_whole_requests_get_whole_shares(total: int, queues: list[Queue], k: Fraction) -> None:
    def floored(amount: int | Fraction | None) -> int | None:
        return None if amount is None else int(amount)

    rounded = [replace(q, deserved=floored(q.deserved), request=int(q.request), limit=floored(q.limit)) for q in queues]
    assert all(share.denominator == 1 for share in shares(divide(total, rounded, k)))


@checked
@given(amounts, drawn, ks)
def test_more_past_use_is_never_more_surplus(total: Fraction, queues: list[Queue], k: Fraction) -> None:
    """But for what rounding moves: a unit, or the rest of one."""
    if queues:
        before = shares(divide(total, queues, k))[0]
        after = shares(divide(total, [replace(queues[0], usage=queues[0].usage + 1), *queues[1:]], k))[0]
        assert after < before + len(queues)
