"""Plans: what an action does, to whom, at what cost; what keeps it from being carried out; what has changed since."""

from __future__ import annotations

import pytest

from opsconsole.presenting.changes import changes
from opsconsole.presenting.drain_plans import plan_drain
from opsconsole.presenting.following import followed, progress
from opsconsole.presenting.host_plans import plan_cordon, plan_declare, plan_undrain
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.queue import queue_table
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_plans import plan_cancel, plan_hold, plan_release, plan_requeue
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.observations import (
    By,
    CancelRequested,
    DrainRequested,
    HoldRequested,
    HostUnreachable,
    RequeueRequested,
)
from scheduler_core.units import HOUR, MINUTE
from tests.ui.worlds import FakeSource, busy_world, wide_world

BY = By("kim", "fan change")


@pytest.fixture
def source() -> FakeSource:
    return busy_world()


def cell(plan: Plan, key: str, title: str) -> str:
    at = next(n for n, column in enumerate(plan.table.columns) if column.title == title)
    return next(row for row in plan.table.rows if row.key == key).cells[at].text


def test_a_drain_by_the_contract_waits_for_each_min_runtime_and_says_where_each_will_stand(source: FakeSource) -> None:
    plan = plan_drain(source.view(), ["gpu003", "gpu004"])
    assert plan.targets == ("gpu003", "gpu004") and plan.possible and plan.guarantees_broken == 0
    assert cell(plan, "gpu003/w3~1", "RELEASED") == "15:36"
    assert cell(plan, "gpu003/w3~1", "THEN") == "requeue, about 4th"
    assert cell(plan, "gpu004/w5~1", "RELEASED") == "now"
    assert cell(plan, "gpu004/w5~1", "THEN") == "requeue, about 2nd"
    assert cell(plan, "gpu004/w4~1", "THEN") == "ends as preempted", "it cannot be resumed, so it has no place"
    served = "serving then: 1 host with 8 GPUs"
    assert plan.effect == ("7.4 GPU-h lost in all", served, "2 hosts empty by 15:36"), "of three that answer"
    assert plan.command == "opsconsole drain gpu003 gpu004 --reason '…'"
    assert [type(o) for o in plan.observations(BY)] == [DrainRequested, DrainRequested]


def test_the_place_in_the_queue_is_the_one_that_requeueing_gives(source: FakeSource) -> None:
    plan = plan_drain(source.view(), ["gpu004"])
    said = {row.data["workload"]: row.data["queue_position"] for row in plan.table.rows}
    source.happen(*plan.observations(BY))
    source.cluster.finish("w5", 143, signalled=True)
    shown = {row.key: row.data["position"] for row in queue_table(source.view()).rows}
    assert said == {"w4": None, "w5": shown["w5"]}


def test_a_drain_that_lets_runs_finish_has_a_deadline(source: FakeSource) -> None:
    plan = plan_drain(source.view(), ["gpu003"], "finish", 3 * HOUR)
    assert cell(plan, "gpu003/w3~1", "RELEASED") == "17:32", "the deadline, later than its protection"
    assert plan.command == "opsconsole drain gpu003 --mode finish --deadline 3h --reason '…'"
    (asked,) = plan.observations(BY)
    assert isinstance(asked, DrainRequested)
    assert (asked.mode, asked.deadline_at) == ("finish", source.state.now + 3 * HOUR)


def test_a_drain_at_once_names_the_guarantee_that_it_breaks(source: FakeSource) -> None:
    plan = plan_drain(source.view(), ["gpu003"], "now")
    assert (plan.guarantees_broken, plan.effect[0]) == (1, "breaks 1 guarantee")
    assert cell(plan, "gpu003/w3~1", "THEN").startswith("BREAKS GUARANTEE; requeue")


