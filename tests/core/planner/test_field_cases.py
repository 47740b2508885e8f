"""Faults that other schedulers had (field_reports.json, G1 and G2) and figures of fair_share.json, by kind."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest

from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.decisions import Claimed, Placed, StopDecided
from scheduler_core.explain import Explainer, HoldKind
from scheduler_core.fairshare import Standings, depth_first
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.observations import InventoryLoaded, MemberReleased
from scheduler_core.policy import Policy
from scheduler_core.queueing import queue_order
from scheduler_core.state import ClusterState
from scheduler_core.units import DAY, GPU, GPU_HOUR, HOUR, MINUTE, WEIGHT
from scheduler_core.usage import Ledgers
from tests.core.clusters import PASS, Cluster, budgets, of_kind


def claims_of(step: object) -> dict[WorkloadId, Claimed]:
    return {d.workload: d for d in of_kind(step, Claimed) if isinstance(d, Claimed)}  # type: ignore[arg-type]


def ranked(weights: dict[str, int], used_hours: dict[str, float], gpus: int = 100, lookback: int = HOUR) -> list[str]:
    """Leaf order of a tree with so many GPU-hours used, of 100 in the window."""
    state = ClusterState(policy=Policy(lookback_ms=lookback), budgets=BudgetTree.of(budgets(weights)))
    state.ledgers.service.change(0, gpus * GPU)
    state.now = lookback
    for budget, hours in used_hours.items():
        state.ledgers.seed(state.budgets.chains[BudgetId(budget)], int(hours * GPU_HOUR))
    return [b for b, _ in depth_first(Standings(state)) if state.budgets.is_leaf(b)]


@pytest.mark.parametrize("used", [{}, {"a": 1, "b": 2, "z": 3}, {"z": 1}])
def test_weight_zero_comes_last_whatever_was_used(used: dict[str, float]) -> None:
    """G1-01: zero divided by zero never sorts before a number."""
    for names in permutations("abz"):
        order = ranked({name: 0 if name == "z" else 1 for name in names}, used)
        assert order[-1] == "z"


def test_siblings_that_all_weigh_zero_split_equally_and_least_usage_first() -> None:
    """G1-01."""
    assert ranked({"a": 0, "b": 0, "c": 0}, {"a": 2, "b": 1}) == ["c", "b", "a"]


def test_one_gpu_too_much_is_too_much_at_any_size() -> None:
    """G1-03: no rounding hides it."""
    state = ClusterState(policy=Policy(lookback_ms=10**9), budgets=BudgetTree.of(budgets({"a": 10**6, "b": 10**6})))
    state.ledgers.service.change(0, 2 * 10**9 * GPU)
    state.now = 10**9
    owed = 10**9 * GPU * 10**9
    state.ledgers.seed([BudgetId("a")], owed + GPU)
    state.ledgers.seed([BudgetId("b")], owed - GPU)
    standings = Standings(state)
    _, a_is_over, *_ = standings.key(BudgetId("a"))
    _, b_is_over, *_ = standings.key(BudgetId("b"))
    assert a_is_over and not b_is_over


def test_one_victim_is_promised_to_one() -> None:
    """G1-05, G1-24: the same GPUs are never counted twice, nor free before they are."""
    c = Cluster({"a": 1, "b": 1, "c": 1}, hosts={"h1": 4, "h2": 4})
    c.running("old", "c", gpus=4, min_runtime=MINUTE, resumable=True)
    c.running("kept", "c", gpus=4, min_runtime=8 * HOUR)
    c.later(HOUR)
    first = c.submit("one", "a", gpus=4)
    second = c.submit("two", "b", gpus=4)
    assert set(claims_of(first)) == {"one"} and not of_kind(second, Claimed) and not of_kind(second, Placed)
    hold = Explainer(c.engine.state).hold(c.workload("two"))
    assert (hold.kind, hold.until is not None) == (HoldKind.PROTECTED, True)


def test_what_victims_free_beyond_the_need_goes_to_the_next_in_order() -> None:
    """Rule 19: one run of 8 goes, two of 4 start."""
    c = Cluster({"a": 1, "b": 1, "c": 1})
    c.running("wide", "c", gpus=8, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    c.submit("one", "a", gpus=4)
    step = c.submit("two", "b", gpus=4)
    assert not of_kind(step, StopDecided) and set(claims_of(step)) == {"two"}
    run = c.run("wide")
    placed = of_kind(c.later(c.policy.pass_interval_ms, MemberReleased(run, HostName("h1"))), Placed)
    assert sorted(p.workload for p in placed if isinstance(p, Placed)) == ["one", "two"]


def test_a_late_team_reaches_its_share() -> None:
    """G1-16: not the guarantee alone is reclaimed."""
    c = Cluster({"a": 1, "b": 1})
    for n in range(8):
        c.running(f"early{n}", "a", gpus=1, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    stops = [s for n in range(4) for s in of_kind(c.submit(f"late{n}", "b", gpus=1), StopDecided)]
    assert len(stops) == 4


def test_the_tier_is_compared_first_and_alone() -> None:
    """G1-19: over_budget_priority is not outbid by any history."""
    tree = tuple(
        Budget(BudgetId(name), name, weight=WEIGHT, over_budget_priority=tier) for name, tier in (("hi", 1), ("lo", 0))
    )
    c = Cluster(tree=tree, policy=Policy(lookback_ms=HOUR))
    c.running("high", "hi", gpus=8, min_runtime=MINUTE, resumable=True)
    c.later(3 * HOUR)
    for name in ("hi", "lo"):
        c.engine.state.ledgers.seed([BudgetId(name)], (100 if name == "hi" else 5) * GPU_HOUR)
    assert not of_kind(c.submit("low", "lo", gpus=8), StopDecided)


@pytest.mark.parametrize(("low", "high"), [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("claimant", ["low", "high"])
def test_small_weights_mix_no_units(low: str, high: str, claimant: str) -> None:
    """G1-21: weights 0.01 and 0.02, one below its share and one above; never the one below is evicted."""
    tree = tuple(Budget(BudgetId(n), n, weight=w) for n, w in (("a", WEIGHT // 100), ("b", WEIGHT // 50)))
    c = Cluster(tree=tree, policy=Policy(lookback_ms=HOUR))
    c.running("of-low", low, gpus=1, min_runtime=MINUTE, resumable=True)
    c.running("of-high", high, gpus=7, min_runtime=MINUTE, resumable=True)
    c.later(3 * HOUR)
    stops = of_kind(c.submit("new", low if claimant == "low" else high, gpus=4), StopDecided)
    expected = ["of-high~1"] if claimant == "low" else []
    assert [s.run for s in stops if isinstance(s, StopDecided)] == expected


def test_a_label_that_no_host_has_evicts_nobody() -> None:
    """G2-04."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    for n in range(10):
        c.running(f"one{n}", "b", gpus=1, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    step = c.submit("odd", "a", gpus=8, needs=(("model", "h900"),))
    assert not of_kind(step, StopDecided)
    assert Explainer(c.engine.state).hold(c.workload("odd")).kind is HoldKind.NO_SHAPE
    stops = of_kind(c.submit("feasible", "b", gpus=8, priority=1), StopDecided)
    hosts = {h for s in stops if isinstance(s, StopDecided) for h in c.engine.state.runs[s.run].members}
    assert len(hosts) == 1 and len(stops) == 2


def test_the_victim_that_loses_least_goes() -> None:
    """G2-06."""
    c = Cluster(hosts={"h1": 4})
    for n in (3, 1, 2, 0):
        c.running(f"one{n}", "b", gpus=1, min_runtime=MINUTE, resumable=True)
        c.later(10 * MINUTE)
    c.later(HOUR)
    (stop,) = of_kind(c.submit("single", "a", gpus=1), StopDecided)
    assert isinstance(stop, StopDecided) and stop.run == "one0~1"


def test_two_equals_evict_each_other_at_most_once() -> None:
    """G2-11: 200 turns on one host, minimum 60 s, equal in all that may be compared."""
    c = Cluster({"a": 1})
    c.submit("one", gpus=8, min_runtime=MINUTE, resumable=True)
    c.submit("two", gpus=8, min_runtime=MINUTE, resumable=True)
    c.start("one")
    stops = [s for _ in range(200) for s in of_kind(c.later(MINUTE), StopDecided)]
    assert not stops


# -- fair_share.json ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("min_runtime_s", "ran_s", "charged", "protected"),
    [
        (0, 0, False, False),
        (0, 3600, False, False),
        (900, 0, True, True),
        (900, 899, True, True),
        (900, 900, True, False),
        (900, 901, True, False),
        (28800, 28799, True, True),
    ],
)
def test_charge_and_protection(min_runtime_s: int, ran_s: int, charged: bool, protected: bool) -> None:
    c = Cluster()
    c.running("w", "a", gpus=1, min_runtime=min_runtime_s * 1000)
    c.later(ran_s * 1000)
    run = c.engine.state.runs[c.run("w")]
    used = c.engine.state.ledgers.used(BudgetId("a"), c.now, c.policy.lookback_ms)
    placed_ms = c.now - run.placed_at
    assert ((used == placed_ms * GPU and used > 0) or not placed_ms) if charged else used == 0
    assert run.protected(c.now) is protected


