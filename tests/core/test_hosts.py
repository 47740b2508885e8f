"""Rules 24 to 29: host table, drains, unreachable hosts, suspects, the breaker."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.decisions import Claimed, HostLost, HostMoved, Placed, StopCause, StopDecided, WorkloadHeld
from scheduler_core.drain import drain_plan, eta
from scheduler_core.engine import Engine
from scheduler_core.fleet import HostState, Reach
from scheduler_core.gangs import keeps_its_place
from scheduler_core.hosttable import TABLE, HostEvent, move, refusal
from scheduler_core.ids import DrainId, HostName
from scheduler_core.image import from_image, to_image
from scheduler_core.observations import (
    AutoDrainProposed,
    BreakerReset,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HostDeclared,
    HostSeen,
    HostUnreachable,
    InventoryLoaded,
    MemberExited,
    MemberReleased,
    Observation,
    UndrainRequested,
)
from scheduler_core.units import HOUR, MINUTE
from scheduler_core.workload import WorkloadPhase
from tests.core.clusters import OPS, PASS, Cluster, budgets, of_kind

H1 = HostName("h1")


def drain(
    host: str = "h1", mode: str = "contract", deadline: int | None = None, name: str | None = None
) -> DrainRequested:
    return DrainRequested(DrainId(name or f"d-{host}"), HostName(host), OPS, mode, deadline)  # type: ignore[arg-type]


def seen_empty(c: Cluster, host: str = "h1") -> HostSeen:
    return c.seen(host, empty=True)


def test_every_pair_of_state_and_event_is_listed_or_refused_with_a_reason() -> None:
    for state in HostState:
        for event in HostEvent:
            assert move(state, event) is not None or refusal(state, event)


def test_no_host_state_is_a_dead_end() -> None:
    """G3-10: from every state an operator gets back to serving."""
    for state in HostState:
        if state is not HostState.SERVING:
            assert TABLE[state, HostEvent.UNDRAIN] is HostState.SERVING


def test_a_drain_cordons_at_once_and_stops_each_run_at_the_end_of_its_minimum() -> None:
    c = Cluster()
    c.running("free", "b", gpus=2, min_runtime=0, resumable=True)
    c.running("paid", "a", gpus=4, min_runtime=HOUR, resumable=True)
    step = c.see(drain())
    assert [s.run for s in of_kind(step, StopDecided)] == ["free~1"]
    assert c.host("h1").state is HostState.DRAINING
    until = c.engine.state.runs[c.run("paid")].protected_until()
    assert until is not None and not of_kind(c.later(until - c.now - 1), StopDecided)
    assert c.engine.next_wakeup() == c.now + 1
    (stop,) = of_kind(c.later(1), StopDecided)
    assert stop.cause is StopCause.DRAIN and not stop.override


def test_an_id_belongs_to_one_drain() -> None:
    """Neither another host, nor health, nor a request that comes again after the end takes it over."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.see(drain("h1", name="d"), drain("h2", name="d"), AutoDrainProposed(DrainId("d"), HostName("h2"), "XID 79"))
    assert (c.host("h1").state, c.host("h2").state) == (HostState.DRAINING, HostState.SERVING)
    c.see(drain("h1", mode="finish", name="d"))
    assert c.engine.state.drains[DrainId("d")].mode == "finish"
    c.see(UndrainRequested(H1, OPS))
    c.see(drain("h1", name="d"))
    assert c.host("h1").state is HostState.SERVING and c.engine.state.drains[DrainId("d")].ended == "undrained"


def drained_gang(hosts: int = 3, **more: object) -> Cluster:
    """A gang on h1 and h2, past its minimum, whose host h1 is drained while another owner waits."""
    c = Cluster(hosts={f"h{n}": 8 for n in range(1, hosts + 1)})
    c.running("gang", "b", gpus=16, min_runtime=MINUTE, **more)
    for n in range(3, hosts + 1):
        c.running(f"short{n}", "b", gpus=8, min_runtime=MINUTE)
    c.later(HOUR)
    assert set(c.engine.state.runs[c.run("gang")].members) == {"h1", "h2"}
    return c