@pytest.mark.parametrize(
    ("hosts", "drained", "says"),
    [
        (3, ["gpu001"], ("gang~1 stops on gpu002 too; its GPUs there are kept for it",)),
        (2, ["gpu001"], ("gang~1 stops on gpu002 too; its GPUs there are not kept for it",)),
        (3, ["gpu001", "gpu002"], ()),
    ],
)
def test_a_drain_says_where_else_a_gang_stops_and_whether_it_keeps_its_gpus(
    hosts: int, drained: list[str], says: tuple[str, ...]
) -> None:
    """Rule 25: as the engine does it, where nothing changes until then."""
    source = wide_world(hosts, 8)
    source.cluster.running("gang", "a", 16, 10 * MINUTE, resumable=True)
    source.cluster.later(HOUR)
    plan = plan_drain(source.view(), drained)
    assert cell(plan, "gpu001/gang~1", "THEN").endswith("gang of 2")
    assert tuple(line for line in plan.effect if line.startswith("gang")) == says
    source.happen(*plan.observations(BY))
    assert bool(source.state.workloads[WorkloadId("gang")].claim) is ("are kept" in "".join(says))


def test_a_drain_of_all_that_serves_says_so(source: FakeSource) -> None:
    assert "no host is left serving" in " ".join(plan_drain(source.view(), ["gpu002", "gpu003", "gpu004"]).effect)
    assert "no host is left" not in " ".join(plan_drain(source.view(), ["gpu002", "gpu003"]).effect)


def test_whose_drain_it_changes_is_said(source: FakeSource) -> None:
    effect = plan_drain(source.view(), ["gpu001"], "now").effect
    assert effect[-1] == "gpu001: is drained already (contract) by kim: fan change, ticket 118; that changes"


def test_of_a_lost_host_nobody_can_say_when_it_is_empty(source: FakeSource) -> None:
    plan = plan_drain(source.view(), ["gpu006", "gpu003"])
    assert cell(plan, "gpu006/w6~1", "RELEASED") == "BLOCKED"
    assert plan.effect[1] == "gpu003 empty by 15:36"
    assert plan.effect[2].startswith("gpu006: nobody can say when it is empty: host unreachable")


def test_what_cannot_be_asked_stops_and_serves_when_it_can(source: FakeSource) -> None:
    then = cell(plan_cancel(source.view(), ["w6"]), "w6", "THEN")
    assert then.startswith("stops once gpu006 can be asked (until then it counts as running) and ends")
    then = cell(plan_requeue(source.view(), ["w6"]), "w6", "THEN")
    assert then.startswith("stops once gpu006 can be asked")
    assert cell(plan_cordon(source.view(), ["gpu006"]), "gpu006", "THEN").endswith("; it cannot be asked now")
    source.happen(*plan_cordon(source.view(), ["gpu006"]).observations(BY))
    then = cell(plan_undrain(source.view(), ["gpu006"]), "gpu006", "THEN")
    assert then == "serving again; it cannot be asked now"


def test_facts_that_are_too_old_are_named(source: FakeSource) -> None:
    source.ages["gpu003"] = 30.0
    assert plan_drain(source.view(), ["gpu003", "gpu004"]).stale == ("gpu003",)


