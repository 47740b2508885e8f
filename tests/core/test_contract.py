"""Rules 10 to 14 and 17 to 19: protection, preemption, requeue."""

from __future__ import annotations

import pytest

from scheduler_core.commands import StopMember
from scheduler_core.decisions import Claimed, Placed, StopCause, StopDecided
from scheduler_core.ids import HostName
from scheduler_core.observations import (
    CancelRequested,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    RequeueRequested,
)
from scheduler_core.policy import Policy
from scheduler_core.state import ENDED_KEEP_MS
from scheduler_core.units import HOUR, MINUTE, SECOND
from scheduler_core.workload import OnPreempt, Outcome, WorkloadPhase
from tests.core.clusters import OPS, Cluster, of_kind


def test_a_protected_run_is_not_preempted_until_exactly_its_minimum() -> None:
    c = Cluster()
    c.running("squatter", "b", min_runtime=HOUR, resumable=True)
    c.submit("claimant", "a")
    protected_until = c.engine.state.runs[c.run("squatter")].protected_until()
    assert protected_until is not None
    assert not of_kind(c.later(protected_until - c.now - 1), StopDecided)
    (stop,) = of_kind(c.later(1 + c.policy.pass_interval_ms), StopDecided)
    assert (stop.cause, stop.for_workload) == (StopCause.PREEMPT, "claimant")
    assert "claimant" in stop.reason and len(stop.standings) == 2


def test_protection_counts_from_the_start_of_the_last_member() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.submit("gang", gpus=16)
    run = c.run("gang")
    c.see(MemberStarted(run, HostName("h1")))
    c.later(5 * MINUTE)
    assert c.engine.state.runs[run].protected_until() is None
    c.see(MemberStarted(run, HostName("h2")))
    assert c.engine.state.runs[run].protected_until() == c.now + HOUR


def test_a_start_that_takes_too_long_stops_whole_as_failed() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.submit("gang", gpus=16)
    c.see(MemberStarted(c.run("gang"), HostName("h1")))
    step = c.later(c.policy.start_timeout_ms)
    assert [s.cause for s in of_kind(step, StopDecided)] == [StopCause.START_TIMEOUT]
    assert {command.host for command in step.commands} == {"h1", "h2"}


