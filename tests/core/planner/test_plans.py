"""Whole plans (rule 18): nobody goes who could stay, and no plan takes more than `max_blast` allows."""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.decisions import Claimed, StopDecided
from scheduler_core.fairshare import Standings, turn_comes_after
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.units import GPU, HOUR, MINUTE
from tests.core.clusters import PASS, Cluster, budgets, of_kind


def test_a_victim_that_another_one_makes_needless_stays() -> None:
    """The cheapest victim of the first host is needless once a gang must go for the second: it frees both."""
    c = Cluster({"a": 1, "b": 1}, {"h1": 8, "h2": 8})
    c.running("gang", "a", 8, HOUR, hosts=2, gpus_per_host=4)
    c.running("cheap", "a", 4, HOUR)
    c.running("protected", "a", 4, 8 * HOUR)
    assert c.host("h1").runs == [c.run("gang"), c.run("cheap")]
    c.later(HOUR)
    step = c.submit("claimant", "b", 8, HOUR, hosts=2, gpus_per_host=4)
    assert [stop.run for stop in of_kind(step, StopDecided)] == [c.run("gang")]


def test_room_below_a_cap_is_not_made_by_a_blast() -> None:
    """One GPU is wanted below a cap that one run of 8 fills: that is more than twice as much, so it waits a while."""
    tree = tuple(replace(b, max_gpus=8) if b.id == BudgetId("a") else b for b in budgets({"a": 1, "a/x": 1, "a/y": 1}))
    c = Cluster(hosts={"h1": 8, "h2": 8}, tree=tree)
    c.running("large", "a/y", 8, HOUR)
    c.later(2 * HOUR)
    step = c.submit("small", "a/x", 1, HOUR)
    assert not of_kind(step, StopDecided) and not of_kind(step, Claimed)
    c.later(c.policy.blast_patience_ms - MINUTE)
    assert c.engine.state.runs[c.run("large")].stop is None
    step = c.later(MINUTE)
    then = c.later(PASS)
    assert [stop.run for stop in (*of_kind(step, StopDecided), *of_kind(then, StopDecided))] == [c.run("large")]


def test_of_two_hosts_that_change_at_once_each_is_looked_at_by_its_own_size() -> None:
    """The first is smaller, and held by a budget that stands better; the second is what the claimant waited for."""
    c = Cluster({"a": 1, "b": 1, "c": 64}, {"small": 4, "large": 8, "other": 8})
    c.running("0-better", "c", 8, HOUR)
    c.later(HOUR)
    c.running("1-better", "c", 4, HOUR)
    c.running("2-worse", "a", 8, HOUR - PASS)  # both are past their protection at the same instant
    c.submit("claimant", "b", 8, HOUR)
    step = c.later(HOUR)
    assert [stop.run for stop in of_kind(step, StopDecided)] == [c.run("2-worse")]


def test_whose_turn_has_passed_is_as_it_was_when_the_turn_came() -> None:
    """What is committed in a turn moves its branch down the order, and gives nobody a second turn."""
    c = Cluster({"a": 1, "b": 1, "c": 1, "c/x": 1, "c/y": 1})
    standings = Standings(c.engine.state)
    leaves = [BudgetId(leaf) for leaf in ("a", "b", "c/x", "c/y")]
    turn_comes = turn_comes_after(standings, BudgetId("b"))
    assert [turn_comes(leaf) for leaf in leaves] == [False, True, True, True]
    standings.commit(c.engine.state.budgets.chains[BudgetId("b")], 8 * GPU * HOUR)
    assert standings.ranked(ROOT)[-1] == "b" and [turn_comes(leaf) for leaf in leaves] == [False, True, True, True]