def test_a_drained_gang_keeps_its_other_gpus_where_the_rest_finds_a_new_place() -> None:
    """Rule 25: nobody else gets them while it stops, and it goes on with the same attempt's place in the queue."""
    c = drained_gang(resumable=True)
    c.finish("short3")
    c.later(PASS)
    assert keeps_its_place(c.engine.state, c.engine.state.runs[c.run("gang")], [H1])
    step = c.see(drain())
    (claim,) = of_kind(step, Claimed)
    assert [m.host for m in claim.members] == ["h3", "h2"] and claim.waits_for == (c.run("gang"),)
    assert not of_kind(c.submit("rival", "a", gpus=8), Placed)
    c.finish("gang", 143, signalled=True)
    placed = of_kind(c.later(PASS), Placed)
    assert [(p.workload, [m.host for m in p.members]) for p in placed] == [("gang", ["h3", "h2"])]


def test_a_drained_gang_keeps_below_the_cap_also_when_a_part_of_it_has_gone() -> None:
    """Rule 8: what it gave back may have been given to others."""
    tree = (replace(budgets({"b": 1})[0], max_gpus=16), *budgets({"a": 1}))
    c = Cluster(hosts={f"h{n}": 8 for n in range(1, 4)}, tree=tree)
    c.running("gang", "b", gpus=16, min_runtime=MINUTE, resumable=True)
    c.running("half", "a", gpus=4, min_runtime=8 * HOUR)
    c.later(HOUR)
    c.see(drain("h1"))
    gang = c.run("gang")
    c.see(MemberExited(gang, H1, 143, None, True), MemberReleased(gang, H1))
    c.running("other", "b", gpus=4)
    c.later(PASS, UndrainRequested(H1, OPS))
    assert c.host("h1").free == 0xFF and not c.workload("gang").claim


def test_a_drained_gang_without_a_new_place_holds_nothing() -> None:
    c = drained_gang(resumable=True)
    assert not keeps_its_place(c.engine.state, c.engine.state.runs[c.run("gang")], [H1])
    assert not of_kind(c.see(drain()), Claimed)
    c.finish("gang", 143, signalled=True)
    assert of_kind(c.submit("rival", "a", gpus=8), Placed) or c.workload("rival").run


@pytest.mark.parametrize(
    ("more", "ends"),
    [
        ({}, "it ends as preempted"),
        ({"resumable": True, "hosts": 2, "gpus_per_host": 8, "min_runtime": 0}, "it has no guarantee"),
    ],
)
def test_nothing_is_held_for_a_gang_that_does_not_come_back_or_never_paid(more: dict[str, Any], ends: str) -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8, "h3": 8})
    c.running("gang", "b", **{"gpus": 16, "min_runtime": MINUTE, **more})
    c.later(HOUR)
    assert not of_kind(c.see(drain(host_of_run(c, "gang"))), Claimed), ends


def host_of_run(c: Cluster, wid: str) -> str:
    return next(iter(c.engine.state.runs[c.run(wid)].members))


@pytest.mark.parametrize("how", ["cancelled", "failed", "succeeded", "host lost"])
def test_what_was_held_for_a_drained_gang_is_given_up_when_it_does_not_come_back(how: str) -> None:
    c = drained_gang(resumable=True)
    c.finish("short3")
    c.later(PASS)
    c.see(drain())
    assert c.host("h3").claimed
    if how == "cancelled":
        c.see(CancelRequested(c.workload("gang").workload.id, OPS))
    elif how == "host lost":
        c.see(HostUnreachable(HostName("h3"), "timed out"))
        c.later(c.policy.lost_after_ms)
    c.finish("gang", {"failed": 1, "succeeded": 0}.get(how, 143), signalled=how in ("cancelled", "host lost"))
    assert not c.host("h3").claimed and not c.host("h2").claimed


def test_drained_means_known_empty() -> None:
    """G3-01: not before the host itself says so."""
    c = Cluster()
    c.running("w", min_runtime=0, resumable=True)
    run = c.run("w")
    c.see(drain())
    c.later(HOUR)
    assert c.host("h1").state is HostState.DRAINING
    assert not of_kind(c.see(HostUnreachable(H1, "timed out")), HostMoved)
    c.see(c.seen("h1"), MemberExited(run, H1, 143, None, True), MemberReleased(run, H1))
    assert c.host("h1").state is HostState.DRAINING
    c.see(seen_empty(c))
    assert c.host("h1").state is HostState.DRAINED


