"""Past use as one number, and what was owed against what was delivered."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.shares.history import decayed, normalised_usage
from scheduler_core.shares.owed import (
    delivered_over_owed,
    delivered_over_owed_hourly,
    delivered_toward_owed,
    owed_hourly,
)

WEEK = 7 * 24


def test_usage_is_a_part_of_what_there_was() -> None:
    assert normalised_usage(16 * WEEK, 64, WEEK) == Fraction(1, 4)
    assert normalised_usage(0, 64, WEEK) == 0
    assert normalised_usage(5, 0, WEEK) == 0, "an empty cluster"


@pytest.mark.parametrize(("age", "left"), [(0, 80), (24, 40), (48, 20), (240, 80 / 1024), (12, 80 / 2**0.5)])
def test_half_of_it_counts_after_each_half_life(age: int, left: float) -> None:
    assert decayed(80, age, 24) == pytest.approx(left, rel=1e-15)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**4))
def test_older_never_counts_more(amount: int, age: int, half_life: int) -> None:
    assert amount >= decayed(amount, age, half_life) >= decayed(amount, age + 1, half_life) >= 0


# A budget of 8 GPUs through five hours: nothing wanted, half, all, far too much twice.
DEMAND = [0, 4, 8, 20, 20]
OWED = [0, 4, 8, 8, 8]


def test_owed_is_the_entitlement_as_far_as_it_is_wanted_hour_by_hour() -> None:
    assert owed_hourly([8] * 5, DEMAND) == OWED
    assert owed_hourly([8, 8, 4, 4, 4], DEMAND) == [0, 4, 4, 4, 4], "the entitlement may change with what is in service"


def test_more_in_one_hour_makes_up_for_another_only_over_the_whole_period() -> None:
    delivered = [0, 4, 2, 14, 8]
    assert delivered_toward_owed(OWED, delivered) == 22
    assert delivered_over_owed_hourly(OWED, delivered) == Fraction(22, 28)
    assert delivered_over_owed(OWED, delivered) == 1


def test_where_nothing_is_owed_there_is_no_ratio() -> None:
    assert delivered_over_owed_hourly([0], [5]) is None and delivered_over_owed([], []) is None


hours = st.lists(st.tuples(*[st.integers(0, 30)] * 3), min_size=1, max_size=24)


@given(hours)
def test_hourly_is_the_stricter_and_nobody_gets_more_than_all(rows: list[tuple[int, int, int]]) -> None:
    entitled, wanted, got = (list(column) for column in zip(*rows, strict=True))
    owed = owed_hourly(entitled, wanted)
    strict, whole = delivered_over_owed_hourly(owed, got), delivered_over_owed(owed, got)
    assert (strict is None) == (whole is None)
    if strict is not None and whole is not None:
        assert 0 <= strict <= whole <= 1
