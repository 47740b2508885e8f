"""Explanations: of a workload, a run, a budget or a host, with the figures of the moment."""

from __future__ import annotations

import json
import re

import pytest

from opsconsole.presenting.drains import drains_table
from opsconsole.presenting.explaining import Explanation, explain_anything, explain_past
from opsconsole.presenting.history import day
from opsconsole.presenting.host_rows import hosts_table
from opsconsole.presenting.moves import Moves
from opsconsole.presenting.needs import needs_table
from opsconsole.presenting.overview import host_map, reasons_table
from opsconsole.presenting.queue import queue_table
from opsconsole.presenting.rows import TableView
from scheduler_core.budget import Budget
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    By,
    CancelRequested,
    DrainRequested,
    HoldRequested,
    HostSeen,
    WeightChanged,
    WorkloadMoved,
)
from scheduler_core.policy import Policy
from scheduler_core.units import HOUR, MINUTE, WEIGHT
from tests.core.clusters import Cluster, Remembered
from tests.ui.worlds import FakeSource, busy_world, empty_world, happenings, wide_world

BY = By("kim", "fan change")


@pytest.fixture
def source() -> FakeSource:
    return busy_world()


def explained(source: FakeSource, name: str) -> str:
    return "\n".join(explanation(source, name).lines)


def explanation(source: FakeSource, name: str) -> Explanation:
    found = explain_anything(source.view(), name)
    assert found is not None, f"nothing is known of {name}"
    return found


def texts(table: TableView, key: str) -> dict[str, str]:
    row = next(row for row in table.rows if row.key == key)
    return {column.title: cell.text for column, cell in zip(table.columns, row.cells, strict=True)}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("w1", "protected for another 1h04m: nothing that the scheduler decides stops it before"),
        ("w1", "gpu001 is being drained: that stops it at 15:36 (requeue)"),
        ("w4~1", "It is being stopped: for w8 of nlp: unallocated runs yield to allocated work; it loses 3.4 GPU-h"),
        ("w5", "past its min runtime"),
        ("w6", "Whether it still runs nobody knows: gpu006 cannot be asked. It is not started twice."),
        ("w7", "Why it waits: too few GPUs serve, even once all runs end: not all of gpu001, gpu005, gpu006 do."),
        ("w7", "No instant can be computed: it depends on when runs end and on what others ask for."),
        ("w7", "It is 2nd in the queue; ahead of it: nlp 2 GPUs."),
        ("w9", "cluster too small: 8 hosts with 8 GPUs each are needed, 6 exist"),
        ("vision", "vision is guaranteed 30.0% of the cluster: 2.4k GPU-h in 7d"),
        ("vision", "weight 30 of 100 among its siblings"),
        ("vision", "vision stands 3rd of 3 among its siblings at 0."),
        ("vision", "24 GPUs run for it, 24 of them protected; 64 GPUs wait, the longest for 5m25s."),
        ("olmo/pretrain", "olmo/pretrain stands 2nd of 2 among its siblings at "),
        ("olmo/pretrain", "for olmo/eval has had less of its share"),
        ("w1~1", "w1~1 is a run of resnet-1 w1 of maria, vision: 8 GPUs, min runtime 2h."),
        ("w1~1", "It has run for 56m"),
        ("w1~1", "the work since its start: it has told of no checkpoint."),
        ("w4~1", "It lost 3.4 GPU-h of work by that."),
        ("gpu001", "gpu001 is draining, by kim: fan change, ticket 118."),
        ("gpu001", "It is empty by 15:36 at the latest."),
        ("gpu003", "It answers: the newest readings are 0s old, a question takes 10 ms."),
        ("gpu003", "GPU 5: does not answer: GPU is lost."),
        ("gpu006", "It is unreachable (auth failed: Permission denied (publickey)); the newest readings are 4m old."),
        ("gpu006", "w6~1 ran there when it was last heard of, protected until 18:16."),
    ],
)
def test_what_is_said_of_what(source: FakeSource, name: str, says: str) -> None:
    assert says in explained(source, name)


def test_nothing_is_known_of_a_name_that_nobody_has(source: FakeSource) -> None:
    assert explain_anything(source.view(), "gpu999") is None


def test_a_run_that_was_preempted_keeps_its_reason(source: FakeSource) -> None:
    source.cluster.finish("w4", 143, signalled=True)
    assert "w4~1 ended as preempted (exit status 143); stopped: for w8 of nlp" in explained(source, "w4")
    said = explained(source, "w4~1")
    assert "It ran on gpu004 (4 GPUs) from 13:" in said and "w4 has ended: preempted." in said


