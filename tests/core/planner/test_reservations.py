"""The promise (rule 21): what is reserved, for whom, and what may happen on those GPUs until then."""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.decisions import Placed, ReservationEnded, Reserved, StopDecided
from scheduler_core.engine import Engine
from scheduler_core.explain import Explainer, Hold, HoldKind
from scheduler_core.fairshare import Standings
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.image import from_image, to_image
from scheduler_core.observations import (
    CancelRequested,
    CordonRequested,
    HostUnreachable,
    InventoryLoaded,
    MemberExited,
    MemberReleased,
)
from scheduler_core.policy import Policy
from scheduler_core.reservations import victims_wait_ms
from scheduler_core.units import GPU, HOUR
from tests.core.clusters import MIN, OPS, PASS, Cluster, budgets, of_kind

TWO = {"h1": 8, "h2": 8}


def promise(c: Cluster, wid: str) -> Reserved | None:
    return c.workload(wid).reserved


def hold(c: Cluster, wid: str) -> Hold:
    return Explainer(c.engine.state).hold(c.workload(wid))


def gang_waits(policy: Policy | None = None) -> Cluster:
    """One host is free, on the other `b` is protected for four hours; `a` wants both."""
    c = Cluster(hosts=TWO, policy=policy or Policy())
    c.running("long", "b", 8, 4 * HOUR)
    c.submit("gang", "a", 16, HOUR)
    return c


def ends_of(c: Cluster, wid: str) -> int:
    """When that run loses its protection."""
    end = c.engine.state.runs[c.run(wid)].protected_until()
    assert end is not None
    return end


def gone(c: Cluster, run: str, *hosts: str) -> None:
    """A run that was told to stop has gone."""
    names = [HostName(host) for host in hosts]
    c.see(*(MemberExited(c.run(run), name, 143, None, True) for name in names))
    c.see(*(MemberReleased(c.run(run), name) for name in names))


# -- the instant ----------------------------------------------------------------------------------------------------


def test_the_first_starts_when_the_last_in_its_way_is_past_its_minimum() -> None:
    c = gang_waits()
    made, end = promise(c, "gang"), ends_of(c, "long")
    assert made is not None and made.at == end and sorted(m.host for m in made.members) == ["h1", "h2"]
    assert hold(c, "gang") == Hold(
        HoldKind.PROTECTED,
        "waiting for protected runs to pass their min runtime: b 8 GPUs; h1, h2 reserved for it",
        end,
    )
    c.later(end - c.now - 1)
    assert c.engine.state.runs[c.run("long")].stop is None
    (stop,) = of_kind(c.later(1), StopDecided)
    assert stop.run == c.run("long") and stop.reserved and "reserved for it from now on" in stop.reason
    gone(c, "long", "h1")
    assert [p.workload for p in of_kind(c.later(PASS), Placed)] == ["gang"]


def test_turning_balances_do_not_take_it_away() -> None:
    """Meanwhile `a` has used far more than `b`: by rule 17 it would have no right any more."""
    c = gang_waits()
    end = ends_of(c, "long")
    for turn in range(3):
        c.running(f"short{turn}", "a", 8, 20 * MIN)
        c.later(HOUR)
        c.finish(f"short{turn}")
    c.later(end - c.now)
    assert [s.run for s in of_kind(c.later(PASS), StopDecided)] == [] and c.engine.state.runs[c.run("long")].stop


def test_where_nothing_yields_by_right_none_is_made() -> None:
    """`b` stands no worse than `a`; when its run has a limit, that is an instant."""
    for limit, at in ((None, False), (2 * HOUR, True)):
        c = Cluster({"a": 1, "b": 8}, hosts={"h1": 8})
        c.running("other", "b", 8, HOUR, time_limit_ms=limit)
        c.submit("first", "a", 8, HOUR)
        made = promise(c, "first")
        assert (made is not None) is at
        assert made is None or made.at == (c.engine.state.runs[c.run("other")].started_at or 0) + 2 * HOUR
        assert hold(c, "first").kind is (HoldKind.PROTECTED if at else HoldKind.BETTER_CLAIMS)


def test_no_gang_is_promised_to_small_work() -> None:
    """By `max_blast`; to what is half as large as the gang it is."""
    for gpus, made in ((7, False), (8, True)):
        c = Cluster(hosts=TWO)
        c.running("gang", "b", 16, 4 * HOUR)
        c.submit("small", "a", gpus, HOUR)
        assert (promise(c, "small") is not None) is made


def test_at_most_one_a_leaf_and_so_many_in_all() -> None:
    hosts = {f"h{n}": 8 for n in range(8)}
    leaves = {f"t{n}": 1 for n in range(8)} | {"z": 1}
    for most in (0, 1, 4):
        c = Cluster(leaves, hosts, Policy(max_reservations=most))
        for n in range(8):
            c.running(f"long{n}", "z", 8, 4 * HOUR)
        for n in range(8):
            c.submit(f"one{n}", f"t{n}", 8, HOUR)
            c.submit(f"two{n}", f"t{n}", 8, HOUR)
        made = [record.reserved for record in c.engine.state.workloads.values() if record.reserved is not None]
        assert len(made) == most and all(reserved.workload.startswith("one") for reserved in made)