def test_freed_gpus_are_held_for_the_claimant_and_given_to_nobody_else() -> None:
    c = Cluster({"a": 1, "b": 1, "c": 1})
    for n in range(8):
        c.running(f"one-{n}", "b", gpus=1, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    step = c.submit("big", "a", gpus=8)
    assert len(of_kind(step, StopDecided)) == 8
    assert of_kind(step, Claimed)
    c.finish("one-0", 143, signalled=True)
    step = c.submit("small", "c", gpus=1)
    assert not of_kind(step, Placed)
    for n in range(1, 8):
        c.finish(f"one-{n}", 143, signalled=True)
    (placed,) = of_kind(c.later(c.policy.pass_interval_ms), Placed)
    assert placed.workload == "big"


def test_only_the_victims_that_are_needed_go() -> None:
    """G2-06: eleven may go, one is needed."""
    c = Cluster(hosts={"h1": 11})
    for n in range(11):
        c.running(f"one-{n:02}", "b", gpus=1, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    assert len(of_kind(c.submit("single", "a", gpus=1), StopDecided)) == 1


def test_no_plan_no_preemption() -> None:
    """G2-04: victims that do not make room are left alone."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("small", "b", gpus=4, min_runtime=MINUTE)
    c.running("protected", "b", gpus=4, min_runtime=8 * HOUR)
    c.running("other", "b", gpus=8, min_runtime=8 * HOUR)
    c.later(HOUR)
    assert not of_kind(c.submit("whole", "a", gpus=8), StopDecided)


def test_equals_do_not_preempt_each_other() -> None:
    """G2-11: same leaf and priority."""
    c = Cluster({"a": 1})
    c.running("first", min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    assert not of_kind(c.submit("second"), StopDecided)
    assert of_kind(c.submit("urgent", priority=1), StopDecided)


def test_unallocated_work_preempts_nothing_and_yields_first() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("free", "b", min_runtime=0)
    c.running("paid", "b", min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    assert not of_kind(c.submit("beggar", "a", min_runtime=0), StopDecided)
    (stop,) = of_kind(c.submit("claimant", "a"), StopDecided)
    assert stop.run == "free~1"


@pytest.mark.parametrize("code", [0, 143, 137])
def test_an_exit_that_we_asked_for_is_a_preemption_never_a_success(code: int) -> None:
    """G3-04."""
    c = Cluster()
    c.running("victim", "b", min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    c.submit("claimant", "a")
    submitted_at = c.workload("victim").workload.submitted_at
    c.finish("victim", code, signalled=True)
    record = c.workload("victim")
    assert record.phase is WorkloadPhase.WAITING
    assert (record.workload.submitted_at, record.attempts[-1].outcome) == (submitted_at, "preempted")


def test_a_run_that_ended_before_the_signal_succeeded() -> None:
    c = Cluster()
    c.running("victim", "b", min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    c.submit("claimant", "a")
    c.finish("victim", 0, signalled=False)
    assert c.workload("victim").outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("on_preempt", "phase"), [(OnPreempt.END, WorkloadPhase.ENDED), (OnPreempt.RESTART, WorkloadPhase.WAITING)]
)
def test_what_is_not_resumable_ends_unless_it_asked_for_a_restart(on_preempt: OnPreempt, phase: WorkloadPhase) -> None:
    """G2-22."""
    c = Cluster()
    c.running("victim", "b", min_runtime=MINUTE, on_preempt=on_preempt)
    c.later(HOUR)
    c.submit("claimant", "a")
    c.finish("victim", 143, signalled=True)
    assert c.workload("victim").phase is phase


def test_failures_of_its_own_are_retried_with_growing_delay_then_held() -> None:
    c = Cluster()
    delays = []
    c.submit("w")
    for _ in range(3):
        c.start("w")
        c.later(2 * MINUTE)
        c.finish("w", 1)
        delays.append(c.workload("w").not_before - c.now)
        c.later(delays[-1] + c.policy.pass_interval_ms)
    c.start("w")
    c.later(2 * MINUTE)
    c.finish("w", 1)
    assert delays == [MINUTE, 2 * MINUTE, 4 * MINUTE]
    assert c.workload("w").phase is WorkloadPhase.HELD
    assert "exit status 1" in c.workload("w").reason


def test_a_requeue_waits_for_the_minimum_unless_overridden() -> None:
    c = Cluster()
    c.running("w", min_runtime=HOUR, resumable=True)
    assert not of_kind(c.see(RequeueRequested(c.workload("w").workload.id, OPS)), StopDecided)
    (stop,) = of_kind(c.later(HOUR), StopDecided)
    assert not stop.override
    c.finish("w", 143, signalled=True)
    c.later(c.policy.pass_interval_ms)
    c.start("w")
    (stop,) = of_kind(c.see(RequeueRequested(c.workload("w").workload.id, OPS, override=True)), StopDecided)
    assert stop.override


def test_the_host_guards_the_contract_too() -> None:
    c = Cluster()
    c.running("victim", "b", min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    (command,) = c.submit("claimant", "a").commands
    assert isinstance(command, StopMember) and command.min_ran_ms == MINUTE
    (command,) = c.see(CancelRequested(c.workload("victim").workload.id, OPS)).commands or (command,)
    assert c.engine.state.runs[c.run("victim")].stop.cause is StopCause.CANCEL  # type: ignore[union-attr]


def test_a_gang_stops_whole_when_a_member_fails() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("gang", gpus=16)
    step = c.see(MemberExited(c.run("gang"), HostName("h1"), 1))
    assert {command.host for command in step.commands} == {"h1", "h2"}


def test_gpus_are_free_only_when_released() -> None:
    c = Cluster()
    c.running("w")
    run = c.run("w")
    c.see(MemberExited(run, HostName("h1"), 0))
    assert not of_kind(c.submit("next"), Placed)
    assert of_kind(c.see(MemberReleased(run, HostName("h1"))), Placed)


def test_what_is_held_past_the_deadline_leaks_and_its_workload_does_not_start_again() -> None:
    """G3-19."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", resumable=True)
    host = next(iter(c.engine.state.runs[c.run("w")].members))
    c.see(RequeueRequested(c.workload("w").workload.id, OPS, override=True))
    c.later(c.policy.stop_grace_ms + c.policy.stop_deadline_ms)
    assert c.host(host).leaked == 0xFF and c.host(host).state == "suspect"
    c.later(HOUR)
    assert c.workload("w").phase is WorkloadPhase.RUNNING
    c.see(MemberReleased(c.run("w"), host))
    assert c.host(host).leaked == 0


def test_max_blast_binds_until_patience_is_over() -> None:
    policy = Policy(max_blast_ppm=1_000_000, blast_patience_ms=10 * MINUTE)
    c = Cluster(hosts={"h1": 8}, policy=policy)
    c.running("wide", "b", gpus=8, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    assert not of_kind(c.submit("one", "a", gpus=1), StopDecided)
    assert of_kind(c.later(10 * MINUTE), StopDecided)


def test_never_started_is_a_failure_to_start_not_a_preemption() -> None:
    c = Cluster()
    c.submit("w")
    c.see(MemberNeverStarted(c.run("w"), HostName("h1"), "no such file"))
    record = c.workload("w")
    assert (record.phase, record.retries, record.reason) == (WorkloadPhase.WAITING, 1, "no such file on h1")


def test_the_id_of_a_forgotten_workload_brings_no_token_back() -> None:
    """A host answers a token that it knows with what became of it then: a new workload would end without having run."""
    c = Cluster()
    tokens = []
    for _ in range(3):
        c.running("w")
        tokens.append(c.run("w"))
        c.finish("w")
        c.later(ENDED_KEEP_MS - c.policy.pass_interval_ms - 1)
        c.submit("w")
        assert c.workload("w").phase is WorkloadPhase.ENDED, "known: nothing runs twice"
        c.later(1)
    assert tokens == ["w~1", "w~1.1", "w~1.2"]


def test_time_running_backwards_changes_nothing() -> None:
    c = Cluster()
    c.running("w", min_runtime=MINUTE)
    c.engine.step(c.now - HOUR)
    assert c.engine.state.now == c.now
    assert c.engine.state.runs[c.run("w")].protected(c.engine.state.now + 59 * SECOND)