def test_now_overrides_and_says_so() -> None:
    c = Cluster()
    c.running("w", min_runtime=HOUR)
    plan = drain_plan(c.engine.state, [H1], "now")
    assert plan.guarantees_broken == 1 and plan.rows[0].breaks_guarantee
    (stop,) = of_kind(c.see(drain(mode="now")), StopDecided)
    assert stop.override and stop.actor == "ops"


def test_finish_becomes_a_contract_at_its_deadline() -> None:
    c = Cluster()
    c.running("w", min_runtime=MINUTE)
    c.later(HOUR)
    assert not of_kind(c.see(drain(mode="finish", deadline=c.now + HOUR)), StopDecided)
    assert of_kind(c.later(HOUR), StopDecided)


def test_the_eta_is_the_latest_protection_end_plus_graces_and_unknown_for_a_lost_host() -> None:
    c = Cluster()
    c.running("w", min_runtime=HOUR)
    until = c.engine.state.runs[c.run("w")].protected_until()
    c.see(drain())
    record = c.engine.state.drains[DrainId("d-h1")]
    assert until is not None and eta(c.engine.state, record) == until + c.policy.stop_grace_ms
    c.see(HostUnreachable(H1, "timed out"))
    assert eta(c.engine.state, record) is None
    assert "unverified" in drain_plan(c.engine.state, [H1]).rows[0].blocked


@pytest.mark.parametrize("seed", range(50))
def test_undrain_at_any_moment_never_makes_a_second_copy(seed: int) -> None:
    """G3-03; the fixture's invariants check one live run at every step."""
    draw = random.Random(seed)
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", min_runtime=MINUTE, resumable=True)
    host = next(iter(c.engine.state.runs[c.run("w")].members))
    for number in range(20):
        match draw.randrange(5):
            case 0:
                c.see(drain(host, name=f"d{number}"))
            case 1:
                c.see(UndrainRequested(host, OPS))
            case 2:
                c.later(draw.randrange(2 * MINUTE))
            case 3 if c.workload("w").run:
                c.finish("w", 143, signalled=True)
            case 4 if c.workload("w").run:
                c.start("w")
    assert len(c.engine.state.runs) <= 1


def test_unreachable_hosts_keep_their_runs_and_nothing_restarts_without_proof() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", resumable=True)
    host = next(iter(c.engine.state.runs[c.run("w")].members))
    c.see(HostUnreachable(host, "timed out"))
    assert of_kind(c.later(c.policy.lost_after_ms), HostLost)
    c.later(5 * HOUR)
    assert c.workload("w").phase is WorkloadPhase.RUNNING
    assert c.host(host).reach is Reach.LOST
    (placed,) = of_kind(c.see(HostDeclared(host, "dead", OPS)), Placed)
    assert placed.run == "w~2" and placed.members[0].host != host


def test_a_new_boot_id_proves_that_what_ran_is_dead() -> None:
    c = Cluster()
    c.running("w", resumable=True)
    c.see(c.seen("h1", boot="boot2"))
    assert c.workload("w").attempts[-1].outcome == "requeued"


def test_the_same_boot_id_brings_the_run_back() -> None:
    c = Cluster()
    c.running("w", resumable=True)
    c.see(HostUnreachable(H1, "timed out"))
    c.later(2 * c.policy.lost_after_ms)
    c.see(c.seen("h1"))
    assert c.run("w") == "w~1" and c.host("h1").reach is Reach.FRESH


def test_the_reachable_members_of_a_broken_gang_stop() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("gang", gpus=16, resumable=True)
    c.see(HostUnreachable(H1, "timed out"))
    (stop,) = of_kind(c.later(c.policy.lost_after_ms), StopDecided)
    assert stop.cause is StopCause.GANG_BROKEN
    run = c.run("gang")
    h2 = HostName("h2")
    c.see(MemberExited(run, h2, 143, None, True), MemberReleased(run, h2))
    assert c.host("h2").held == 0 and c.workload("gang").phase is WorkloadPhase.RUNNING


