"""Plans that change who goes first: budgets, priorities, weights, usage; and what each says of the queue."""

from __future__ import annotations

import pytest

from opsconsole.presenting.budget_plans import parse_weight, plan_forget, plan_weight
from opsconsole.presenting.budgets import budgets_table
from opsconsole.presenting.changes import changes
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.queue import queue_table
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_plans import plan_cancel, plan_move, plan_priority, plan_release
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.observations import By, HoldRequested, UsageForgotten, WeightChanged, WorkloadMoved
from scheduler_core.units import HOUR, WEIGHT
from tests.core.clusters import Cluster
from tests.ui.worlds import FakeSource, busy_world

BY = By("kim", "a deadline", "OPS-7")


@pytest.fixture
def source() -> FakeSource:
    return busy_world()


def order(view: ClusterView) -> list[str]:
    return [row.key for row in queue_table(view).rows]


def contested() -> FakeSource:
    """Two teams that have used the same but for a little; three of a and two of b wait."""
    source = FakeSource(Cluster({"a": 1, "b": 1}, {"h1": 8}))
    source.cluster.running("first", "a", 8, HOUR)
    for wid, budget in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b"), ("a3", "a")):
        source.cluster.submit(wid, budget, 8)
    return source


def carried_out(source: FakeSource, plan: Plan) -> list[str]:
    """The queue as it is then."""
    source.happen(*plan.observations(BY))
    return order(source.view())


def test_a_move_says_where_it_will_stand_and_stands_there(source: FakeSource) -> None:
    source = contested()
    before = order(source.view())
    assert before == ["b1", "b2", "a1", "a2", "a3"]
    plan = plan_move(source.view(), ["a3"], "b")
    assert plan.effect == ("a3: 5th in the queue, then 3rd", "of the others that wait 2 move down")
    assert plan.command == "opsconsole move a3 --to b --reason '…'" and plan.undo == "move a3 --to a"
    assert plan.observations(BY) == [WorkloadMoved(WorkloadId("a3"), BY, BudgetId("b"))]
    assert carried_out(source, plan) == ["b1", "b2", "a3", "a1", "a2"]


def test_a_run_that_is_moved_stays_charged_where_it_is(source: FakeSource) -> None:
    (row,) = plan_move(source.view(), ["w5"], "nlp").table.rows
    assert [cell.text for cell in row.cells][1:] == [
        "running in olmo/eval",
        "in nlp; its run stays charged where it is",
    ]


@pytest.mark.parametrize(
    ("to", "missing"),
    [
        ("", "say to which budget: nlp, olmo/eval, olmo/pretrain, vision"),
        ("nlpp", "nlpp: no such budget; did you mean nlp?"),
        ("olmo", "olmo has budgets below it, and only those hold workloads: olmo/eval, olmo/pretrain"),
    ],
)
def test_a_move_needs_a_leaf(source: FakeSource, to: str, missing: str) -> None:
    plan = plan_move(source.view(), ["w7"], to)
    assert plan.possible and plan.missing == missing and plan.command == ""


def test_workloads_of_several_budgets_are_moved_by_one_plan_that_nothing_takes_back(source: FakeSource) -> None:
    plan = plan_move(source.view(), ["w7", "w9", "w8"], "nlp")
    assert plan.targets == ("w7", "w9") and plan.undo == ""
    assert plan.refused == ("w8: it is in nlp already",)


def test_a_higher_priority_goes_first_within_the_budget() -> None:
    source = contested()
    plan = plan_priority(source.view(), ["a3"], "10")
    assert plan.effect == ("a3: 5th in the queue, then 3rd", "of the others that wait 2 move down")
    assert plan.undo == "priority a3 --to 0"
    assert carried_out(source, plan) == ["b1", "b2", "a3", "a1", "a2"]
    assert plan_priority(source.view(), ["a3"], "10").refused == ("a3: its priority is 10 already",)
    for wrong in ("high", "1.5", "99999999"):
        assert plan_priority(source.view(), ["a3"], wrong).missing == (
            f"{wrong!r} will not do: say a whole number; higher goes first within the budget"
        )


def test_who_waits_behind_what_is_cancelled_moves_up() -> None:
    source = contested()
    assert plan_cancel(source.view(), ["b2"]).effect == ("of the others that wait 3 move up",)
    source.happen(HoldRequested(WorkloadId("b1"), BY))
    assert plan_release(source.view(), ["b1"]).effect == ("b1: 1st in the queue, as before",)


# -- weights -----------------------------------------------------------------------------------------------------------