def test_who_comes_before_in_the_leaf_gets_none_beside_it() -> None:
    c = Cluster(hosts=TWO | {"h3": 8})
    c.running("longest", "b", 8, 8 * HOUR)
    c.running("long", "b", 8, 4 * HOUR)
    c.submit("gang", "a", 16, HOUR)
    c.submit("urgent", "a", 8, 8 * HOUR, priority=9)
    c.later(2 * MIN)
    assert promise(c, "gang") is not None and promise(c, "urgent") is None


def test_it_counts_as_used_until_real_usage_replaces_it() -> None:
    c = gang_waits()
    whole = 16 * GPU * HOUR
    assert Standings(c.engine.state).committed(BudgetId("a")) == whole
    c.see(CancelRequested(WorkloadId("gang"), OPS))
    assert Standings(c.engine.state).committed(BudgetId("a")) == 0


# -- who may use the GPUs until then ----------------------------------------------------------------------------------


def test_only_what_ends_or_yields_before_may_start_there() -> None:
    """The longest start counts: it is protected for its minimum from when it has wholly started."""
    c = gang_waits()
    c.later(PASS)
    left = ends_of(c, "long") - c.now - c.policy.start_timeout_ms
    c.submit("too-long", "b", 8, left + 1)
    assert c.workload("too-long").run is None
    assert hold(c, "too-long").kind is HoldKind.RESERVED and "reserved for gang" in hold(c, "too-long").text
    c.see(CancelRequested(WorkloadId("too-long"), OPS))
    c.later(PASS)
    left = ends_of(c, "long") - c.now - c.policy.start_timeout_ms
    c.submit("just", "b", 8, left)
    assert c.run("just")


def test_who_has_to_wait_for_victims_first_must_be_through_all_the_sooner() -> None:
    """An unallocated run is there meanwhile: however long it takes to go, the promise is kept."""
    for too_long, victims in ((1, []), (0, ["free"])):
        c = gang_waits()
        c.submit("free", "b", 8, 0)
        c.later(PASS)
        left = ends_of(c, "long") - c.now - c.policy.start_timeout_ms
        step = c.submit("claimant", "b", 8, left - victims_wait_ms(c.policy) + too_long)
        assert [c.engine.state.runs[s.run].workload for s in of_kind(step, StopDecided)] == victims


