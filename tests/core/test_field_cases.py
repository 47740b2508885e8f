"""Faults that other schedulers had (field_reports.json) with records, charges and simultaneous facts, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import permutations

import pytest

from scheduler_core.decisions import Placed, StopDecided
from scheduler_core.engine import Engine
from scheduler_core.explain import Explainer, HoldKind
from scheduler_core.fairshare import Standings
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, DrainId, HostName, RunId, WorkloadId
from scheduler_core.image import from_image, to_image
from scheduler_core.observations import (
    CancelRequested,
    DrainRequested,
    HostUnreachable,
    InventoryLoaded,
    MemberExited,
    MemberReleased,
    MemberStarted,
    Observation,
    WorkloadSubmitted,
)
from scheduler_core.state import Run
from scheduler_core.units import DAY, GPU, HOUR, MINUTE, SECOND
from scheduler_core.workload import Outcome, Workload, WorkloadPhase
from tests.core.clusters import OPS, Cluster, budgets, of_kind

A, B = BudgetId("a"), BudgetId("b")
H1, H2 = HostName("h1"), HostName("h2")


def used(c: Cluster, budget: BudgetId = A) -> int:
    return c.engine.state.ledgers.used(budget, c.now, c.policy.lookback_ms)


def restart(c: Cluster) -> None:
    """The leader is killed; another reads what was kept."""
    c.engine = Engine(from_image(to_image(c.engine.state)))


def fleet(c: Cluster, *names: str) -> tuple[Host, ...]:
    return tuple(c.host(name).host for name in names)


# -- what is taken away while it holds GPUs (G1-08) ------------------------------------------------------------------


def cancelled(c: Cluster) -> Observation:
    return CancelRequested(WorkloadId("w"), OPS)


def budget_removed(c: Cluster) -> Observation:
    return InventoryLoaded(c.policy, budgets({"b": 1}), fleet(c, "h1", "h2"))


def host_removed(c: Cluster) -> Observation:
    gone = next(iter(c.engine.state.runs[c.run("w")].members))
    return InventoryLoaded(c.policy, budgets(c.weights), fleet(c, *({"h1", "h2"} - {gone})))


@pytest.mark.parametrize("gone", [cancelled, budget_removed, host_removed])
def test_what_is_removed_keeps_its_gpus_until_its_host_confirms(gone: Callable[[Cluster], Observation]) -> None:
    """G1-08: removed, then the leader is killed before the host has answered; nothing is given back unseen or lost."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", gpus=4)
    run, (host,) = c.run("w"), c.engine.state.runs[c.run("w")].members
    c.see(gone(c))
    restart(c)
    before = used(c)
    c.later(MINUTE)
    assert used(c) - before == 4 * GPU * MINUTE and c.host(host).held.bit_count() == 4
    c.see(MemberExited(run, host, 0), MemberReleased(run, host))
    spent = used(c)
    c.later(HOUR)
    assert used(c) == spent and not c.engine.state.runs
    assert not any(record.held for record in c.engine.state.hosts.values())


def test_a_gang_that_loses_members_for_good_fails_whole_and_pays_only_for_what_it_holds() -> None:
    """G1-09: 3 of 8 fail; the others are stopped, and each gives back its GPUs when it has gone."""
    c = Cluster(hosts={f"h{n}": 1 for n in range(8)})
    c.running("gang", gpus=8, hosts=8, gpus_per_host=1)
    run = c.run("gang")
    for n in range(3):
        c.see(MemberExited(run, HostName(f"h{n}"), 1), MemberReleased(run, HostName(f"h{n}")))
    assert c.engine.state.runs[run].stop is not None
    before = used(c)
    c.later(MINUTE)
    assert used(c) - before == 5 * GPU * MINUTE
    for n in range(3, 8):
        c.see(MemberExited(run, HostName(f"h{n}"), 143, None, True), MemberReleased(run, HostName(f"h{n}")))
    assert c.workload("gang").retries == 1 and not c.engine.state.runs


# -- charges ---------------------------------------------------------------------------------------------------------


def test_usage_outside_the_window_is_exactly_nothing() -> None:
    """G1-11: nothing decays and nothing is left, however often it is looked at."""
    c = Cluster()
    c.running("w", gpus=1)
    c.finish("w")
    spent = used(c)
    for _ in range(10_000):
        c.now += MINUTE
        c.engine.step(c.now)
    assert used(c) == spent > 0
    c.later(DAY)
    assert used(c) == 0 and Standings(c.engine.state).balance(A) == 0


@pytest.mark.parametrize("again", [1, 2, 3])
def test_facts_told_again_or_late_charge_once(again: int) -> None:
    """G1-23: whatever a host repeats after a broken link, each run is one charge."""
    c = Cluster()
    c.submit("w", gpus=4)
    run = c.run("w")
    facts: list[Observation] = [MemberStarted(run, H1), MemberExited(run, H1, 0), MemberReleased(run, H1)]
    for n, fact in enumerate(facts):
        for _ in range(again):
            c.later(MINUTE, *facts[: n + 1][::-1])
        c.see(fact)
    spent = used(c)
    c.later(HOUR, *facts, *reversed(facts))
    assert used(c) == spent and c.workload("w").outcome is Outcome.SUCCEEDED
    assert [a.outcome for a in c.workload("w").attempts] == ["succeeded"]


