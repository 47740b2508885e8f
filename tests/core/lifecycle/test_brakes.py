"""Rules 18, 28, 29 and reloads: brakes hold, say so once, and an operator's word is not undone."""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.agenda import turn_ms
from scheduler_core.decisions import BreakerTripped, HostMoved, Placed, StopDecided, WorkloadHeld
from scheduler_core.drain import why_unknown
from scheduler_core.fleet import Host, HostState
from scheduler_core.ids import DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    AutoDrainProposed,
    BreakerReset,
    DrainRequested,
    InventoryLoaded,
    ReleaseRequested,
    UndrainRequested,
    WorkloadSubmitted,
)
from scheduler_core.policy import Policy
from scheduler_core.state import ENDED_KEEP_MS
from scheduler_core.units import DAY, HOUR, MINUTE
from scheduler_core.workload import WorkloadPhase
from tests.core.clusters import OPS, Cluster, budgets, of_kind

H1, H2 = HostName("h1"), HostName("h2")


def proposals(count: int) -> list[AutoDrainProposed]:
    return [AutoDrainProposed(DrainId(f"d{n}"), HostName(f"h{n}"), "XID 79") for n in range(count)]


def test_automatic_drains_begin_in_the_same_step_and_wait_for_an_operator_past_the_limit() -> None:
    c = Cluster(hosts={f"h{n}": 8 for n in range(6)})
    step = c.see(*proposals(4))
    assert len(of_kind(step, HostMoved)) == 2 and len(of_kind(step, BreakerTripped)) == 2
    for _ in range(30):
        assert not of_kind(c.later(HOUR), HostMoved)
    assert len(of_kind(c.see(BreakerReset(OPS)), HostMoved)) == 2
    assert not c.engine.state.tripped


def test_an_undrain_is_not_undone_by_the_same_proposal() -> None:
    c = Cluster()
    c.see(*proposals(0), AutoDrainProposed(DrainId("d"), H1, "XID 79"))
    assert c.host("h1").state is HostState.DRAINING
    c.see(UndrainRequested(H1, OPS))
    assert not of_kind(c.later(HOUR), HostMoved) and c.host("h1").state is HostState.SERVING


def test_a_persons_drain_takes_the_proposal_with_it() -> None:
    c = Cluster(hosts={f"h{n}": 8 for n in range(3)})
    c.see(*proposals(3))
    assert list(c.engine.state.tripped) == ["host h2"]
    c.see(DrainRequested(DrainId("mine"), HostName("h2"), OPS))
    assert not c.engine.state.tripped
    c.see(UndrainRequested(HostName("h2"), OPS))
    assert not of_kind(c.later(HOUR, BreakerReset(OPS)), HostMoved)


def test_an_undrained_suspect_is_not_suspected_for_the_same_failures() -> None:
    c = Cluster({"a": 1})
    for n, owner in enumerate(("ann", "bob", "cid")):
        c.running(f"w{n}", gpus=1, owner=owner, max_retries=0)
        c.finish(f"w{n}", 1)
    assert c.host("h1").state is HostState.SUSPECT
    assert not of_kind(c.see(UndrainRequested(H1, OPS)), HostMoved)
    assert c.host("h1").state is HostState.SERVING


def test_a_released_workload_is_not_held_for_the_same_failures() -> None:
    c = Cluster({"a": 1}, hosts={f"h{n}": 8 for n in range(4)}, policy=Policy(suspect_hosts=2))
    c.submit("w", max_retries=9)
    held = []
    for n in range(2):
        c.start("w")
        host = next(iter(c.engine.state.runs[c.run("w")].members))
        held += of_kind(c.finish("w", 1), WorkloadHeld)
        c.see(DrainRequested(DrainId(f"d{n}"), host, OPS))
        c.later(5 * MINUTE)
    assert len(held) == 1 and c.workload("w").phase is WorkloadPhase.HELD
    assert not of_kind(c.see(ReleaseRequested(WorkloadId("w"), OPS)), WorkloadHeld)
    assert c.workload("w").phase is not WorkloadPhase.HELD


