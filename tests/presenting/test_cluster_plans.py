"""Plans of the cluster as a whole: a reload, and letting go what the breaker stopped."""

from __future__ import annotations

from dataclasses import replace

from opsconsole.presenting.breaker import breaker_figures, breaker_table, plan_breaker_reset
from opsconsole.presenting.cluster_plans import plan_reload
from opsconsole.presenting.view import InventoryChange, PendingInventory
from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import AutoDrainProposed, BreakerReset, ReloadRequested
from tests.core.clusters import OPS, Cluster
from tests.ui.worlds import FakeSource


def test_a_reload_shows_each_change_and_asks_for_the_text_that_was_read() -> None:
    changes = (
        InventoryChange("host", "gpu1", "leaves with 8 GPUs", "cordoned at once"),
        InventoryChange("policy", "lookback", "7d → 1d"),
    )
    view = replace(FakeSource(Cluster()).view(), pending=PendingInventory("abc", changes))
    plan = plan_reload(view)
    assert plan.possible and [row.data["subject"] for row in plan.table.rows] == ["gpu1", "lookback"]
    assert plan.observations(OPS) == [ReloadRequested("abc", OPS)]
    edited = plan_reload(replace(view, pending=PendingInventory("def", changes)))
    assert edited.facts != plan.facts, "another text is another plan, whatever it changes"


def test_nothing_to_reload_is_done_already() -> None:
    plan = plan_reload(FakeSource(Cluster()).view())
    assert plan.done and not plan.possible and not plan.refused


def test_the_breaker_says_what_it_holds_back_and_a_reset_lets_it_go() -> None:
    c = Cluster(hosts={f"h{n}": 8 for n in range(3)})
    c.see(*(AutoDrainProposed(DrainId(f"d{n}"), HostName(f"h{n}"), "XID 79") for n in range(3)))
    view = FakeSource(c).view()
    (row,) = breaker_table(view).rows
    assert row.data == {"kind": "host", "name": "h2", "would": "draining: XID 79"}
    assert breaker_figures(view)["host_moves"] == breaker_figures(view)["host_moves_max"] == 2
    plan = plan_breaker_reset(view)
    assert plan.possible and plan.observations(OPS) == [BreakerReset(OPS)]
    c.see(BreakerReset(OPS))
    assert not breaker_table(FakeSource(c).view()).rows and c.host("h2").state.value == "draining"


def test_a_breaker_that_holds_nothing_back_needs_no_reset() -> None:
    assert plan_breaker_reset(FakeSource(Cluster()).view()).done == "the breaker stops nothing"