# -- holding what was freed (G2-02) ----------------------------------------------------------------------------------


def test_what_victims_free_at_different_times_is_kept_and_nobody_is_evicted_twice() -> None:
    """G2-02: 5 s and 60 s to leave, and a stream of others that would fit into the half that is free."""
    c = Cluster({"a": 1, "b": 1, "c": 1})
    for name in ("quick", "slow"):
        c.running(name, "b", gpus=4, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    first = c.submit("big", "a", gpus=8)
    assert sorted(s.run for s in of_kind(first, StopDecided)) == ["quick~1", "slow~1"]
    stops, placed = 0, []
    for n in range(12):
        step = c.submit(f"next{n}", "c", gpus=4)
        stops += len(of_kind(step, StopDecided))
        placed += of_kind(step, Placed)
        if n == 0:
            c.finish("quick", 143, signalled=True)
            hold = Explainer(c.engine.state).hold(c.workload("big"))
            assert (hold.kind, hold.text) == (HoldKind.VICTIM_STOPPING, "waiting for slow~1 to stop")
    assert not stops and not placed
    placed = of_kind(c.finish("slow", 143, signalled=True), Placed)
    placed += of_kind(c.later(c.policy.pass_interval_ms), Placed)
    assert [p.workload for p in placed] == ["big"]


def test_a_claim_whose_victim_will_not_go_is_planned_anew() -> None:
    """G2-02: what is held for somebody does not wait for ever."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    for name in ("one", "two"):
        c.running(name, "b", gpus=8, min_runtime=MINUTE, resumable=True)
    c.later(HOUR)
    (stop,) = of_kind(c.submit("big", "a"), StopDecided)
    (stuck,) = c.engine.state.runs[stop.run].members
    c.later(c.policy.stop_grace_ms + c.policy.stop_deadline_ms)
    assert c.host(stuck).leaked == 0xFF
    c.later(c.policy.pass_interval_ms)
    assert [member.host for member in c.workload("big").claim] == [H2 if stuck == H1 else H1]


# -- hosts that come and go ------------------------------------------------------------------------------------------


def test_a_host_that_flaps_moves_nobody() -> None:
    """G3-26: up and down six times in ten minutes. Its run goes on, charged; nothing is started twice or taken away."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", resumable=True)
    run, (host,) = c.run("w"), c.engine.state.runs[c.run("w")].members
    for _ in range(6):
        down = c.later(50 * SECOND, HostUnreachable(host, "connection reset"))
        up = c.later(50 * SECOND, c.seen(host), MemberStarted(run, host, 10 * MINUTE))
        assert not down.commands and not up.commands
    assert c.run("w") == run and c.engine.state.runs[run].stop is None


# -- one instant -----------------------------------------------------------------------------------------------------


def test_runs_of_no_length_start_and_end_once_each() -> None:
    """G7-09: hundreds that are over before they are seen to start, all at one instant."""
    c = Cluster()
    one = Workload(WorkloadId("w"), A, 1, MINUTE, c.now)
    many = [replace(one, id=WorkloadId(f"w{n:03}")) for n in range(200)]
    c.see(*(WorkloadSubmitted(w) for w in many))
    for _ in range(200 // 8 + 1):
        c.later(c.policy.pass_interval_ms)
        c.see(*(fact for run in list(c.engine.state.runs.values()) for fact in over_at_once(run)))
    records = [c.workload(w.id) for w in many]
    assert {(r.phase, r.outcome, len(r.attempts)) for r in records} == {(WorkloadPhase.ENDED, Outcome.SUCCEEDED, 1)}
    ends = [r.ended_at or 0 for r in records]
    assert ends == sorted(ends) and not any(record.held for record in c.engine.state.hosts.values())


def over_at_once(run: Run) -> Iterable[Observation]:
    for host in run.members:
        yield from (MemberStarted(run.id, host), MemberExited(run.id, host, 0), MemberReleased(run.id, host))


def test_facts_of_one_instant_give_one_result_in_every_order() -> None:
    """G7-10: an end, a submission, a drain and a cancel at once; the GPUs in use never exceed those there are."""

    def result(order: tuple[int, ...]) -> object:
        c = Cluster(hosts={"h1": 8, "h2": 8})
        for name in ("ends", "dropped"):
            c.running(name, gpus=8)
        c.later(MINUTE)
        (host,) = c.engine.state.runs[c.run("ends")].members
        (other,) = c.engine.state.runs[c.run("dropped")].members
        facts: list[list[Observation]] = [
            [MemberExited(RunId("ends~1"), host, 0), MemberReleased(RunId("ends~1"), host)],
            [WorkloadSubmitted(Workload(WorkloadId("new"), B, 8, HOUR, c.now))],
            [DrainRequested(DrainId("d"), other, OPS)],
            [CancelRequested(WorkloadId("dropped"), OPS)],
        ]
        c.see(*(fact for n in order for fact in facts[n]))
        c.later(c.policy.pass_interval_ms)
        state = c.engine.state
        runs = {run.id: (tuple(run.members), run.stop and run.stop.cause) for run in state.runs.values()}
        return runs, {w: r.phase for w, r in state.workloads.items()}, {h: r.state for h, r in state.hosts.items()}

    results = [result(order) for order in permutations(range(4))]
    assert all(found == results[0] for found in results)
