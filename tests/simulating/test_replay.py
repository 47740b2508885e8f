"""Replays: the figures against a computation of their own, and what must hold of every one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from opsconsole.simulating.faults import FAILS, FaultyWorld
from opsconsole.simulating.job import Job, Log
from opsconsole.simulating.meter import ALLOCATED, UNALLOCATED
from opsconsole.simulating.metrics import figures
from opsconsole.simulating.replay import Event, Outcome, World
from opsconsole.simulating.rules import Rules, one
from opsconsole.simulating.runs import Study, make_world, replay_all
from opsconsole.simulating.setup import Variant, parse_cluster
from opsconsole.simulating.workloads import Stream, make_stream
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.policy import Policy
from scheduler_core.units import GPU, HOUR, MINUTE, SECOND, WEIGHT
from tests.simulating.brute import Brute

CLUSTER = parse_cluster("2x4")
T0 = 1_800_000_000_000
TREE = BudgetTree.of(
    [
        Budget(BudgetId("lab"), "lab", ROOT, 3 * WEIGHT),
        Budget(BudgetId("lab/a"), "a", BudgetId("lab"), 2 * WEIGHT),
        Budget(BudgetId("lab/b"), "b", BudgetId("lab"), WEIGHT),
        Budget(BudgetId("c"), "c", ROOT, WEIGHT),
        Budget(BudgetId("z"), "z", ROOT, 0),
    ]
)
LEAVES = ("lab/a", "lab/b", "c", "z")


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    """A few hours of a contended cluster of 8 GPUs."""
    found, at = [], T0
    for n in range(draw(st.integers(1, 14))):
        at += draw(st.sampled_from((0, 1, 7, 600, 4000))) * SECOND
        found.append(
            Job(
                f"j{n}",
                at,
                draw(st.sampled_from((1, 1, 2, 3, 4, 8))),
                draw(st.sampled_from((0, 30, 1800, 5000, 20_000))) * SECOND,
                n,
                min_runtime_ms=draw(st.sampled_from((0, 10, 15, 60))) * MINUTE,
                resumable=draw(st.booleans()),
                budget=draw(st.sampled_from(LEAVES)),
            )
        )
    return found


def replayed(
    found: Sequence[Job], until: int | None = None, rules: Rules | None = None, tree: BudgetTree | None = TREE
) -> tuple[World, Outcome, list[Event]]:
    log = Log("log", "by hand", list(found), len(found))
    variant = Variant("v", Policy(), tree, rules or Rules())
    stream = make_stream(log, CLUSTER, variant, 1, 1.0, (T0, until))
    world, events = World(stream, CLUSTER, variant.policy, variant.rules, T0), list[Event]()
    world.tell = [events.append]
    return world, world.run(until, lambda part: True), events


@settings(max_examples=60, deadline=None)
@given(jobs(), st.sampled_from((None, T0 + 3 * HOUR + 17 * MINUTE)))
def test_figures_are_what_the_events_give(found: list[Job], until: int | None) -> None:
    _, outcome, events = replayed(found, until)
    brute = Brute(events, outcome.stream.workloads, TREE, 8, outcome.begin, outcome.end)
    told = figures(outcome, CLUSTER, 0)
    agree(told, brute.figures(None))
    for b in told["budgets"]:
        agree(b, brute.figures(TREE.by_path[b["path"]]))


def agree(told: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {key: told[key] for key in expected} == expected


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_a_replay_ends_with_all_work_done_and_no_gpu_held_twice(found: list[Job]) -> None:
    world, outcome, events = replayed(found)
    assert None not in outcome.ended_at and not world.attempts
    assert outcome.end == max(event.at for event in events if event.kind == "end")
    held: Counter[tuple[str, int]] = Counter()
    places = {event.run: event.members for event in events if event.kind == "place"}
    for event in sorted(events, key=lambda e: (e.at, e.kind == "place")):
        for member in places.get(event.run, ()) if event.kind in ("place", "release") else ():
            for slot in range(4):
                if member.slots >> slot & 1:
                    held[member.host, slot] += 1 if event.kind == "place" else -1
        assert max(held.values(), default=0) <= 1
    state = world.engine.state
    for leaf in TREE.leaves:  # the engine's own ledgers (rule 2)
        for kind, which in ((True, ALLOCATED), (False, UNALLOCATED)):
            used = state.ledgers.used(leaf, state.now, 30 * 24 * HOUR, kind)
            assert used == GPU * outcome.meter.accounts[leaf].total(which)


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_what_is_lost_is_what_was_held_beyond_the_work(found: list[Job]) -> None:
    """Of a workload that is done: all that its runs held is its work, the delay of the last start, or lost."""
    world, outcome, events = replayed(found)
    places = {event.run: event.at for event in events if event.kind == "place"}
    held, begun = Counter[str](), {event.workload: event.at for event in events if event.kind == "start"}
    for event in events:
        if event.kind == "release":
            held[event.workload] += event.at - places[event.run]
    for number, w in enumerate(outcome.stream.workloads):
        work = outcome.stream.run_ms[number] + world.rules.start_delay_ms
        assert held[w.id] * w.gpus == outcome.lost_gpu_ms[number] + work * w.gpus
        last_run = (outcome.ended_at[number] or 0) - begun[w.id]
        assert last_run == outcome.stream.run_ms[number] or (w.resumable and outcome.preempted[number])


@settings(max_examples=40, deadline=None)
@given(jobs(), st.integers(1, 1000), st.sampled_from((0.5, 6.0)))
def test_hosts_that_fail_lose_work_and_nothing_else(found: list[Job], seed: int, rate: float) -> None:
    log, variant = Log("log", "by hand", found, len(found)), Variant("v", Policy(), TREE, Rules(repair_ms=HOUR))
    study = Study(log, CLUSTER, (variant,), (seed,), faults=rate)
    world = make_world(study, variant, make_stream(log, CLUSTER, variant, 1, 1.0, (T0, None)), T0, seed)
    outcome = world.run(None, lambda part: True)
    assert None not in outcome.ended_at and not world.attempts
    state, told = world.engine.state, figures(outcome, CLUSTER, 0)
    for leaf in TREE.leaves:
        for kind, which in ((True, ALLOCATED), (False, UNALLOCATED)):
            used = state.ledgers.used(leaf, state.now, 30 * 24 * HOUR, kind)
            assert used == GPU * outcome.meter.accounts[leaf].total(which)
    assert GPU * outcome.meter.service.total(ALLOCATED) == state.ledgers.service.within(state.now, 30 * 24 * HOUR)
    assert all(0 <= lost <= (outcome.end - T0) * 8 for lost in outcome.lost_to_faults_gpu_ms)
    assert (told["lost_to_faults_gpu_h"] > 0) <= (told["interrupted"] > 0)
    for number, w in enumerate(outcome.stream.workloads):
        if not outcome.interrupted[number] and not outcome.preempted[number]:
            ran = outcome.ended_at[number] - outcome.started_at[number]  # type: ignore[operator]
            assert ran == outcome.stream.run_ms[number], w.id


def test_a_gang_that_loses_a_host_starts_elsewhere_once_that_is_known_dead() -> None:
    """Two hosts of three, one of which fails after an hour: 5 min until it is lost, 1 min until its power is off."""
    gang = Job("gang", T0, 8, 3 * HOUR, 1, hosts=2, min_runtime_ms=HOUR, resumable=True, budget="c")
    log, variant = Log("log", "by hand", [gang], 1), Variant("v", Policy(), TREE)
    hosts = [replace(host, fence=True) for host in parse_cluster("3x4")]
    stream = make_stream(log, hosts, variant, 1, 1.0, (T0, None))
    world, events = FaultyWorld(stream, hosts, variant.policy, variant.rules, T0, 1e-9, 1), list[Event]()
    world.tell = [events.append]
    world._push(T0 + HOUR, FAILS, hosts[0].name)
    outcome = world.run(None, lambda part: True)
    places = [event for event in events if event.kind == "place"]
    assert [{str(m.host) for m in e.members} for e in places] == [{"gpu00001", "gpu00002"}, {"gpu00002", "gpu00003"}]
    assert 6 * MINUTE <= places[1].at - (T0 + HOUR) < 7 * MINUTE
    told = figures(outcome, hosts, 0)
    assert told["interrupted"] == 1 and told["preemptions"] == 0 and told["availability"] < 1
    worked = HOUR - 2 * SECOND
    gave_back = T0 + HOUR + 5 * MINUTE + 30 * SECOND  # the member that lived on
    lost = 4 * (places[1].at - T0) + 4 * (gave_back - T0) - 8 * (worked - worked % (15 * MINUTE))
    assert abs(told["lost_to_faults_gpu_h"] - lost / HOUR) < 0.02


def test_a_preemption_costs_what_was_done_since_the_last_checkpoint() -> None:
    """c fills the cluster; an hour and 10 min later lab takes half of it, and c goes on afterwards."""
    first = Job("first", T0, 4, 3 * HOUR, 1, min_runtime_ms=HOUR, resumable=True, budget="c")
    other = Job("other", T0, 4, 3 * HOUR, 2, min_runtime_ms=8 * HOUR, budget="c")
    taker = Job("taker", T0 + 70 * MINUTE, 4, HOUR, 3, min_runtime_ms=HOUR, budget="lab/a")
    _, outcome, events = replayed([first, other, taker], rules=Rules(checkpoint_every_ms=25 * MINUTE))
    told = figures(outcome, CLUSTER, 0)
    (stop,) = [event for event in events if event.kind == "preempt"]
    assert (stop.workload, stop.for_workload, told["preemptions"]) == ("first", "taker", 1)
    run_ms = stop.at - (T0 + 2 * SECOND)
    lost = 4 * (2 * SECOND + run_ms - 50 * MINUTE + 30 * SECOND)
    assert told["lost_gpu_h"] == round(lost / HOUR, 6)
    by_path = {b["path"]: b for b in told["budgets"]}
    assert by_path["c"]["preemptions"] == 1 and by_path["lab"]["preemptions"] == 0


def test_the_replay_ends_with_the_last_workload() -> None:
    """The first would have run for long, but is preempted and ends with that."""
    first = Job("first", T0, 8, 30 * HOUR, 1, min_runtime_ms=HOUR, resumable=False, budget="c")
    taker = Job("taker", T0 + 2 * HOUR, 8, HOUR, 2, min_runtime_ms=HOUR, budget="lab/a")
    _, outcome, events = replayed([first, taker], rules=Rules(restarts=False))
    assert [event.workload for event in events if event.kind == "end"] == ["first", "taker"]
    assert outcome.end == events[-1].at < T0 + 4 * HOUR and outcome.lost_gpu_ms[0] > 8 * 2 * HOUR


def test_work_that_can_never_start_ends_the_replay() -> None:
    closed = BudgetTree.of([Budget(BudgetId("shut"), "shut", max_gpus=0), Budget(BudgetId("open"), "open")])
    jobs = [Job(name, T0, 1, HOUR, 1, budget=name) for name in ("shut", "open")]
    _, outcome, _ = replayed(jobs, tree=closed)
    told = figures(outcome, CLUSTER, 0)
    assert (told["workloads"], told["never_started"]) == (2, 1)
    assert {b["path"]: b["owed_gpu_h"] for b in told["budgets"]}["shut"] == 0


# -- what a log does not say --------------------------------------------------------------------------------------


def stream_of(
    found: Sequence[Job], rules: Rules | None = None, seed: int = 1, times: float = 1.0, cluster: str = "2x4"
) -> Stream:
    log = Log("log", "by hand", list(found), len(found))
    return make_stream(log, parse_cluster(cluster), Variant("v", rules=rules or Rules()), seed, times, (0, None))


def test_the_log_goes_before_the_rules() -> None:
    said = Job("a", T0, 1, HOUR, 1, project="p", min_runtime_ms=5 * MINUTE, resumable=False)
    unsaid = Job("b", T0, 8, HOUR, 2, project="q")
    stream = stream_of([said, unsaid], Rules(min_runtime=(one(2 * HOUR),)))
    assert [(w.min_runtime_ms, w.resumable, w.budget) for w in stream.workloads] == [
        (5 * MINUTE, False, "p"),
        (2 * HOUR, True, "q"),
    ]
    assert stream.declared == {"min_runtime": 1, "resumable": 1} and not stream.drawn


def test_what_does_not_fit_is_left_out_and_counted() -> None:
    sizes = {"a": 8, "b": 6, "c": 7, "d": 12, "e": 3}
    found = [
        Job(name, T0, gpus, HOUR, n, min_runtime_ms=9 * HOUR if name == "e" else None)
        for n, (name, gpus) in enumerate(sizes.items())
    ]
    stream = stream_of(found)
    assert [(w.id, w.hosts, w.gpus_per_host) for w in stream.workloads] == [("a", None, None), ("b", 2, 3)]
    assert stream.oddities.counts == {"too_large": 2, "outside_bounds": 1}
    assert stream.skipped == {"all": 3} and stream.declared == {"min_runtime": 2, "resumable": 2, "hosts": 1}


def test_hosts_of_the_log_are_kept_unless_told_otherwise() -> None:
    spread = Job("a", T0, 4, HOUR, 1, hosts=2)
    assert [(w.hosts, w.gpus_per_host) for w in stream_of([spread]).workloads] == [(2, 2)]
    assert [w.hosts for w in stream_of([spread], Rules(trusts_hosts=False)).workloads] == [None]


def test_more_demand_is_more_copies_within_the_hour() -> None:
    found = [Job(f"j{n}", T0 + n * SECOND, 1, HOUR, n) for n in range(200)]
    stream = stream_of(found, times=2.5)
    copies = Counter(w.id.partition("+")[0] for w in stream.workloads)
    assert set(copies.values()) == {2, 3} and 460 < len(stream.workloads) < 540 and stream.drawn
    at = {job.id: job.submitted_at for job in found}
    assert all(0 <= w.submitted_at - at[w.id.partition("+")[0]] < HOUR for w in stream.workloads)
    assert sorted(copies) == sorted(at) and len({w.id for w in stream.workloads}) == len(stream.workloads)
    assert stream_of(found, seed=2, times=2.5).workloads != stream.workloads
    assert len(stream_of(found, times=0.5).workloads) < 140


def test_budgets_by_user_where_there_is_no_project_and_by_rules() -> None:
    found = [Job("a", T0, 1, HOUR, 1, user="ann"), Job("b", T0, 1, HOUR, 2)]
    assert [w.budget for w in stream_of(found).workloads] == ["ann", "none"]
    assert [w.budget for w in stream_of(found, Rules(budget="all")).workloads] == ["all", "all"]
    nested = [Job(name, T0, 1, HOUR, 1, budget=name) for name in ("lab/a", "/lab//b", "c")]
    assert sorted(stream_of(nested).tree.paths.values()) == ["c", "lab", "lab/a", "lab/b"]
    by_size = (one("small", most_gpus=1), one("large"))
    assert stream_of(found, Rules(budget=by_size)).tree.leaves == ("large", "small")
    ruled = Variant("v", tree=TREE, rules=Rules(budget=(one("b"),)))
    log = Log("log", "", found, 2)
    assert {w.budget for w in make_stream(log, CLUSTER, ruled, 1, 1.0, (0, None)).workloads} == {"lab/b"}
    one_leaf = Variant("v", tree=BudgetTree.of([Budget(BudgetId("only"), "only")]))
    assert {w.budget for w in make_stream(log, CLUSTER, one_leaf, 1, 1.0, (0, None)).workloads} == {"only"}
    users = Variant("v", tree=BudgetTree.of([Budget(BudgetId("ann"), "ann"), Budget(BudgetId("bob"), "bob")]))
    paid = Log("log", "", [Job("a", T0, 1, HOUR, 1, user="ann", project="p")], 1)
    assert [w.budget for w in make_stream(paid, CLUSTER, users, 1, 1.0, (0, None)).workloads] == ["ann"]
    lost = make_stream(log, CLUSTER, Variant("v", tree=TREE), 1, 1.0, (0, None))
    assert lost.oddities.counts == {"no_budget": 2} and not lost.workloads


def test_the_same_results_on_any_number_of_cores() -> None:
    found = [Job(f"j{n}", T0 + n * MINUTE, 1 + n % 4, HOUR, n, project="ab"[n % 2]) for n in range(30)]
    log, heard = Log("log", "", found, len(found)), list[float]()
    study = Study(log, CLUSTER, (Variant("a", rules=Rules(stop_delay_ms=0)), Variant("b")), (1, 2), 1.5)
    one_core, two_cores = (replay_all(study, workers, heard.append) for workers in (1, 2))
    assert [[r.figures for r in seeds] for seeds in one_core] == [[r.figures for r in seeds] for seeds in two_cores]
    assert one_core[0][0].figures != one_core[0][1].figures and max(heard) <= 1