def test_usage_over_budget_order() -> None:
    weights, used = {"a1": 35, "b2": 20, "c3": 45}, {"a1": 28.0, "b2": 25.0, "c3": 47.0}
    assert ranked(weights, used) == ["a1", "c3", "b2"]


def test_usage_normalisation() -> None:
    ledgers = Ledgers()
    ledgers.service.change(0, 10 * GPU)
    ledgers.seed([BudgetId("q")], 24 * GPU_HOUR)
    window = 10 * HOUR
    assert Fraction(ledgers.used(BudgetId("q"), window, window), ledgers.in_service(window, window)) == Fraction("0.24")


def test_hierarchical_weighted_share() -> None:
    weights = {"C1": 1, "C1/1A": 1, "C1/1B": 1, "C1/1C": 3, "C2": 1, "C2/2A": 1}
    fractions = BudgetTree.of(budgets(weights)).fractions
    shares = {b.rpartition("/")[2]: 300 * fractions[BudgetId(b)] for b in weights}
    assert shares == {"C1": 150, "C2": 150, "1A": 30, "1B": 30, "1C": 90, "2A": 150}


def test_fair_tree_takes_all_of_a_branch_before_the_next() -> None:
    """slurm_fair_tree, the idea: depth first by standing among siblings, whatever the leaves' own balances say."""
    weights = {"A": 40, "A/a": 30, "A/b": 10, "B": 60, "B/a": 25, "B/b": 35}
    used = {"A/a": 20.0, "A/b": 25.0, "B/a": 25.0, "B/b": 0.0}
    assert ranked(weights, used) == ["B/b", "B/a", "A/a", "A/b"]


