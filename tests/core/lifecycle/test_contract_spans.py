"""Rules 10, 11, 14: bounds, what is left of a protection, ends and restarts."""

from __future__ import annotations

import pytest

from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.commands import StopMember
from scheduler_core.contract import MinRuntimeRefused, min_runtime, remaining_ms
from scheduler_core.decisions import Placed, StopCause, StopDecided
from scheduler_core.drain import drain_plan, eta
from scheduler_core.engine import Engine
from scheduler_core.ids import BudgetId, DrainId, HostName
from scheduler_core.image import from_image, to_image
from scheduler_core.observations import (
    CancelRequested,
    DrainRequested,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    RequeueRequested,
)
from scheduler_core.policy import Policy
from scheduler_core.units import HOUR, MINUTE, SECOND
from scheduler_core.workload import Launch, Outcome, WorkloadPhase
from tests.core.clusters import OPS, Cluster, of_kind

H1 = HostName("h1")
A, AX = BudgetId("a"), BudgetId("a/x")
TREE = BudgetTree.of([Budget(A, "a", min_runtime_default_ms=HOUR), Budget(AX, "x", A), Budget(BudgetId("b"), "b")])


@pytest.mark.parametrize(("declared", "found"), [(None, HOUR), (0, 0), (MINUTE, MINUTE), (8 * HOUR, 8 * HOUR)])
def test_a_min_runtime_is_declared_or_inherited(declared: int | None, found: int) -> None:
    assert min_runtime(declared, AX, TREE, Policy()) == found


def test_a_min_runtime_outside_the_bounds_is_refused_with_both_named() -> None:
    policy = Policy(min_runtime_min_ms=MINUTE)
    for declared in (1, MINUTE - 1, 8 * HOUR + 1):
        refused = min_runtime(declared, AX, TREE, policy)
        assert isinstance(refused, MinRuntimeRefused)
        assert (refused.low_ms, refused.high_ms) == (MINUTE, 8 * HOUR) and str(8 * HOUR) in refused.text
    assert isinstance(min_runtime(None, BudgetId("b"), TREE, policy), MinRuntimeRefused)


def test_preemption_drain_and_people_read_the_same_figure_across_attempts_and_restarts() -> None:
    """G2-27."""
    c = Cluster({"a": 1, "b": 1}, hosts={"h1": 8})
    c.running("w", "b", min_runtime=2 * HOUR, resumable=True)
    c.later(2 * HOUR + 5 * MINUTE)
    c.submit("claimant", "a", min_runtime=MINUTE)
    c.finish("w", 143, signalled=True)
    c.later(c.policy.pass_interval_ms)
    c.start("claimant")
    c.later(2 * MINUTE)
    c.finish("claimant")
    c.later(c.policy.pass_interval_ms)
    c.start("w")
    c.later(10 * MINUTE)
    c.engine = Engine(from_image(to_image(c.engine.state)))
    c.engine.step(c.now - HOUR)  # the clock steps back
    run = c.engine.state.runs[c.run("w")]
    assert run.id == "w~2" and remaining_ms(run, c.engine.state.now) == 110 * MINUTE
    c.see(DrainRequested(DrainId("d"), H1, OPS))
    (row,) = drain_plan(c.engine.state, [H1]).rows
    assert row.stops_at == c.now + 110 * MINUTE
    assert eta(c.engine.state, c.engine.state.drains[DrainId("d")]) == row.released_at
    assert not of_kind(c.later(110 * MINUTE - 1), StopDecided) and of_kind(c.later(1), StopDecided)


def test_nobody_knows_what_is_left_while_a_gang_starts() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.submit("gang", gpus=16)
    c.see(MemberStarted(c.run("gang"), H1))
    assert remaining_ms(c.engine.state.runs[c.run("gang")], c.now) is None


def test_a_checkpoint_adds_its_grace_and_only_where_declared() -> None:
    c = Cluster(hosts={"h1": 8})
    c.running("with", gpus=4, min_runtime=MINUTE, launch=Launch(checkpoint_signal="USR1"))
    c.running("without", gpus=4, min_runtime=MINUTE)
    c.later(HOUR)
    stops = {x.run: x for x in c.see(DrainRequested(DrainId("d"), H1, OPS)).commands if isinstance(x, StopMember)}
    policy = c.policy
    assert stops[c.run("with")].checkpoint_grace_ms == policy.checkpoint_grace_ms
    assert stops[c.run("without")].checkpoint_grace_ms == 0
    whole = policy.checkpoint_grace_ms + policy.stop_grace_ms + policy.stop_deadline_ms
    assert stops[c.run("with")].deadline_at == c.now + whole