@pytest.mark.parametrize(
    ("plan", "refused"),
    [
        (lambda v: plan_drain(v, ["gpu02"]), "no host 'gpu02'; did you mean gpu002?"),
        (lambda v: plan_drain(v, ["nosuch"]), "no host 'nosuch'; there are gpu001, gpu002, gpu003 and 3 more"),
        (lambda v: plan_drain(v, ["x", "y"]), "no host 'x', 'y'; there are gpu001, gpu002, gpu003 and 3 more"),
        (lambda v: plan_undrain(v, ["gpu003", "gpu004"]), "gpu003, gpu004: undrain does nothing to a serving host"),
        (lambda v: plan_requeue(v, ["w7", "w8", "w9"]), "w7, w8, w9: no run that could be stopped"),
        (lambda v: plan_cordon(v, ["gpu005"]), "gpu005: "),
        (lambda v: plan_undrain(v, ["gpu003"]), "gpu003: "),
        (lambda v: plan_declare(v, ["gpu999"], "dead"), "no host 'gpu999'"),
        (lambda v: plan_requeue(v, ["w7"]), "w7: no run that could be stopped"),
        (lambda v: plan_cancel(v, ["w99"]), "w99: no such workload"),
        (lambda v: plan_hold(v, ["w1"]), "w1: not waiting"),
        (lambda v: plan_release(v, ["w7"]), "w7: not held"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_reason(source: FakeSource, plan: object, refused: str) -> None:
    made: Plan = plan(source.view())  # type: ignore[operator]
    assert not made.possible and made.refused[0].startswith(refused)
    assert len(made.refused) == 1 and made.table.rows == (), "one line, and no row that says otherwise"


def test_an_undrain_shows_why_each_host_was_taken_out(source: FakeSource) -> None:
    plan = plan_undrain(source.view(), ["gpu001", "gpu005"])
    assert [cell(plan, host, "NOW") for host in plan.targets] == [
        "draining: fan change, ticket 118",
        "cordoned: kernel update",
    ]


def test_workloads_are_named_with_what_becomes_of_them(source: FakeSource) -> None:
    view = source.view()
    assert cell(plan_requeue(view, ["w3"]), "w3", "THEN").startswith("stops 15:36, loses 7.4 GPU-h")
    assert cell(plan_requeue(view, ["w3"], now=True), "w3", "THEN").startswith("stops now")
    assert plan_requeue(view, ["w3"], now=True).effect == ("breaks 1 guarantee",)
    assert plan_requeue(view, ["w3"], now=True).observations(BY) == [RequeueRequested(WorkloadId("w3"), BY, True)]
    assert cell(plan_cancel(view, ["w3"]), "w3", "THEN") == "stops now and ends; 7.4 GPU-h lost"
    assert plan_cancel(view, ["w3", "w7"]).observations(BY) == [
        CancelRequested(WorkloadId("w3"), BY),
        CancelRequested(WorkloadId("w7"), BY),
    ]
    source.happen(*plan_hold(view, ["w7"]).observations(BY))
    assert cell(plan_release(source.view(), ["w7"]), "w7", "NOW") == "held: fan change"


def test_a_plan_asks_for_no_more_than_it_names(source: FakeSource) -> None:
    plan = plan_hold(source.view(), ["w7", "w1", "w99"])
    assert plan.targets == ("w7",)
    assert plan.observations(BY) == [HoldRequested(WorkloadId("w7"), BY)]


# -- what has changed since ------------------------------------------------------------------------------------------


def test_nothing_has_changed_while_only_time_goes_by(source: FakeSource) -> None:
    seen = plan_drain(source.view(), ["gpu003"])
    source.cluster.later(MINUTE)
    assert changes(seen, plan_drain(source.view(), ["gpu003"])) == []


def test_what_has_changed_is_said(source: FakeSource) -> None:
    seen = plan_drain(source.view(), ["gpu003"])
    source.cluster.finish("w3")
    assert changes(seen, plan_drain(source.view(), ["gpu003"])) == ["gpu003 w3~1: is gone"]
    seen = plan_drain(source.view(), ["gpu004"])
    source.happen(HostUnreachable(HostName("gpu004"), "timed out"))
    assert changes(seen, plan_drain(source.view(), ["gpu004"]))[0].endswith("is host unreachable, unverified")


# -- what became of it -----------------------------------------------------------------------------------------------


def carried_out(source: FakeSource, plan: Plan) -> tuple[ClusterView, str]:
    asked = followed(source.view(), plan.action, plan.targets)
    source.happen(*plan.observations(BY))
    return source.view(), progress(source.view(), asked).text


def test_requested_is_not_done(source: FakeSource) -> None:
    _, text = carried_out(source, plan_drain(source.view(), ["gpu003"]))
    assert text == "drain gpu003: requested at 14:32, 0 of 1 done, empty by 15:36"
    _, text = carried_out(source, plan_cordon(source.view(), ["gpu004"]))
    assert text == "cordon gpu004: cordoned (asked for at 14:32)"


def test_a_drain_that_is_blocked_says_by_what(source: FakeSource) -> None:
    _, text = carried_out(source, plan_drain(source.view(), ["gpu006"]))
    assert text.endswith("0 of 1 done, BLOCKED: gpu006: host unreachable, unverified")
