"""Futures of small clusters whose end is known, and what holds for all of them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsconsole.forecasting.arrivals import Arrivals
from opsconsole.forecasting.draft import NO_CHANGE, Draft
from opsconsole.forecasting.futures import Question, all_futures
from opsconsole.forecasting.past import Past
from opsconsole.forecasting.report import as_json, spread
from opsconsole.forecasting.world import LiveWorld
from opsconsole.simulating.workloads import Stream
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.engine import Engine, Step
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.image import from_image, to_image
from scheduler_core.invariants import require
from scheduler_core.observations import HostUnreachable, Observation
from scheduler_core.policy import Policy
from scheduler_core.units import DAY, HOUR
from scheduler_core.workload import Workload, WorkloadPhase
from tests.core.clusters import MIN, Cluster, budgets


def asked(cluster: Cluster, draft: Draft | None = None, futures: int = 3, horizon: int = 4 * HOUR) -> dict[str, Any]:
    question = Question(cluster.engine.state, draft, horizon, futures)
    return as_json(question, all_futures(question, 1, lambda part: None), cluster.now)


def known(hosts: int = 1, **more: object) -> Cluster:
    """Whatever has 8 GPUs ran for an hour, long ago enough that nothing new comes: no chance is left."""
    cluster = Cluster(hosts={f"h{n}": 8 for n in range(1, hosts + 1)}, **more)  # type: ignore[arg-type]
    for n in range(5):
        cluster.running(f"past{n}", min_runtime=10 * MIN)
        cluster.later(HOUR)
        cluster.finish(f"past{n}")
    cluster.later(18 * HOUR + 59 * MIN)
    return cluster


def start_s(data: dict[str, Any], wid: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in data["starts"] if row["workload"] == wid)
    return found


def test_what_waits_starts_when_what_runs_has_run_as_long_as_its_like() -> None:
    cluster = known()
    cluster.running("runs", min_runtime=HOUR)
    cluster.later(20 * MIN)
    cluster.submit("waits")
    row = start_s(asked(cluster), "waits")
    assert row["starts"]["now"] == {"low": 2397, "median": 2397, "high": 2397}  # 40 min but for a pass, and the start
    assert row["within"] == {"now": 1.0} and row["moves"] == ""


def test_a_weight_moves_who_starts_first() -> None:
    cluster = known()
    cluster.running("runs", "b", min_runtime=HOUR)
    cluster.later(20 * MIN)
    cluster.submit("of-a")
    cluster.submit("of-b", "b")
    data = asked(cluster, Draft(budgets=budgets({"a": 10_000, "b": 1}), said=("more for a",)))
    assert [(row["workload"], row["moves"]) for row in data["starts"]] == [("of-a", "sooner"), ("of-b", "later")]
    assert set(data["figures"]["wait_p50_s"]) == {"now", "draft", "difference"}


def test_a_drain_ends_when_the_contract_lets_it() -> None:
    cluster = known(hosts=2)
    cluster.running("runs", min_runtime=30 * MIN, resumable=True)
    cluster.later(10 * MIN)
    host = next(iter(cluster.engine.state.runs[cluster.run("runs")].members))
    data = asked(cluster, Draft(drained=(host,), said=("drain",)))
    (row,) = data["hosts"]
    assert row["host"] == host and row["empty"]["now"] is None
    assert row["empty"]["draft"]["median"] == 20 * 60 + 30  # its protection, and the stop
    (stop,) = data["stops"]
    assert (stop["workload"], stop["share"], stop["for"]) == ("runs", {"now": 0, "draft": 1}, ["a drain"])


def test_what_is_submitted_starts_at_somebodys_cost() -> None:
    cluster = known()
    cluster.running("runs", min_runtime=10 * MIN, resumable=True)
    cluster.later(20 * MIN)
    mine = Workload(WorkloadId("mine"), BudgetId("b"), 8, HOUR, cluster.now)
    data = asked(cluster, Draft(submitted=(mine,), said=("submit",)))
    row = start_s(data, "mine")
    assert row["submitted_by_draft"] and set(row["starts"]) == {"draft"} and row["starts"]["draft"]["high"] < 60
    assert data["stops"][0]["for"] == ["mine"] and data["stops"][0]["share"] == {"now": 0, "draft": 1}


def test_hosts_come_and_go() -> None:
    cluster = known()
    cluster.running("runs", min_runtime=HOUR)
    cluster.submit("waits")

    more = asked(cluster, Draft(added=(Host(HostName("new"), 8),), said=("add",)))
    assert start_s(more, "waits")["moves"] == "sooner" and start_s(more, "waits")["starts"]["draft"]["high"] < 60
    less = asked(cluster, Draft(removed=(HostName("h1"),), said=("remove",)))
    assert start_s(less, "waits")["moves"] == "later" and start_s(less, "waits")["within"] == {"now": 1.0, "draft": 0.0}


def test_of_a_host_that_does_not_answer_nobody_knows_more_later() -> None:
    cluster = known(hosts=2)
    cluster.running("runs", min_runtime=10 * MIN)
    host = next(iter(cluster.engine.state.runs[cluster.run("runs")].members))
    cluster.submit("waits", gpus=16, hosts=2, gpus_per_host=8)
    cluster.see(HostUnreachable(host, "it is silent"))
    data = asked(cluster)
    assert data["rests_on"]["silent_hosts"] == [host]
    assert start_s(data, "waits")["within"] == {"now": 0.0} and not data["stops"]


def test_what_ran_before_does_not_wait_for_its_start_again() -> None:
    cluster = Cluster()
    cluster.running("ran", min_runtime=10 * MIN, resumable=True)
    cluster.later(30 * MIN)
    cluster.submit("takes", "b")
    cluster.finish("ran", 143, signalled=True)
    cluster.submit("waits", "b")
    question = Question(cluster.engine.state, None, HOUR, 1)
    assert question.begun == {"ran", "takes"} and {w.id for w in question.living} == {"ran", "takes", "waits"}


def test_nothing_is_drawn_from_a_draft_and_the_state_stays_as_it_is() -> None:
    """A draft without changes differs in nothing; so does one worker from two."""
    cluster = busy(7)
    state = cluster.engine.state
    before = pickle.dumps(to_image(state))
    question = Question(state, Draft(said=("nothing",)), 6 * HOUR, 3)
    now, draft = all_futures(question, 1, lambda part: None)
    assert now == draft and len({str(future.figures) for future in now}) == 3
    assert all_futures(question, 2, lambda part: None) == [now, draft]
    assert pickle.dumps(to_image(state)) == before


def busy(seed: int) -> Cluster:
    """Some run, some wait, some have ended; gangs, two users, what is resumable and what is not."""
    random = Random(seed)
    cluster = Cluster(hosts={"h1": 8, "h2": 8, "h3": 4})
    for n in range(14):
        more: dict[str, object] = {"resumable": random.random() < 0.5, "owner": random.choice("xy")}
        gpus, least = random.choice([1, 2, 4, 8, 16]), random.choice([0, 10 * MIN, HOUR])
        cluster.submit(f"w{n}", random.choice("ab"), gpus, least, **more)
        for wid, record in list(cluster.engine.state.workloads.items()):
            run = record.run and cluster.engine.state.runs[record.run]
            if run and run.started_at is None:
                if run.stop is None and random.random() < 0.9:
                    cluster.start(wid)
            elif run and run.stop is not None and random.random() < 0.7:
                cluster.finish(wid, 143, signalled=True)
            elif run and random.random() < 0.2:
                cluster.finish(wid)
        cluster.later(random.randrange(1, 30) * MIN)
    return cluster


class Watched(Engine):
    """Each step keeps every rule, and the contract."""

    def step(self, now: int, observations: Sequence[Observation] = ()) -> Step:
        state = self.state
        guarded = {run.id for run in state.runs.values() if run.protected(max(now, state.now))}
        found = super().step(now, observations)
        require(state)
        for stop in (d for d in found.decisions if isinstance(d, StopDecided)):
            assert stop.run not in guarded or stop.cause not in (StopCause.PREEMPT, StopCause.DRAIN)
        return found


class WatchedWorld(LiveWorld):
    def begins(self, hosts: Sequence[Host], policy: Policy, begin: int) -> Engine:
        return Watched(self.state)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000), st.sampled_from(["", "h1", "h2"]))
def test_every_future_keeps_the_rules_and_the_contract(seed: int, drained: str) -> None:
    state = from_image(pickle.loads(pickle.dumps(to_image(busy(seed).engine.state))))
    question = Question(state, None, DAY, 1)
    stream = Stream(state.budgets, [*question.living, *Arrivals(state).draw(DAY, str(seed))])
    stream.run_ms = [Past(state).left_ms(w, str(seed)) for w in stream.workloads]
    world = WatchedWorld(state, stream, Draft(drained=(HostName(drained),)) if drained else NO_CHANGE)
    outcome = world.run(state.now + DAY, lambda part: 0 <= part <= 1)
    over = {w.id for w, ended in zip(stream.workloads, outcome.ended_at, strict=True) if ended is not None}
    assert not [wid for wid in over if (r := state.workloads.get(wid)) and r.phase is WorkloadPhase.RUNNING]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([3, 1, 2], {"low": 1, "median": 2, "high": 3}),
        ([None, 1, 2], {"low": 1, "median": 2, "high": None}),
        (list(range(20)), {"low": 1, "median": 9, "high": 17}),
    ],
)
def test_four_of_five_lie_in_the_range(values: list[float | None], found: dict[str, float | None]) -> None:
    assert spread(values) == found
