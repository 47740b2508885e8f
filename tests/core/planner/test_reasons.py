"""What people read about waiting and about a preemption: who is ahead, figures that tell why, and from when on."""

from __future__ import annotations

import re

from scheduler_core.decisions import StopDecided
from scheduler_core.explain import Explainer, Hold, HoldKind
from scheduler_core.ids import HostName
from scheduler_core.observations import CordonRequested
from scheduler_core.units import HOUR
from tests.core.clusters import MIN, OPS, Cluster, of_kind


def hold(c: Cluster, wid: str) -> Hold:
    return Explainer(c.engine.state).hold(c.workload(wid))


def test_the_first_waits_for_protected_runs_and_says_whose_and_until_when() -> None:
    c = Cluster()
    c.running("long", "b", 8, HOUR)
    c.submit("first", "a", 8, MIN)
    found = hold(c, "first")
    assert found.text == "waiting for protected runs to pass their min runtime: b 8 GPUs; h1 reserved for it"
    assert found.until == c.engine.state.runs[c.run("long")].protected_until()


def test_who_is_not_first_in_its_budget_waits_behind_the_one_that_is() -> None:
    """Rule 15: behind a blocked head only free GPUs are left. An instant would be the head's, so there is none."""
    c = Cluster()
    c.running("long", "b", 8, HOUR)
    c.submit("first", "a", 8, MIN, name="train")
    c.submit("second", "a", 4, MIN)
    found = hold(c, "second")
    assert (found.kind, found.until) == (HoldKind.BETTER_CLAIMS, None)
    assert found.text == "behind train, which is first in a and needs 8 GPUs"


def test_the_first_without_a_claim_is_told_who_holds_the_gpus_and_how_both_stand() -> None:
    c = Cluster()
    c.running("held", "b", 8, MIN)
    c.later(2 * MIN)
    c.submit("greedy", "a", 8, 8 * HOUR)
    c.finish("held")
    c.later(5_000)
    c.start("greedy")
    c.submit("mine", "a", 8, MIN)
    found = hold(c, "mine")
    assert "ahead" not in found.text and found.until is None
    assert found.text == "in use by a 8 GPUs; a preempts none of its own of the same priority"


def test_figures_tell_why_there_is_no_claim() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("one", "b", 8, 10 * MIN)
    c.running("two", "a", 8, 10 * MIN)
    c.later(HOUR)
    c.submit("more", "a", 8, 8 * HOUR)
    told = (
        r"in use by a 8 GPUs, b 8 GPUs; with it a would have ([\d.]+) of its share, what is promised counted, "
        r"b has (.+)"
    )
    found = re.fullmatch(told, hold(c, "more").text)
    assert found is not None and float(found[1]) > float(found[2])


def test_a_declared_limit_gives_the_instant() -> None:
    c = Cluster()
    c.running("limited", "a", 8, MIN, time_limit_ms=HOUR)
    c.submit("next", "a", 8, MIN)
    started = c.engine.state.runs[c.run("limited")].started_at
    assert started is not None and hold(c, "next").until == started + HOUR


def test_hosts_out_of_service_are_the_reason_where_even_all_that_serve_would_not_do() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("one", "b", 8, HOUR)
    c.running("two", "b", 8, HOUR)
    c.see(CordonRequested(HostName("h2"), OPS))
    c.submit("wide", "a", 16, HOUR)
    found = hold(c, "wide")
    assert found.kind is HoldKind.HOST_HEALTH
    assert found.text == "too few GPUs serve, even once all runs end: not all of h2 do"


def test_unallocated_work_waits_for_what_is_free() -> None:
    c = Cluster()
    c.running("long", "b", 8, HOUR)
    c.submit("spare", "a", 1, 0)
    assert hold(c, "spare").text == "in use by b 8 GPUs; unallocated work takes only what is free"


def reason(c: Cluster) -> str:
    """Why the run of b, past its min runtime, yields to a workload of a."""
    c.running("squat", "b", 8, MIN, resumable=True)
    c.later(2 * MIN)
    (stop,) = of_kind(c.submit("claim", "a", 8, MIN), StopDecided)
    return stop.reason


def test_two_that_have_got_next_to_nothing_are_told_apart() -> None:
    """On a fresh cluster both balances are 0.00; digits enough are shown, with what is promised."""
    found = re.search(r"a has got ([\d.]+) of its share with what is promised and b ([\d.]+);", reason(Cluster()))
    assert found is not None and float(found[1]) < float(found[2])