def test_a_preemption_larger_than_the_limit_goes_on_when_an_operator_says_so() -> None:
    policy = Policy(breaker_gpus=4, breaker_gpus_ppm=0)
    c = Cluster(policy=policy)
    c.running("w", "b", min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    step = c.submit("claimant", "a")
    assert of_kind(step, BreakerTripped) and not of_kind(step, StopDecided)
    assert not of_kind(c.later(HOUR), StopDecided)
    step = c.see(BreakerReset(OPS))
    assert of_kind(step, StopDecided) or of_kind(c.later(policy.pass_interval_ms), StopDecided)


def test_what_a_host_removed_from_the_inventory_waits_for_is_over() -> None:
    """G6-09."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.see(DrainRequested(DrainId("d"), H1, OPS))
    c.see(InventoryLoaded(c.policy, budgets(c.weights), (Host(H2, 8),)))
    assert H1 not in c.engine.state.hosts and c.engine.state.drains[DrainId("d")].ended == "removed"
    c.later(HOUR)


def test_a_removed_host_takes_nothing_new_even_if_undrained_and_goes_with_its_last_run() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("gang", gpus=16, min_runtime=MINUTE, resumable=True)
    c.see(InventoryLoaded(c.policy, budgets(c.weights), (Host(H2, 8),)), UndrainRequested(H1, OPS))
    c.finish("gang")
    assert H1 not in c.engine.state.hosts
    assert not of_kind(c.submit("next", gpus=16), Placed)


def test_a_host_that_comes_back_serves_again_unless_somebody_drained_it() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("gang", gpus=16, min_runtime=8 * HOUR)
    both, one = (Host(H1, 8), Host(H2, 8)), (Host(H2, 8),)
    c.see(InventoryLoaded(c.policy, budgets(c.weights), one))
    c.see(InventoryLoaded(c.policy, budgets(c.weights), both))
    assert c.host("h1").state is HostState.SERVING
    c.see(DrainRequested(DrainId("d"), H1, OPS))
    c.see(InventoryLoaded(c.policy, budgets(c.weights), one))
    c.see(InventoryLoaded(c.policy, budgets(c.weights), both))
    assert c.host("h1").state is HostState.DRAINING


def test_a_host_declared_with_fewer_gpus_keeps_its_runs_and_gives_no_more() -> None:
    c = Cluster()
    c.running("w", gpus=8, min_runtime=MINUTE)
    c.see(InventoryLoaded(c.policy, budgets(c.weights), (Host(H1, 4),)))
    assert c.host("h1").held == 0xFF
    c.finish("w")
    assert c.host("h1").free == 0xF


def test_a_cap_below_what_is_held_stops_nothing() -> None:
    c = Cluster()
    c.running("w", gpus=8, min_runtime=0)
    tree = tuple(replace(b, max_gpus=2) if b.id == "a" else b for b in budgets(c.weights))
    assert not of_kind(c.later(HOUR, InventoryLoaded(c.policy, tree, (Host(H1, 8),))), StopDecided)


def test_time_alone_turns_standings_and_a_waiting_claimant_is_looked_at_again() -> None:
    """Nothing happens but time: the run past its minimum becomes the one with more than its share."""
    c = Cluster({"a": 1, "b": 1})
    c.running("w", "b", min_runtime=MINUTE, resumable=True)
    c.later(2 * MINUTE)
    assert not of_kind(c.submit("claimant", "a", min_runtime=8 * HOUR), StopDecided)
    while not c.engine.state.runs[c.run("w")].stop:
        at = c.engine.next_wakeup()
        assert at is not None and c.now < at <= c.now + turn_ms(c.policy)
        c.later(at - c.now)
    assert 30 * MINUTE < c.now - c.engine.state.runs[c.run("w")].placed_at < 30 * MINUTE + 2 * turn_ms(c.policy)


def test_what_ended_a_day_ago_is_forgotten_before_anything_is_observed() -> None:
    """It must not matter at which tick it was noticed: quiet ticks are not journalled."""
    steps = []
    for quiet in (True, False):
        c = Cluster()
        c.running("w", min_runtime=MINUTE)
        workload = c.workload("w").workload
        c.finish("w")
        assert not of_kind(c.see(WorkloadSubmitted(workload)), Placed)
        if quiet:
            c.engine.step(c.now + ENDED_KEEP_MS)
        steps.append(c.engine.step(c.now + DAY + MINUTE, [WorkloadSubmitted(workload)]))
    assert steps[0] == steps[1] and of_kind(steps[0], Placed)


def test_why_nobody_can_say_when_a_drain_ends() -> None:
    c = Cluster(hosts={"h1": 8})
    c.see(c.seen("h1", foreign=0b11))
    c.see(DrainRequested(DrainId("d"), H1, OPS))
    assert "foreign processes on 2" in why_unknown(c.engine.state, c.engine.state.drains[DrainId("d")])
    c = Cluster(hosts={"h1": 8})
    c.running("w")
    c.see(DrainRequested(DrainId("d"), H1, OPS, "finish"))
    assert "natural end" in why_unknown(c.engine.state, c.engine.state.drains[DrainId("d")])
    c.see(DrainRequested(DrainId("d"), H1, OPS))
    assert why_unknown(c.engine.state, c.engine.state.drains[DrainId("d")]) == ""
