"""What people read of a reservation (rule 21): on workloads, on runs and hosts in the way, in plans that break it."""

from __future__ import annotations

from opsconsole.presenting.drain_plans import plan_drain
from opsconsole.presenting.explaining import explain_anything
from opsconsole.presenting.host_plans import plan_cordon
from opsconsole.presenting.reserved import of_run, on_host, planned_anew
from scheduler_core.ids import HostName, RunId
from scheduler_core.units import HOUR
from tests.core.clusters import Cluster
from tests.ui.worlds import FakeSource


def waiting_gang() -> FakeSource:
    """`gang` needs both hosts; on one of them `long` is protected for four hours."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("long", "b", 8, 4 * HOUR)
    c.submit("gang", "a", 16, HOUR)
    return FakeSource(c)


def test_who_waits_and_who_is_in_the_way_are_told() -> None:
    view = waiting_gang().view()
    gang, run = (explain_anything(view, name) for name in ("gang", "long~1"))
    assert gang is not None and run is not None
    assert any("h1, h2 reserved for it, until" in line for line in gang.lines)
    assert "From then on these GPUs are its: balances that turn and later arrivals take nothing away." in gang.lines
    assert any(line.startswith("GPUs of it are reserved for gang from ") for line in run.lines)
    assert of_run(view, RunId("long~1")).startswith("gang from ")
    assert [mask for mask, _ in on_host(view, HostName("h2"))] == [0xFF]


def test_a_plan_says_what_it_does_to_promises() -> None:
    view = waiting_gang().view()
    for plan in (plan_cordon(view, ["h2"]), plan_drain(view, ["h1"])):
        assert any(line.startswith("reserved there and planned anew: gang from ") for line in plan.effect)
    assert not planned_anew(view, [])