@pytest.mark.parametrize("ends", ["starts", "fails", "times out"])
def test_a_requeue_asked_for_while_starting_ends_in_a_legal_state(ends: str) -> None:
    """G2-07; a second request works."""
    c = Cluster()
    c.submit("w", resumable=True)
    run, wid = c.run("w"), c.workload("w").workload.id
    c.see(RequeueRequested(wid, OPS), RequeueRequested(wid, OPS))
    if ends == "starts":
        c.see(MemberStarted(run, H1))
        assert of_kind(c.later(HOUR), StopDecided)
    elif ends == "fails":
        c.see(MemberNeverStarted(run, H1, "no such file"))
        assert c.workload("w").phase is WorkloadPhase.WAITING
        return
    else:
        assert of_kind(c.later(c.policy.start_timeout_ms), StopDecided)
    c.see(MemberExited(run, H1, 143, None, True), MemberReleased(run, H1))
    assert c.workload("w").pending is None and c.workload("w").run in (None, "w~2")


def test_a_time_limit_that_the_host_enforced_is_no_preemption() -> None:
    """The host's clock runs a little ahead of what we heard."""
    c = Cluster()
    c.running("w", min_runtime=MINUTE, time_limit_ms=10 * MINUTE, resumable=True)
    c.later(10 * MINUTE - SECOND)
    c.finish("w", 143, signalled=True)
    assert c.workload("w").outcome is Outcome.FAILED
    assert c.workload("w").attempts[-1].outcome == "time limit"


def test_a_stop_that_nobody_here_decided_is_neither_success_nor_failure() -> None:
    c = Cluster()
    c.running("w", resumable=True)
    c.finish("w", 0, signalled=True)
    record = c.workload("w")
    assert (record.run, record.retries, record.attempts[-1].outcome) == ("w~2", 0, "requeued")


def test_ends_that_nobody_knows_start_again_at_once_and_then_ever_later() -> None:
    c = Cluster()
    c.submit("w")
    delays = []
    for _ in range(4):
        run = c.run("w")
        c.see(MemberStarted(run, H1), MemberExited(run, H1), MemberReleased(run, H1))
        delays.append(max(0, c.workload("w").not_before - c.now))
        c.later(max(c.policy.pass_interval_ms, delays[-1]))
    assert delays == [0, MINUTE, 2 * MINUTE, 4 * MINUTE]


def test_a_success_needs_every_member() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("gang", gpus=16, min_runtime=MINUTE, resumable=True)
    run = c.run("gang")
    step = c.see(MemberExited(run, H1, 0), MemberReleased(run, H1))
    assert not of_kind(step, StopDecided) and c.host("h1").held == 0
    c.see(MemberExited(run, HostName("h2"), 0), MemberReleased(run, HostName("h2")))
    assert c.workload("gang").outcome is Outcome.SUCCEEDED


def test_a_workload_that_cannot_start_lets_others_go_first() -> None:
    """G2-14."""
    c = Cluster({"a": 1})
    c.submit("broken", priority=9)
    c.see(MemberNeverStarted(c.run("broken"), H1, "no such file"))
    (placed,) = of_kind(c.submit("fine"), Placed)
    assert isinstance(placed, Placed) and placed.workload == "fine"


def test_a_cancel_of_a_stopping_run_decides_what_becomes_of_it() -> None:
    c = Cluster()
    c.running("w", min_runtime=MINUTE, resumable=True)
    c.later(HOUR, DrainRequested(DrainId("d"), H1, OPS))
    wid = c.workload("w").workload.id
    assert not c.see(CancelRequested(wid, OPS)).commands
    assert not c.see(CancelRequested(wid, OPS)).decisions
    c.finish("w", 143, signalled=True)
    assert c.workload("w").outcome is Outcome.CANCELLED


def test_the_first_of_two_causes_stays() -> None:
    c = Cluster()
    c.running("w", min_runtime=MINUTE, resumable=True)
    c.later(HOUR, DrainRequested(DrainId("d"), H1, OPS))
    c.see(RequeueRequested(c.workload("w").workload.id, OPS))
    stop = c.engine.state.runs[c.run("w")].stop
    assert stop is not None and stop.cause is StopCause.DRAIN
