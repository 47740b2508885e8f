"""What needs a person: all on which only a person can act, each with what to do, here and in its explanation."""

from __future__ import annotations

from typing import Any

import pytest

from opsconsole.presenting.explaining import explain_anything
from opsconsole.presenting.history import day
from opsconsole.presenting.host_plans import plan_undrain
from opsconsole.presenting.host_rows import hosts_table
from opsconsole.presenting.needs import Need, needs, needs_table
from opsconsole.presenting.overview import figures, host_map
from opsconsole.presenting.view import InventoryChange, PendingInventory
from opsconsole.ui.subjects import explained, subjects
from opsconsole.ui.widgets.table import Table
from scheduler_core.ids import DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    AutoDrainProposed,
    By,
    DrainRequested,
    HoldRequested,
    HostStale,
    UndrainRequested,
)
from tests.ui.worlds import FakeSource, busy_world, wide_world

BY = By("kim", "fan change")


@pytest.fixture
def source() -> FakeSource:
    return busy_world()


def need(source: FakeSource, key: str) -> Need:
    return next(n for n in needs(source.view()) if n.key == key)


def fallen(slot: int, at_s: float = 100.0) -> dict[str, Any]:
    text = "NVRM: Xid (PCI:0000:10:00): 79, GPU has fallen off the bus."
    return {"monotonic_s": at_s, "text": text, "xid": {"code": 79, "pci": f"0000:1{slot}:00.0", "sxid": False}}


def with_fallen_gpu(source: FakeSource, host: str, slot: int) -> None:
    """100 s after its boot, a minute ago."""
    probe = source.probes[host] | {"uptime_s": 160.0}
    source.probes[host] = probe | {"gpus": [gpu | {"pci": f"0000:1{gpu['slot']}:00.0"} for gpu in probe["gpus"]]}
    source.kernels[host] = [fallen(slot)]


def test_alarms_come_first_then_the_oldest(source: FakeSource) -> None:
    rows = needs_table(source.view(), {"store": "the disk is full"}).rows
    assert [row.key for row in rows] == ["alarm:store", "host:gpu006", "host:gpu003:health"]
    assert rows[1].data["why"] == "1 run unverified: auth failed: Permission denied (publickey)"


def test_without_a_leader_that_is_the_first(source: FakeSource) -> None:
    source.leader = "nobody"
    source.alarms["store"] = "the disk is full"
    first, second = needs(source.view())[:2]
    assert first.why.startswith("NO LEADER: nothing starts") and "opsconsole serve" in first.todo
    assert second.key == "alarm:store"
    (shown, *_) = figures(source.view(), day(source.state), 120)
    assert "Availability was " in "".join(cell.text for cell in shown), "nobody keeps it true"
    assert explained(source.view(), "leader:").parts[1] == f"What to do: {first.todo}."


def test_a_sick_host_that_serves_is_marked_and_told_with_its_xid_until_it_serves_no_more(source: FakeSource) -> None:
    with_fallen_gpu(source, "gpu004", 3)
    found = need(source, "host:gpu004:health")
    assert found.why == "serves and fails: GPU 3: XID 79, GPU fell off the bus, 1m ago"
    assert found.todo.startswith("drain it; then reboot")
    row = next(row for row in hosts_table(source.view()).rows if row.key == "gpu004")
    assert (row.data["health"], row.cells[2].text) == ("fail", "✖ fail")
    assert [cell.text for cell in host_map(source.view(), 40, 5)[0]][3] == "!"
    explained = explain_anything(source.view(), "gpu004")
    said = explained.lines if explained is not None else []
    assert said[-2:] == [f"Needs a person: {found.why}.", f"What to do: {found.todo}."]
    source.happen(DrainRequested(DrainId("d4"), HostName("gpu004"), BY))
    assert "host:gpu004:health" not in [n.key for n in needs(source.view())]


def test_a_fatal_error_from_before_a_person_returned_the_host_has_been_seen_to() -> None:
    source = wide_world(1, 8)
    with_fallen_gpu(source, "gpu001", 3)
    source.happen(DrainRequested(DrainId("d1"), HostName("gpu001"), BY))
    source.happen(UndrainRequested(HostName("gpu001"), BY), later_ms=1000)
    assert needs(source.view()) == []
    source.cluster.later(10_000)
    source.kernels["gpu001"] = [fallen(3, at_s=160.0)]
    assert need(source, "host:gpu001:health").why.endswith("0s ago")