def test_the_queue_is_one_total_order() -> None:
    """Rule 6: leaf by leaf, priority inside a leaf only, unallocated last."""
    c = Cluster({"a": 1, "b": 1}, hosts={"h1": 1})
    c.running("full", "a", gpus=1, min_runtime=8 * HOUR)
    c.later(DAY)
    for wid, budget, minimum, priority in (
        ("a-low", "a", HOUR, 0),
        ("a-high", "a", HOUR, 5),
        ("b-low", "b", HOUR, 0),
        ("b-free", "b", 0, 9),
        ("a-free", "a", 0, 0),
    ):
        c.submit(wid, budget, gpus=1, min_runtime=minimum, priority=priority, needs=(("no", "host"),))
    assert queue_order(c.engine.state) == ["b-low", "a-high", "a-low", "a-free", "b-free"]


def test_what_waits_in_a_budget_that_was_divided_is_not_forgotten() -> None:
    """An edit of the inventory gave children to a budget in which workloads wait: both take their turns."""
    c = Cluster({"a": 1}, {"h1": 8})
    c.running("before", "a")
    c.submit("old", "a", 4)
    c.see(InventoryLoaded(c.policy, budgets({"a": 1, "a/x": 1}), (Host(HostName("h1"), 8),)))
    c.submit("new", "a/x", 4)
    c.finish("before")
    c.later(PASS)
    assert c.run("old") and c.run("new")