def test_nothing_is_placed_on_hosts_that_nobody_has_seen_or_with_foreign_processes() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.see(HostUnreachable(H1, "timed out"), c.seen("h2", foreign=0b1))
    assert not of_kind(c.submit("w", gpus=8), Placed)
    assert of_kind(c.submit("v", gpus=7), Placed)


def test_a_black_hole_is_cordoned_and_poison_is_held() -> None:
    """Rule 28 (G3-26)."""
    c = Cluster({"a": 1}, hosts={"h1": 8})
    moved = []
    for n, owner in enumerate(("ann", "bob", "cid")):
        c.running(f"w{n}", gpus=1, owner=owner, max_retries=0)
        moved += of_kind(c.finish(f"w{n}", 1), HostMoved)
    assert [m.to for m in moved] == [HostState.SUSPECT]
    c = Cluster({"a": 1}, hosts={"h1": 8, "h2": 8, "h3": 8})
    c.submit("poison", max_retries=9)
    held = []
    for n in (1, 2, 3):
        c.start("poison")
        held += of_kind(c.finish("poison", 1), WorkloadHeld)
        if n < 3:
            c.see(DrainRequested(DrainId(f"d{n}"), c.workload("poison").attempts[-1].members[0].host, OPS))
            c.later(10 * MINUTE)
    assert [h.workload for h in held] == ["poison"]


def test_automatic_drains_stop_at_the_breaker_and_say_so() -> None:
    c = Cluster(hosts={f"h{n}": 8 for n in range(6)})
    proposals = [AutoDrainProposed(DrainId(f"d{n}"), HostName(f"h{n}"), "XID 79") for n in range(4)]
    c.see(*proposals)
    for _ in range(5):
        c.later(MINUTE)
    assert sum(h.state is HostState.DRAINING for h in c.engine.state.hosts.values()) == 2
    assert c.engine.state.tripped
    c.see(BreakerReset(OPS))
    for _ in range(5):
        c.later(MINUTE)
    assert sum(h.state is HostState.DRAINING for h in c.engine.state.hosts.values()) == 4


def test_what_health_drains_is_acted_on_in_the_same_step() -> None:
    """Nothing would wake the engine for an empty host, or for a run without a guarantee."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("free", gpus=8, min_runtime=0, resumable=True)
    busy = host_of_run(c, "free")
    idle = next(name for name in ("h1", "h2") if name != busy)
    c.see(seen_empty(c, idle))
    step = c.see(*(AutoDrainProposed(DrainId(f"d-{name}"), HostName(name), "XID 79") for name in (busy, idle)))
    assert c.host(idle).state is HostState.DRAINED
    assert [(s.run, s.cause) for s in of_kind(step, StopDecided)] == [(c.run("free"), StopCause.DRAIN)]


def test_a_reload_touches_no_run() -> None:
    """G6-09: budget and host leave the inventory while they are in use."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w")
    host = next(iter(c.engine.state.runs[c.run("w")].members))
    fleet = tuple(h.host for h in c.engine.state.hosts.values() if h.host.name != host)
    step = c.see(InventoryLoaded(c.policy, budgets({"b": 1}), fleet))
    assert not of_kind(step, StopDecided)
    assert c.host(host).removed and c.engine.state.budgets.by_id["a"].weight == 0  # type: ignore[index]
    c.finish("w")
    assert host not in c.engine.state.hosts


@pytest.mark.parametrize("asked", [CordonRequested(H1, OPS), drain()], ids=["cordoned", "drained"])
def test_a_host_that_was_out_of_service_comes_back_into_the_inventory_cordoned(asked: Observation) -> None:
    """It was taken out for a reason, which the file that it stands in does not know."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.see(asked)
    both = tuple(record.host for record in c.engine.state.hosts.values())
    c.see(InventoryLoaded(c.policy, budgets(c.weights), both[1:]))
    c.engine = Engine(from_image(to_image(c.engine.state)))
    c.see(InventoryLoaded(c.policy, budgets(c.weights), both))
    c.see(c.seen("h1"), c.seen("h2"))
    record = c.host("h1")
    assert record.state is HostState.CORDONED and record.by is not None and not record.places and c.host("h2").places
    assert record.by.actor == OPS.actor and record.by.why.endswith("when it left the inventory: because")
    c.see(UndrainRequested(H1, OPS))
    assert c.host("h1").places
