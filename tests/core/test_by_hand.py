"""What people change while the cluster runs: weights, usage that is forgiven, cordons and holds for a while."""

from __future__ import annotations

from scheduler_core.fairshare import Standings
from scheduler_core.fleet import Host, HostState
from scheduler_core.ids import ROOT, BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.lapses import TIMER, lapsed
from scheduler_core.observations import (
    CordonRequested,
    DrainRequested,
    HoldRequested,
    InventoryLoaded,
    UndrainRequested,
    UsageForgotten,
    WeightChanged,
)
from scheduler_core.units import GPU, HOUR, MINUTE, WEIGHT
from scheduler_core.workload import WorkloadPhase
from tests.core.clusters import OPS, PASS, Cluster, budgets

A, B = BudgetId("a"), BudgetId("b")


def reload(cluster: Cluster, **weights: int) -> None:
    fleet = tuple(Host(HostName(name), gpus) for name, gpus in cluster.hosts.items())
    cluster.see(InventoryLoaded(cluster.policy, budgets(weights), fleet))


def weight(cluster: Cluster, budget: BudgetId = A) -> float:
    return cluster.engine.state.budgets.by_id[budget].weight / WEIGHT


# -- weights ---------------------------------------------------------------------------------------------------------


def test_a_weight_by_hand_counts_until_the_inventory_says_another() -> None:
    cluster = Cluster({"a": 1, "b": 1})
    cluster.see(WeightChanged(A, 3 * WEIGHT, OPS))
    assert weight(cluster) == 3 and cluster.engine.state.weights[A].instead_of == WEIGHT
    reload(cluster, a=1, b=5)
    assert (weight(cluster), weight(cluster, B)) == (3, 5), "a restart and an edit of others leave it"
    reload(cluster, a=2, b=5)
    assert weight(cluster) == 2 and not cluster.engine.state.weights, "the file has the last word"


def test_the_weight_of_the_inventory_again_is_nothing_by_hand() -> None:
    cluster = Cluster({"a": 1, "b": 1})
    cluster.see(WeightChanged(A, 3 * WEIGHT, OPS))
    cluster.see(WeightChanged(A, 0, OPS))
    assert weight(cluster) == 0 and cluster.engine.state.weights[A].instead_of == WEIGHT
    cluster.see(WeightChanged(A, WEIGHT, OPS))
    assert weight(cluster) == 1 and not cluster.engine.state.weights


def test_a_budget_that_leaves_the_inventory_takes_its_weight_by_hand_along() -> None:
    cluster = Cluster({"a": 0, "b": 1})
    cluster.running("w", "a")
    cluster.see(WeightChanged(A, 3 * WEIGHT, OPS))
    reload(cluster, b=1)
    assert weight(cluster) == 0 and not cluster.engine.state.weights


def test_who_stands_better_by_a_new_weight_goes_first() -> None:
    cluster = Cluster({"a": 1, "b": 1})
    cluster.running("old", "a", 8, MINUTE)
    cluster.later(2 * HOUR)
    cluster.submit("more", "b")
    assert Standings(cluster.engine.state).ranked(ROOT) == [B, A], "b has had nothing"
    cluster.see(WeightChanged(A, 1000 * WEIGHT, OPS), WeightChanged(BudgetId("gone"), WEIGHT, OPS))
    assert Standings(cluster.engine.state).ranked(ROOT) == [A, B]


# -- usage that is forgiven ------------------------------------------------------------------------------------------


def used(cluster: Cluster, budget: str) -> float:
    """In GPU-hours."""
    return Standings(cluster.engine.state).usage(BudgetId(budget)) / (GPU * HOUR)


def test_forgetting_clears_a_budget_and_what_is_below_it_and_leaves_those_above() -> None:
    cluster = Cluster({"a": 1, "a/x": 1, "a/y": 1}, {"h1": 8, "h2": 8})
    cluster.running("w1", "a/x")
    cluster.running("w2", "a/y")
    cluster.later(HOUR - 2 * PASS)
    cluster.see(UsageForgotten(BudgetId("a/x"), OPS))
    assert used(cluster, "a/x") == 0 and used(cluster, "a/y") > 7 and used(cluster, "a") > 15
    cluster.later(HOUR)
    assert used(cluster, "a/x") == 8, "what it holds is charged as before"
    cluster.see(UsageForgotten(A, OPS))
    assert [used(cluster, name) for name in ("a", "a/x", "a/y")] == [0, 0, 0]


def test_what_is_known_late_of_a_time_that_was_forgotten_is_forgotten_too() -> None:
    cluster = Cluster({"a": 1, "b": 1})
    cluster.running("w1", "a")
    cluster.later(HOUR)
    cluster.see(UsageForgotten(A, OPS))
    cluster.later(MINUTE)
    cluster.finish("w1", ago_ms=30 * MINUTE)
    assert used(cluster, "a") == 0, "its GPUs were free before that; and never below nothing"


def test_a_late_release_in_the_same_tick_is_no_debt() -> None:
    cluster = Cluster({"a": 1, "a/x": 1})
    cluster.running("w1", "a/x")
    cluster.later(HOUR, UsageForgotten(BudgetId("a/x"), OPS))
    cluster.finish("w1", ago_ms=10 * MINUTE)
    assert used(cluster, "a/x") == 0 and 6 < used(cluster, "a") < 7


# -- for a while -----------------------------------------------------------------------------------------------------


def test_a_cordon_for_a_while_is_lifted_in_the_name_of_the_timer() -> None:
    cluster = Cluster()
    cluster.see(CordonRequested(HostName("h1"), OPS, cluster.now + HOUR))
    assert lapsed(cluster.engine.state, cluster.now + HOUR - 1) == []
    (over,) = lapsed(cluster.engine.state, cluster.now + HOUR)
    assert isinstance(over, UndrainRequested)
    assert (over.by.actor, over.by.reason) == (TIMER, "the time of this cordon is over (ops: because)")
    cluster.later(HOUR, over)
    assert cluster.host("h1").state is HostState.SERVING and lapsed(cluster.engine.state, cluster.now) == []


def test_what_somebody_does_meanwhile_ends_the_while() -> None:
    """A drain of a cordoned host is not undone by the end of the cordon."""
    cluster = Cluster()
    until = cluster.now + HOUR
    cluster.see(CordonRequested(HostName("h1"), OPS, until))
    cluster.see(DrainRequested(DrainId("d1"), HostName("h1"), OPS))
    assert lapsed(cluster.engine.state, until) == []


def test_a_hold_for_a_while_waits_again_by_itself() -> None:
    cluster = Cluster()
    cluster.running("first")
    cluster.submit("w")
    cluster.see(HoldRequested(WorkloadId("w"), OPS, cluster.now + HOUR))
    assert cluster.workload("w").phase is WorkloadPhase.HELD
    cluster.later(HOUR, *lapsed(cluster.engine.state, cluster.now + HOUR))
    assert cluster.workload("w").phase is WorkloadPhase.WAITING