@pytest.mark.parametrize("code", [31, 43, 45, 9999])
def test_an_error_that_is_not_fatal_leaves_a_host_sound(code: int) -> None:
    source = wide_world(1, 8)
    with_fallen_gpu(source, "gpu001", 3)
    source.kernels["gpu001"][0]["xid"]["code"] = code
    assert needs(source.view()) == []


def test_what_health_asks_a_person_for_is_told_with_what_to_do(source: FakeSource) -> None:
    with_fallen_gpu(source, "gpu004", 3)
    source.happen(AutoDrainProposed(DrainId("a"), HostName("gpu004"), "GPU 3: xid:79", False, ("xid:79",), True))
    (found,) = [need for need in needs(source.view()) if need.about == "gpu004"]
    assert found.why == "health asks for its drain: GPU 3: xid:79" and found.todo.startswith("drain gpu004 confirms it")
    plan = plan_undrain(source.view(), ["gpu004"])
    assert not plan.refused and "health asks for its drain: GPU 3" in plan.table.rows[0].cells[1].text
    source.happen(UndrainRequested(HostName("gpu004"), BY))
    assert not [need for need in needs(source.view()) if need.about == "gpu004"], "seen to, with its log"


def test_faults_of_many_hosts_at_once_are_one_incident_and_come_first() -> None:
    source = wide_world(12, 8)
    for n in (3, 5, 8):
        with_fallen_gpu(source, f"gpu{n:03}", n % 8)
    first, *others = needs(source.view())
    assert first.key == "incident:cluster" and first.what == "3 hosts"
    assert first.why == "one incident, cluster: 3 hosts within minutes (gpu003, gpu005, gpu008): xid:79"
    assert [other.key for other in others] == [f"host:gpu00{n}:health" for n in (3, 5, 8)]


def test_what_the_breaker_holds_back_is_explained_by_the_thing_itself(source: FakeSource) -> None:
    proposals = [AutoDrainProposed(DrainId(f"a{n}"), HostName(f"gpu00{n}"), "XID 79", False) for n in (2, 3, 4)]
    source.happen(*proposals)
    found = need(source, "breaker:host gpu004")
    assert (found.what, found.about) == ("gpu004", "gpu004")
    assert found.why == "stopped by the breaker: draining: XID 79"
    assert found.todo == "breaker reset lets it go on; automatic cordons and drains in the last hour: 2 of 2"
    text = explained(source.view(), found.key)
    assert text.title == "Explain gpu004" and f"What to do: {found.todo}." in text.parts


def test_hosts_without_fresh_readings_are_one_line(source: FakeSource) -> None:
    source.happen(*(HostStale(HostName(f"gpu00{n}")) for n in (2, 3, 4, 5)))
    found = need(source, "silent:")
    assert found.why == "no fresh readings of gpu002, gpu003, gpu004 and 1 more: nothing is placed there"


def test_a_changed_inventory_waits_for_a_person(source: FakeSource) -> None:
    source.alarms["inventory"] = "the file has 1 change that nobody has applied"
    source.pending = PendingInventory("abc", (InventoryChange("host", "gpu009", "is new"),))
    assert "reload" in need(source, "alarm:inventory").todo
    source.pending, source.alarms["inventory"] = None, "the changed inventory is wrong, the one before stays: line 3: …"
    assert "mend the file" in need(source, "alarm:inventory").todo


def test_a_held_workload_and_a_blocked_drain_lead_to_what_they_are_about(source: FakeSource) -> None:
    source.happen(HoldRequested(WorkloadId("w9"), BY), DrainRequested(DrainId("d6"), HostName("gpu006"), BY))
    table = Table()
    table.show(needs_table(source.view()))
    for key, about, name in (("held:w9", "workload", "w9"), ("drain:d6", "host", "gpu006")):
        assert table.move_to_key(key)
        assert subjects(table, about, source.view()) == [name]
        assert explained(source.view(), key).title == f"Explain {name}"
        assert f"What to do: {need(source, key).todo}." in explained(source.view(), key).parts