def test_a_claim_that_comes_too_late_is_given_up() -> None:
    """Its victim's host answers only now and then, for longer than anybody could reckon with."""
    c = gang_waits()
    c.submit("free", "b", 8, 0)
    c.later(PASS)
    left = ends_of(c, "long") - c.now - c.policy.start_timeout_ms - victims_wait_ms(c.policy)
    c.submit("claimant", "b", 8, left)
    assert [m.host for m in c.workload("claimant").claim] == ["h2"]
    for _ in range(6):
        c.see(HostUnreachable(HostName("h2"), "no route"))
        c.later(c.policy.lost_after_ms - MIN)
        c.see(c.seen("h2"))
        c.later(MIN // 2)
    gone(c, "free", "h2")
    c.later(PASS)
    assert c.workload("claimant").run is None and not c.workload("claimant").claim
    assert hold(c, "claimant").kind is HoldKind.RESERVED and promise(c, "gang") is not None


def test_a_limit_shorter_than_the_minimum_counts_and_unallocated_work_is_welcome() -> None:
    c = gang_waits()
    c.submit("limited", "b", 4, 8 * HOUR, time_limit_ms=HOUR)
    c.submit("free", "b", 4, 0)
    assert c.run("limited") and c.run("free")


def test_behind_long_ones_a_short_one_of_the_same_shape_is_found() -> None:
    c = gang_waits()
    for n in range(3):
        c.submit(f"long{n}", "b", 8, 8 * HOUR)
    c.submit("short", "b", 8, HOUR)
    assert c.run("short") and all(c.workload(f"long{n}").run is None for n in range(3))


def test_later_arrivals_do_not_take_it_away() -> None:
    c = Cluster({"a": 1, "b": 1, "c": 9}, TWO)
    c.running("long", "b", 8, 4 * HOUR)
    c.submit("gang", "a", 16, HOUR)
    end = ends_of(c, "long")
    c.submit("better", "c", 8, 8 * HOUR)
    c.submit("urgent", "a", 8, 8 * HOUR, priority=9)
    c.later(2 * MIN)
    assert c.workload("better").run is None and c.workload("urgent").run is None
    c.later(end - c.now)
    gone(c, "long", "h1")
    c.later(PASS)
    assert c.run("gang")


# -- what ends it -----------------------------------------------------------------------------------------------------


def test_who_withdraws_leaves_the_gpus_to_others_at_once() -> None:
    c = gang_waits()
    c.submit("next", "b", 8, 8 * HOUR)
    assert c.workload("next").run is None
    c.see(CancelRequested(WorkloadId("gang"), OPS))
    c.later(PASS)
    assert c.run("next")


def test_a_cordoned_or_lost_host_has_it_made_anew() -> None:
    for lost in (False, True):
        c = Cluster(hosts=TWO | {"h3": 8})
        for name, hours in (("x", 6), ("y", 2), ("z", 4)):
            c.running(name, "b", 8, hours * HOUR)
        c.submit("gang", "a", 16, HOUR)
        first, places = promise(c, "gang"), {w: next(iter(c.engine.state.runs[c.run(w)].members)) for w in "xyz"}
        assert first is not None and first.at == ends_of(c, "z") and places["y"] in [m.host for m in first.members]
        if lost:
            c.see(HostUnreachable(places["y"], "no route"))
            c.later(c.policy.lost_after_ms)
        else:
            c.see(CordonRequested(places["y"], OPS))
        c.later(PASS)
        then = promise(c, "gang")
        assert then is not None and then.at == ends_of(c, "x") and places["y"] not in [m.host for m in then.members]


def test_a_cap_set_meanwhile_ends_it_when_its_time_has_come() -> None:
    c = gang_waits()
    tree = tuple(replace(b, max_gpus=8) if b.id == BudgetId("a") else b for b in budgets(c.weights))
    fleet = tuple(record.host for record in c.engine.state.hosts.values())
    c.see(InventoryLoaded(c.policy, tree, fleet))
    end = ends_of(c, "long")
    c.later(end - c.now - 1)
    (ended,) = of_kind(c.later(1), ReservationEnded)
    assert ended.workload == "gang" and "max_gpus" in ended.reason and c.engine.state.runs[c.run("long")].stop is None


def test_without_a_cap_victims_of_its_own_budget_that_hold_more_than_it_needs_do_not_end_it() -> None:
    c = Cluster(hosts=TWO)
    c.running("long", "a", 16, 4 * HOUR)
    c.submit("urgent", "a", 8, HOUR, priority=1)
    step = c.later(ends_of(c, "long") - c.now)
    assert not of_kind(step, ReservationEnded)
    (stop,) = of_kind(step, StopDecided)
    assert stop.run == c.run("long") and stop.reserved


def test_it_survives_a_restart() -> None:
    c = gang_waits()
    made = promise(c, "gang")
    assert made is not None
    c.engine = Engine(from_image(to_image(c.engine.state)))
    assert promise(c, "gang") == made
    c.later(made.at - c.now)
    assert c.engine.state.runs[c.run("long")].stop is not None


def test_the_breaker_does_not_hold_it_back_nor_count_it() -> None:
    c = gang_waits(Policy(breaker_gpus=0, breaker_gpus_ppm=0))
    c.later(ends_of(c, "long") - c.now)
    assert c.engine.state.runs[c.run("long")].stop is not None and not c.engine.state.preempted


def test_a_run_that_is_protected_after_all_is_not_stopped() -> None:
    """It started late, when nobody could ask its host: the promise waits, the contract does not give way."""
    c = gang_waits()
    record = c.engine.state.runs[c.run("long")]
    assert record.started_at is not None
    promised = promise(c, "gang")
    record.min_runtime_ms += HOUR  # as if its start had been reported an hour late
    c.engine = Engine(from_image(to_image(c.engine.state)))
    assert promised is not None
    c.now = promised.at
    c.engine.step(c.now)
    assert c.engine.state.runs[c.run("long")].stop is None
    c.now += HOUR
    c.engine.step(c.now)
    assert c.engine.state.runs[c.run("long")].stop is not None


# -- what it is for ---------------------------------------------------------------------------------------------------


def test_a_gang_of_half_the_cluster_starts_within_the_longest_minimum() -> None:
    """Small work keeps coming that takes every GPU at once. Without the promise the gang waits far longer."""
    waited = {most: gang_among_small_work(Policy(max_reservations=most)) for most in (0, 4)}
    assert waited[4] <= 4 * HOUR + 30 * MIN < 12 * HOUR < waited[0], waited


def gang_among_small_work(policy: Policy) -> int:
    """How long a gang of 16 waits among work of 2 GPUs that ends as its min runtime does."""
    c = Cluster(hosts={f"h{n}": 8 for n in range(4)}, policy=policy)
    for number in range(6 * 24):
        c.submit(f"small{number}", "b", 2, 4 * HOUR)
        if number == 40:
            c.submit("gang", "a", 16, HOUR)
        for run in list(c.engine.state.runs.values()):
            if run.stop is not None:
                gone(c, run.workload, *run.members)
            elif run.started_at is None:
                c.start(run.workload)
            elif run.workload != "gang" and c.now - run.started_at >= 4 * HOUR:
                c.finish(run.workload)
        if number > 40 and c.workload("gang").run is not None:
            break
        c.later(10 * MIN)
    return c.now - c.workload("gang").workload.submitted_at
