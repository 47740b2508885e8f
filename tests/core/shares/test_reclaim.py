"""When a queue may take back from others, and the minimum runtimes that hold against it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.shares.minruntime import Branch, Method, may_evict, preempt_min_runtime, reclaim_min_runtime
from scheduler_core.shares.reclaim import Holding, Reclaimer, Victim, can_reclaim, is_candidate, may_reclaim


def allowed(queues: list[Holding], *victims: tuple[str, int], request: int = 2, multiplier: float = 1) -> bool:
    """Queue `a` wants GPUs of these."""
    taken = [Victim(queue, amount) for queue, amount in victims]
    return may_reclaim(queues, Reclaimer("a", request), taken, Fraction(multiplier))


# -- two queues side by side: each deserves 4 and has a share of 8 -------------------------------------------------


def pair(a: int, b: int) -> list[Holding]:
    return [Holding("a", 4, 8, a), Holding("b", 4, 8, b)]


@pytest.mark.parametrize(
    ("held", "taken", "goes"),
    [
        pytest.param((6, 9), 2, True, id="above its share"),
        pytest.param((6, 8), 2, False, id="at its share"),
        pytest.param((2, 5), 2, True, id="above what it deserves, for one below that"),
        pytest.param((2, 4), 2, False, id="at what it deserves"),
        pytest.param((3, 5), 2, False, id="above what it deserves, for one that would be too"),
        pytest.param((2, 5), 5, True, id="the last victim may take it below"),
    ],
)
def test_from_whom(held: tuple[int, int], taken: int, goes: bool) -> None:
    assert allowed(pair(*held), ("b", taken)) is goes


def test_what_is_deserved_counts_where_the_share_is_smaller() -> None:
    """As it is where little is asked for."""
    assert not allowed([Holding("a", 4, 8, 6), Holding("b", 6, 2, 6)], ("b", 2))


def test_of_several_victims_each_must_be_one_when_its_turn_comes() -> None:
    assert allowed(pair(6, 10), ("b", 1), ("b", 1))
    assert not allowed(pair(6, 9), ("b", 1), ("b", 1))


def test_a_queue_goes_above_its_share_only_while_the_loser_stays_more_saturated() -> None:
    assert allowed(pair(8, 14), ("b", 2))  # 10 of 8 against 12 of 8
    assert not allowed(pair(8, 12), ("b", 2))  # 10 of 8 each
    assert not allowed(pair(8, 14), ("b", 2), multiplier=1.5)


def test_what_is_not_preemptible_stays_within_what_is_deserved_at_every_level() -> None:
    queues = [Holding("t", 6, 8, 6, 5), *(replace(queue, parent="t") for queue in pair(2, 9))]
    assert may_reclaim(queues, Reclaimer("a", 1, preemptible=False), [Victim("b", 1)])
    assert not may_reclaim(queues, Reclaimer("a", 2, preemptible=False), [Victim("b", 2)])
    assert may_reclaim(queues, Reclaimer("a", 2), [Victim("b", 2)])


# -- a tree: departments of two teams ------------------------------------------------------------------------------


def departments(a: int, a2: int, b: int, b2: int) -> list[Holding]:
    """Each team deserves 2 and has a share of 4."""
    teams = [
        Holding(n, 2, 4, h, parent=d) for n, h, d in (("a", a, "A"), ("a2", a2, "A"), ("b", b, "B"), ("b2", b2, "B"))
    ]
    return [Holding("A", 4, 8, a + a2), Holding("B", 4, 8, b + b2), *teams]


def test_across_departments_the_departments_count() -> None:
    assert allowed(departments(0, 0, 0, 9), ("b2", 2))
    assert not allowed(departments(3, 0, 0, 8), ("b2", 2)), "team b2 is far above its share, its department is not"
    assert not allowed(departments(0, 4, 0, 8), ("b2", 2))


def test_within_a_department_the_teams_count_and_the_department_may_be_over() -> None:
    assert allowed(departments(0, 9, 0, 0), ("a2", 2))


def test_a_full_department_needs_victims_of_its_own() -> None:
    assert not allowed(departments(0, 8, 0, 9), ("b", 2))
    assert allowed(departments(0, 8, 0, 9), ("a2", 2))


def test_without_end() -> None:
    assert not allowed([Holding("a", 4, 8, 0), Holding("b", None, 8, 99)], ("b", 2)), "deserves all it has"
    assert allowed([Holding("a", 4, 8, 0), Holding("b", None, 8, 99, limit=50)], ("b", 2)), "but for its limit"
    assert allowed([Holding("a", None, None, 30), Holding("b", 4, 8, 9)], ("b", 2))


def test_a_claim_beyond_its_own_share_is_none() -> None:
    queue = Holding("a", 4, 8, 6, 3)
    assert can_reclaim(queue, Reclaimer("a", 2)) and not can_reclaim(queue, Reclaimer("a", 3))
    assert can_reclaim(queue, Reclaimer("a", 1, preemptible=False))
    assert not can_reclaim(queue, Reclaimer("a", 2, preemptible=False))


@pytest.mark.parametrize(
    ("ours", "theirs", "candidate"),
    [
        pytest.param(0, 3, False, id="below what it deserves"),
        pytest.param(0, 4, True, id="at what it deserves: it may move"),
        pytest.param(0, 5, True, id="above what it deserves"),
        pytest.param(4, 8, False, id="within its share, for a claim beyond what is deserved"),
        pytest.param(4, 9, True, id="above its share"),
    ],
)
def test_candidates(ours: int, theirs: int, candidate: bool) -> None:
    a, b = pair(ours, theirs)
    assert is_candidate(a, b, 2) is candidate


# -- properties ----------------------------------------------------------------------------------------------------

small = st.integers(0, 12)
holdings = st.builds(Holding, st.just("b"), small, small, small)
checked = settings(max_examples=300, deadline=None)


@checked
@given(holdings, holdings, st.integers(1, 6))
def test_what_was_taken_one_for_one_is_not_taken_back(a: Holding, b: Holding, amount: int) -> None:
    """Shares cover what is deserved, as they are divided."""
    a, b = (replace(q, id=n, fair_share=max(q.deserved or 0, q.fair_share or 0)) for q, n in ((a, "a"), (b, "b")))
    there, back = Reclaimer("a", amount), Reclaimer("b", amount)
    if can_reclaim(a, there) and may_reclaim([a, b], there, [Victim("b", amount)]):
        a, b = replace(a, allocated=a.allocated + amount), replace(b, allocated=b.allocated - amount)
        assert not (can_reclaim(b, back) and may_reclaim([a, b], back, [Victim("a", amount)]))


@checked
@given(small, small, holdings, st.integers(1, 6), st.integers(1, 6), st.integers(1, 4))
def test_a_larger_multiplier_allows_less(
    share: int, held: int, b: Holding, request: int, taken: int, multiplier: int
) -> None:
    queues, victims = [Holding("a", 2, share, held), b], [Victim("b", taken)]
    if may_reclaim(queues, Reclaimer("a", request), victims, multiplier):
        assert may_reclaim(queues, Reclaimer("a", request), victims)


@checked
@given(holdings, holdings, st.integers(1, 6), st.integers(1, 6))
def test_what_the_filter_leaves_out_could_not_be_taken(a: Holding, b: Holding, request: int, taken: int) -> None:
    a, b = replace(a, id="a"), replace(b, fair_share=max(Fraction(b.fair_share or 0), Fraction(b.deserved or 0)))
    if not is_candidate(a, b, request):
        assert not may_reclaim([a, b], Reclaimer("a", request), [Victim("b", taken)])


# -- minimum runtimes ----------------------------------------------------------------------------------------------

# lab: 100 s against others; train (inherits) holds big (300 s) and tiny (0 s); serve sets 20 s and holds web
BRANCHES = [
    Branch("lab", "", 10, 100),
    Branch("train", "lab"),
    Branch("big", "train", 7, 300),
    Branch("tiny", "train", None, 0),
    Branch("serve", "lab", None, 20),
    Branch("web", "serve"),
    Branch("guests", ""),
]


@pytest.mark.parametrize(
    ("claimant", "victim", "lca", "queue"),
    [
        pytest.param("tiny", "big", 300, 300, id="siblings: the victim's own"),
        pytest.param("big", "tiny", 0, 0, id="also where it is 0"),
        pytest.param("web", "big", 100, 300, id="what train sets inside counts inside: train inherits from lab"),
        pytest.param("big", "web", 20, 20, id="the victim's side of the common ancestor"),
        pytest.param("guests", "big", 100, 300, id="different tops: the victim's top"),
        pytest.param("big", "guests", 9, 9, id="nothing set: the default"),
        pytest.param("big", "big", 300, 300, id="the same queue"),
        pytest.param("big", "lab", 100, 100, id="a queue above"),
    ],
)
def test_reclaim_min_runtime(claimant: str, victim: str, lca: int, queue: int) -> None:
    methods: dict[Method, int] = {"lca": lca, "queue": queue}
    assert methods == {method: reclaim_min_runtime(BRANCHES, claimant, victim, 9, method) for method in methods}


@pytest.mark.parametrize(("victim", "span"), [("big", 7), ("tiny", 10), ("web", 10), ("guests", 9)])
def test_preempt_min_runtime_is_the_nearest_up_the_tree(victim: str, span: int) -> None:
    assert preempt_min_runtime(BRANCHES, victim, 9) == span


@pytest.mark.parametrize(
    ("ran", "running", "evicted", "least", "may"),
    [
        pytest.param(29, 1, 1, 1, False, id="protected"),
        pytest.param(30, 1, 1, 1, True, id="from exactly that instant"),
        pytest.param(29, 4, 2, 2, True, id="an elastic gang may shrink to its minimum"),
        pytest.param(29, 4, 3, 2, False, id="and no further"),
        pytest.param(30, 4, 4, 2, True, id="afterwards it may go whole"),
    ],
)
def test_eviction_inside_a_min_runtime_of_30(ran: int, running: int, evicted: int, least: int, may: bool) -> None:
    assert may_evict(ran, 30, running, evicted, least) is may
