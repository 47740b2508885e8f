"""Faults that other schedulers had (field_reports.json), in what people are shown before they say yes."""

from __future__ import annotations

from opsconsole.presenting.host_plans import plan_undrain
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName
from scheduler_core.observations import By, CordonRequested
from tests.core.clusters import Cluster
from tests.ui.worlds import FakeSource

UPDATE, XID = By("kim", "kernel update"), By("opsconsole", "XID 79")


def test_a_bulk_return_names_the_host_that_is_out_for_another_reason() -> None:
    """G3-11: nine hosts, one with a fault; hosts stand by their reason, and who brings them back is recorded."""
    hosts = [f"gpu{n:03}" for n in range(1, 10)]
    source = FakeSource(Cluster(hosts=dict.fromkeys(hosts, 8)))
    for host in hosts:
        source.happen(CordonRequested(HostName(host), XID if host == "gpu004" else UPDATE))
    plan = plan_undrain(source.view(), hosts)
    assert plan.effect[0] == (
        "taken out for different reasons: XID 79 (opsconsole): gpu004; kernel update (kim): 8 hosts"
    )
    assert plan.table.rows[0].key == "gpu004" and plan.possible
    source.happen(*plan.observations(By("ada", "after the update")))
    records = source.state.hosts.values()
    assert {r.state for r in records} == {HostState.SERVING} and {r.by for r in records} == {
        By("ada", "after the update")
    }


def test_one_reason_for_all_needs_no_line() -> None:
    source = FakeSource(Cluster(hosts={"h1": 8, "h2": 8}))
    source.happen(CordonRequested(HostName("h1"), UPDATE), CordonRequested(HostName("h2"), UPDATE))
    assert plan_undrain(source.view(), ["h1", "h2"]).effect == ("serving then: 2 hosts with 16 GPUs",)