def preempted() -> FakeSource:
    """vision holds two hosts past its min runtime; olmo, which has got less, takes one of them."""
    cluster = Remembered({"olmo": 3, "vision": 1}, {"gpu1": 8, "gpu2": 8})
    for wid in ("v1", "v2"):
        cluster.running(wid, "vision", 8, 30 * MINUTE, owner="maria", resumable=True)
    cluster.later(HOUR)
    cluster.submit("o1", "olmo", 8, HOUR, owner="ada")
    return FakeSource(cluster)


def test_a_preemption_is_explained_with_the_figures_of_its_moment() -> None:
    source = preempted()
    (victim,) = [run for run in source.state.runs.values() if run.stop is not None]
    source.cluster.finish(victim.workload, 143, signalled=True)
    source.cluster.later(3 * HOUR)
    said = explained(source, victim.id)
    assert "stopped: for o1: olmo has got 0.00 of its share and vision " in said
    assert re.search(r"At that moment olmo stood 1st among its siblings: 0\.0 of 2\.0k GPU-h, 0\.0\d with", said)
    assert re.search(r"vision stood 2nd among its siblings: 16 of 672 GPU-h, 0\.02 with what was promised\.", said)
    assert "Its protection had ended at 11:0" in said and "It lost 8.0 GPU-h of work by that." in said
    stop = explanation(source, victim.id).figures["stop"]
    assert (stop["cause"], stop["for"], stop["lost_gpu_h"]) == ("preempt", "o1", pytest.approx(8, abs=0.1))
    assert [(s["budget"], s["rank"]) for s in stop["standings"]] == [("olmo", 1), ("vision", 2)]


def test_a_preemption_that_the_state_has_forgotten_is_told_by_the_journal() -> None:
    source = preempted()
    (victim,) = [run for run in source.state.runs.values() if run.stop is not None]
    source.cluster.finish(victim.workload, 143, signalled=True)
    source.cluster.see(CancelRequested(victim.workload, BY))
    source.cluster.later(25 * HOUR)
    view = source.view()
    assert explain_anything(view, victim.id) is None
    told = happenings(source.cluster.steps, source.cluster.now)
    for name in (victim.id, victim.workload):
        found = explain_past(view, told, name)
        assert found is not None and found.kind == "past"
        said = "\n".join(found.lines)
        assert "for o1: olmo has got 0.00 of its share" in said and "vision stood 2nd among its siblings" in said
    assert explain_past(view, told, "never") is None


def test_why_one_budget_stands_before_another() -> None:
    """Each part of rule 6 that can decide, in words."""
    tree = (
        Budget(BudgetId("a"), "a", weight=WEIGHT),
        Budget(BudgetId("b"), "b", weight=WEIGHT, over_budget_priority=2),
        Budget(BudgetId("c"), "c", weight=0),
    )
    cluster = Cluster({}, {"h1": 8, "h2": 8}, Policy(lookback_ms=HOUR), tree)
    source = FakeSource(cluster)
    assert "behind a (0.00 against 0.00), for they are level, so their names decide" in explained(source, "b")
    assert "behind b (0.00 of its share), for c has no share of its own" in explained(source, "c")
    cluster.running("w1", "a", 8, 30 * MINUTE)
    cluster.later(10 * MINUTE)
    assert re.search(r"behind b \(0\.\d+ against 0\.0\d\), for b has had less of its share", explained(source, "a"))
    cluster.later(50 * MINUTE)
    assert "against 0.00), for only a is over its share" in explained(source, "a")
    cluster.running("w2", "b", 8, HOUR)
    cluster.later(HOUR)
    said = explained(source, "b")
    assert "for both are over their share and b goes first then (over_budget_priority)" in said


def test_limits_and_weights_by_hand_are_told(source: FakeSource) -> None:
    source.happen(WeightChanged(BudgetId("vision"), 40 * WEIGHT, By("kim", "conference")))
    assert "Its weight 40 is by hand, the inventory says 30: kim: conference." in explained(source, "vision")
    tree = (Budget(BudgetId("a"), "a", max_gpus=8), Budget(BudgetId("a/x"), "x", BudgetId("a")))
    cluster = Cluster({}, {"h1": 8}, tree=tree)
    cluster.running("w", "a/x", 6)
    assert "a uses 6 of max_gpus 8: 2 left." in explained(FakeSource(cluster), "a/x")


@pytest.mark.parametrize("name", ["w1", "w7", "w9", "w4~1", "w6~1", "vision", "olmo/pretrain", "gpu001", "gpu006"])
def test_figures_of_every_kind_can_be_written_as_json(source: FakeSource, name: str) -> None:
    found = explanation(source, name)
    assert json.loads(json.dumps(found.figures)) == found.figures
    expected = {"host": "free", "budget": "levels", "workload": "position", "run": "stop"}
    assert expected[found.kind] in found.figures


