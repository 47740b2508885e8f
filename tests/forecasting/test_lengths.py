"""How long workloads run: a published table, and what must hold for any past."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opsconsole.forecasting.lengths import Lengths, Stay

# Freireich et al. 1963, 6-MP arm, weeks; the estimate as Kaplan-Meier tables print it (Cox and Oakes 1984, table 1.1).
ENDED = (6, 6, 6, 7, 10, 13, 16, 22, 23)
GOES_ON = (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
SURVIVES = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}

STAYS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 100), st.booleans()).map(lambda t: Stay(t[0], t[0] + t[1], t[2])),
    max_size=30,
)
CHANCES = st.floats(1e-6, 1.0)


def test_the_published_table() -> None:
    lengths = Lengths([*(Stay(0, t, True) for t in ENDED), *(Stay(0, t, False) for t in GOES_ON)])
    found = {time: round(part, 3) for time, part in zip(lengths.times, lengths.survives, strict=True)}
    assert found == SURVIVES


@given(st.lists(st.integers(1, 20), min_size=1), st.integers(1, 20))
def test_where_all_have_ended_it_counts_them(ended: list[int], time: int) -> None:
    longer = sum(t > time for t in ended) / len(ended)
    assert abs(Lengths([Stay(0, t, True) for t in ended]).after(time) - longer) < 1e-9


@given(STAYS, CHANCES, CHANCES, st.integers(0, 200))
def test_a_smaller_chance_lasts_longer_and_no_draw_is_in_the_past(
    past: list[Stay], a: float, b: float, worked: int
) -> None:
    lengths = Lengths(past)
    longer, shorter = (lengths.draw(chance, worked, 10) for chance in sorted((a, b)))
    assert longer >= shorter >= worked


@given(STAYS)
def test_survival_only_falls_and_reaches_nought_only_where_nothing_lasted_longer(past: list[Stay]) -> None:
    lengths = Lengths(past)
    assert lengths.survives == sorted(lengths.survives, reverse=True)
    if any(not stay.ended and stay.worked > max(lengths.times, default=0) for stay in past):
        assert all(part > 0 for part in lengths.survives)


def test_long_ones_that_are_only_known_late_do_not_vanish() -> None:
    """Five short ones that ended today, and one that has run for days."""
    lengths = Lengths([*(Stay(0, 60, True) for _ in range(5)), Stay(5000, 6000, False)])
    assert 0 < lengths.after(60) < 0.2


def test_beyond_all_knowledge_half_last_as_long_again() -> None:
    lengths = Lengths([Stay(0, 60, True)])
    assert lengths.draw(0.5, 1000, 10) == 2000
    assert Lengths([]).draw(0.5, 0, 900) == 1800
