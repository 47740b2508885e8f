"""What is drawn for whom: the nearest group that says anything, work that is resumed, and arrivals."""

from __future__ import annotations

from opsconsole.forecasting.arrivals import Arrivals
from opsconsole.forecasting.past import BASES, Past, stays
from scheduler_core.units import DAY, HOUR
from scheduler_core.workload import Workload
from tests.core.clusters import MIN, Cluster


def ran(cluster: Cluster, wid: str, ms: int, **more: object) -> Workload:
    """From its submission to its end."""
    cluster.running(wid, **more)  # type: ignore[arg-type]
    cluster.later(ms)
    cluster.finish(wid)
    return cluster.workload(wid).workload


def busy() -> tuple[Cluster, dict[str, Workload]]:
    """Five of 8 GPUs that ran 10 minutes for x, five of 1 GPU that ran an hour for y."""
    cluster = Cluster()
    for n in range(5):
        ran(cluster, f"big{n}", 10 * MIN, gpus=8, owner="x")
        ran(cluster, f"one{n}", HOUR, gpus=1, owner="y")
    cluster.submit("like", gpus=8, owner="x")
    cluster.submit("size", gpus=8, owner="z")
    cluster.submit("budget", gpus=4, owner="z")
    cluster.submit("other", "b", gpus=4)
    return cluster, {wid: record.workload for wid, record in cluster.engine.state.workloads.items()}


def test_the_nearest_group_that_says_anything_counts() -> None:
    cluster, known = busy()
    past = Past(cluster.engine.state)
    found = {wid: BASES[past.basis(known[wid]).nearest] for wid in ("like", "size", "budget", "other")}
    assert found == {"like": BASES[0], "size": BASES[1], "budget": BASES[2], "other": BASES[3]}
    assert {past.left_ms(known["size"], str(n)) for n in range(20)} == {10 * MIN}
    assert {past.left_ms(known["other"], str(n)) for n in range(20)} == {10 * MIN, HOUR}


def test_without_a_past_lengths_are_guessed_and_stay_the_same_for_the_same_seed() -> None:
    cluster = Cluster()
    cluster.running("w", min_runtime=HOUR)
    cluster.later(20 * MIN)
    past, w = Past(cluster.engine.state), cluster.workload("w").workload
    drawn = [past.left_ms(w, str(n)) for n in range(200)]
    assert BASES[past.basis(w).nearest] == "nothing" and drawn == [past.left_ms(w, str(n)) for n in range(200)]
    assert min(drawn) >= 40 * MIN and 70 <= sum(left + 20 * MIN > 2 * HOUR for left in drawn) <= 130


def test_what_is_resumed_goes_on_and_what_is_not_begins_anew() -> None:
    worked = {}
    for wid, resumable in (("goes-on", True), ("anew", False)):
        cluster = Cluster()
        cluster.running(wid, resumable=resumable, on_preempt="restart", min_runtime=10 * MIN)
        cluster.later(30 * MIN)
        cluster.submit("other", "b")  # takes its place
        cluster.finish(wid, 143, signalled=True)
        worked[wid] = stays(cluster.workload(wid), cluster.engine.state)[1].worked
    assert worked["goes-on"] >= 30 * MIN and worked["anew"] == 0


def test_hours_come_again_with_everything_that_came_in_them() -> None:
    cluster = Cluster()
    for n in range(3):
        cluster.later(2 * HOUR)
        cluster.submit(f"a{n}", gpus=1, owner="x")
        cluster.submit(f"b{n}", "b", gpus=2, owner="y")  # a pass later
    cluster.later(10 * MIN)
    arrivals = Arrivals(cluster.engine.state)
    come = arrivals.draw(DAY, "1")
    assert come == arrivals.draw(DAY, "1") != arrivals.draw(DAY, "2")
    assert len({w.id for w in come}) == len(come) and 6 <= len(come) <= 48
    assert all(cluster.now < w.submitted_at <= cluster.now + DAY for w in come)
    assert [w.submitted_at for w in come] == sorted(w.submitted_at for w in come)
    pairs = list(zip(come[::2], come[1::2], strict=True))
    assert all(b.submitted_at - a.submitted_at == cluster.policy.pass_interval_ms for a, b in pairs)


def test_nothing_comes_where_nothing_came() -> None:
    assert Arrivals(Cluster().engine.state).draw(DAY, "1") == []