def test_a_blocked_drain_says_by_what_everywhere(source: FakeSource) -> None:
    source.happen(DrainRequested(DrainId("d6"), HostName("gpu006"), BY))
    view = source.view()
    why = "host unreachable, unverified"
    assert f"When it is empty nobody can say: {why}." in explained(source, "gpu006")
    row = texts(drains_table(view), "d6")
    assert (row["STATE"], row["EMPTY BY"], row["WHY"]) == ("BLOCKED", "unknown", f"{why}; fan change")
    assert texts(needs_table(view), "drain:d6")["WHY"] == f"its drain is blocked: {why}"


def test_foreign_processes_block_a_drain_and_are_named(source: FakeSource) -> None:
    source.cluster.finish("w3")
    seen = HostSeen(HostName("gpu003"), "boot1", (), foreign=0b11)
    source.happen(seen, DrainRequested(DrainId("d3"), HostName("gpu003"), BY))
    assert texts(drains_table(source.view()), "d3")["WHY"].startswith("foreign processes on 2 of its GPUs")


def test_processes_of_others_are_named_with_what_to_do(source: FakeSource) -> None:
    listed = [
        {"pid": 4242, "user": "maria", "name": "python", "run": None, "system": False},
        {"pid": 7, "system": True},
    ]
    source.probes["gpu003"] = {"gpus": [{"slot": slot, "processes": {"v": listed}} for slot in range(8)]}
    source.happen(HostSeen(HostName("gpu003"), "boot1", (), foreign=0b11))
    said = "rocesses of others are on 2 GPUs: python (pid 4242 of maria)"
    assert f"P{said}.\nNothing is placed on those GPUs: end the processes" in explained(source, "gpu003")
    row = next(row for row in hosts_table(source.view()).rows if row.key == "gpu003")
    assert row.data["problems"] == [f"p{said}"]


def test_without_a_driver_one_cause_is_told(source: FakeSource) -> None:
    """Not eight GPUs that are missing."""
    source.probes["gpu003"] = {"driver": {"failed": "Driver/library version mismatch"}, "gpus": []}
    row = next(row for row in hosts_table(source.view()).rows if row.key == "gpu003")
    assert row.data["problems"] == ["driver and library have different versions: Driver/library version mismatch"]
    assert (row.data["health"], row.cells[2].text) == ("degraded", "▼ degraded")


# -- freshness -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_s", "mark", "busy"),
    [(0.6, "● live", "75%"), (5.0, "◐ 5s", "was 75%"), (20.0, "○ 20s", "was 75%"), (None, "? no reading", "was 75%")],
)
def test_a_value_that_is_not_current_says_so(source: FakeSource, age_s: float | None, mark: str, busy: str) -> None:
    source.ages["gpu003"] = age_s  # type: ignore[assignment]
    row = texts(hosts_table(source.view()), "gpu003")
    assert (row["FRESH"], row["BUSY"]) == (mark, busy)


def test_a_host_without_readings_is_unknown_never_idle() -> None:
    source = wide_world(1, 8)
    source.probes.clear()
    row = texts(hosts_table(source.view()), "gpu001")
    assert (row["HEALTH"], row["BUSY"], row["TEMP"], row["ECC"]) == ("? unknown", "?", "?", "?")


# -- the queue and the overview --------------------------------------------------------------------------------------


def test_moves_in_the_queue_are_told_since_looking_began(source: FakeSource) -> None:
    moves = Moves()
    assert {r.cells[1].text for r in queue_table(source.view(), moves.before(source.view())).rows} == {"–"}
    source.happen(WorkloadMoved(WorkloadId("w9"), BY, BudgetId("nlp"), 9))
    source.cluster.submit("w10", "vision", 4, MINUTE)
    rows = queue_table(source.view(), moves.before(source.view())).rows
    assert [(r.key, r.cells[1].text) for r in rows] == [("w9", "▲2"), ("w8", "▼1"), ("w7", "▼1"), ("w10", "new")]
    source.cluster.later(11 * MINUTE)
    for _ in range(11):
        source.cluster.later(MINUTE)
        moves.before(source.view())
    assert {r.cells[1].text for r in queue_table(source.view(), moves.before(source.view())).rows} == {"–"}


def test_reasons_are_counted(source: FakeSource) -> None:
    source.happen(HoldRequested(WorkloadId("w9"), BY))
    table = reasons_table(source.view(), day(source.state))
    assert table.title == "Queue: 2 waiting, 1 held, oldest 5m35s, p90 wait 5m35s"
    assert [r.data["reason"] for r in table.rows] == ["held", "host_health", "victim_stopping"]
    assert texts(needs_table(source.view()), "held:w9")["WHY"] == "held: fan change"


def test_a_map_with_no_room_says_what_it_leaves_out() -> None:
    lines = ["".join(cell.text for cell in line) for line in host_map(wide_world(60, 1).view(), 10, 5)]
    assert lines[:3] == ["●" * 10, "●" * 10, "and 4 more lines: 2 shows every host"]
    assert host_map(empty_world().view(), 10, 5)[0] == []