def test_a_weight_shows_every_share_that_changes_and_how_it_stands_to_the_inventory() -> None:
    source = contested()
    plan = plan_weight(source.view(), ["b"], "3")
    assert [[cell.text for cell in row.cells] for row in plan.table.rows] == [
        ["b", "weight 1, 50.0% of the cluster", "weight 3, 75.0%"],
        ["a", "weight 1, 50.0% of the cluster", "weight 1, 25.0%"],
    ]
    assert plan.effect == ("the inventory says 1: this lasts until it says another; edit it there to keep it",)
    assert (plan.command, plan.undo) == ("opsconsole weight b --to 3 --reason '…'", "weight b --to 1")
    assert plan.observations(BY) == [WeightChanged(BudgetId("b"), 3 * WEIGHT, BY)]
    source.happen(*plan.observations(BY))
    assert next(row for row in budgets_table(source.view()).rows if row.key == "b").cells[1].text == "3≠1"
    back = plan_weight(source.view(), ["b"], "1")
    assert back.effect == ("as the inventory says: nothing is by hand then",)


def test_a_weight_that_turns_standings_says_who_moves() -> None:
    source = contested()
    plan = plan_weight(source.view(), ["b"], "0")
    assert plan.effect[1:] == ("of the others that wait 3 move up, 2 move down",)
    assert carried_out(source, plan) == ["a1", "a2", "a3", "b1", "b2"]


@pytest.mark.parametrize(
    ("budgets", "to", "says"),
    [
        (["visio"], "3", "visio: no such budget; did you mean vision?"),
        (["vision"], "30", "vision: its weight is 30 already"),
        (
            ["vision", "nlp"],
            "3",
            "vision, nlp: weights are changed one by one, for each changes the shares of the others",
        ),
    ],
)
def test_what_no_weight_can_be_changed_of(source: FakeSource, budgets: list[str], to: str, says: str) -> None:
    plan = plan_weight(source.view(), budgets, to)
    assert not plan.possible and plan.refused[0].startswith(says)


@pytest.mark.parametrize(
    ("text", "millionths"), [("3", 3_000_000), ("2.5", 2_500_000), ("0", 0), ("-1", None), ("nan", None), ("1e9", None)]
)
def test_weights_are_read_as_in_inventories(source: FakeSource, text: str, millionths: int | None) -> None:
    assert parse_weight(text) == millionths
    plan = plan_weight(source.view(), ["vision"], text)
    assert bool(plan.missing) is (millionths is None)


def test_a_weight_that_somebody_else_changed_meanwhile_is_said(source: FakeSource) -> None:
    seen = plan_weight(source.view(), ["nlp"], "3")
    source.happen(WeightChanged(BudgetId("nlp"), 5 * WEIGHT, By("lee")))
    assert changes(seen, plan_weight(source.view(), ["nlp"], "3")) == ["nlp: was 10000000, is 5000000"]


# -- usage -------------------------------------------------------------------------------------------------------------


def test_forgetting_shows_the_budget_and_all_below_it_and_who_keeps_what(source: FakeSource) -> None:
    plan = plan_forget(source.view(), ["olmo/eval"])
    assert plan.effect[:2] == ("olmo keeps what it was charged", "this cannot be taken back") and plan.undo == ""
    (row,) = plan.table.rows
    assert [cell.text for cell in row.cells][1:] == [
        "got 3.7 GPU-h, balance 0.00, rank 1 below olmo",
        "got 0.0 GPU-h, balance 0.00, rank 1 below olmo",
    ]
    below = {row.key for row in plan_forget(source.view(), ["olmo"]).table.rows}
    assert below == {"olmo", "olmo/eval", "olmo/pretrain"}
    assert plan.observations(BY) == [UsageForgotten(BudgetId("olmo/eval"), BY)]


def test_who_is_forgiven_goes_first_as_the_plan_says() -> None:
    source = contested()
    source.cluster.later(HOUR)
    assert order(source.view()) == ["b1", "b2", "a1", "a2", "a3"]
    plan = plan_forget(source.view(), ["a"])
    assert plan.effect == ("this cannot be taken back", "of the others that wait 3 move up, 2 move down")
    assert order(source.view()) == ["b1", "b2", "a1", "a2", "a3"], "looking ahead changes nothing"
    assert carried_out(source, plan) == ["a1", "a2", "a3", "b1", "b2"]


def test_what_has_used_nothing_has_nothing_to_forget() -> None:
    source = contested()
    assert plan_forget(source.view(), ["b", "c"]).refused == (
        "c: no such budget; there are a, b",
        "b: it has used nothing",
    )
