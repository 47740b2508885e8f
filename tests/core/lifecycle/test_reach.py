"""Rules 11, 13, 26, 27: what is not known because nobody could ask does not time out, is not free and is not dead."""

from __future__ import annotations

import pytest

from scheduler_core.commands import FenceHost, StartMember, StopMember
from scheduler_core.contract import REPORT_GRACE_MS, RETURN_GRACE_MS
from scheduler_core.decisions import HostLost, HostMoved, MemberLeaked, Placed, StopCause, StopDecided, StrayFound
from scheduler_core.fleet import Host, HostState, Reach
from scheduler_core.ids import DrainId, HostName, RunId
from scheduler_core.observations import (
    CancelRequested,
    DrainRequested,
    HostDeclared,
    HostFenced,
    HostStale,
    HostUnreachable,
    InventoryLoaded,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    RequeueRequested,
    UndrainRequested,
)
from scheduler_core.units import HOUR, MINUTE
from scheduler_core.workload import WorkloadPhase
from tests.core.clusters import OPS, Cluster, budgets, of_kind

H1, H2 = HostName("h1"), HostName("h2")


def host_of(c: Cluster, wid: str) -> HostName:
    return next(iter(c.engine.state.runs[c.run(wid)].members))


def test_a_start_that_nobody_could_report_does_not_time_out() -> None:
    """It may run there, protected (G3-13)."""
    c = Cluster()
    c.submit("w")
    run = c.run("w")
    c.see(HostUnreachable(H1, "timed out"))
    assert not of_kind(c.later(5 * HOUR), StopDecided)
    c.see(MemberStarted(run, H1, 4 * HOUR), c.seen("h1"))
    assert not of_kind(c.later(HOUR), StopDecided)
    assert c.engine.state.runs[run].started_at == c.now - 5 * HOUR


def test_a_host_that_answers_again_has_a_minute_to_report_the_start() -> None:
    c = Cluster()
    c.submit("w")
    c.see(HostUnreachable(H1, "timed out"))
    c.later(HOUR, c.seen("h1"))
    assert c.engine.next_wakeup() == c.now + REPORT_GRACE_MS
    assert not of_kind(c.later(REPORT_GRACE_MS - 1), StopDecided)
    (stop,) = of_kind(c.later(1), StopDecided)
    assert isinstance(stop, StopDecided) and stop.cause is StopCause.START_TIMEOUT


def test_our_own_absence_stops_nothing() -> None:
    """G2-26: a suspended console comes back; it marks its readings stale before anything else."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.submit("w", gpus=16)
    c.later(8 * HOUR, HostStale(H1), HostStale(H2))
    run = c.run("w")
    c.see(MemberStarted(run, H1, 7 * HOUR), MemberStarted(run, H2, 7 * HOUR), c.seen("h1"), c.seen("h2"))
    assert c.engine.state.runs[run].stop is None


def test_a_stop_that_could_not_be_heard_leaks_nothing_until_its_graces_are_over() -> None:
    c = Cluster()
    c.running("w", resumable=True)
    c.see(HostUnreachable(H1, "timed out"))
    c.see(CancelRequested(c.workload("w").workload.id, OPS))
    assert not of_kind(c.later(2 * HOUR), MemberLeaked)
    assert not of_kind(c.see(c.seen("h1")), MemberLeaked)
    wait = c.policy.stop_grace_ms + c.policy.stop_deadline_ms
    assert not of_kind(c.later(wait - 1), MemberLeaked)
    assert of_kind(c.later(1), MemberLeaked)


def test_a_report_that_overtakes_the_new_boot_id_is_not_buried() -> None:
    """A start resent after a reboot is told before the first reading with the new boot id."""
    c = Cluster()
    c.submit("w", resumable=True)
    c.see(HostUnreachable(H1, "connection reset"))
    c.see(MemberStarted(c.run("w"), H1))
    c.see(c.seen("h1", boot="boot2"))
    assert c.run("w") == "w~1" and c.engine.state.runs[c.run("w")].started_at is not None
    c.see(c.seen("h1", boot="boot3"))
    assert c.workload("w").attempts[-1].outcome == "requeued"


def test_an_unreadable_boot_id_proves_nothing() -> None:
    c = Cluster()
    c.running("w", resumable=True)
    c.see(c.seen("h1", boot=""))
    assert c.run("w") == "w~1" and c.host("h1").boot_id == "boot1"


def test_what_was_declared_dead_and_lives_is_stopped_before_anything_starts_there() -> None:
    """G3-15."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", resumable=True)
    host, old = host_of(c, "w"), c.run("w")
    other = H2 if host == H1 else H1
    c.see(HostUnreachable(host, "timed out"))
    assert of_kind(c.see(HostDeclared(host, "dead", OPS)) or c.see(), Placed) or of_kind(c.later(MINUTE), Placed)
    assert host_of(c, "w") == other
    step = c.see(MemberStarted(old, host, HOUR), c.seen(host))
    assert of_kind(step, StrayFound) == [StrayFound(old, host)]
    (stop,) = [command for command in step.commands if isinstance(command, StopMember)]
    assert (stop.run, stop.host, stop.min_ran_ms) == (old, host, 0)
    assert stop.id in [command.id for command in c.engine.outstanding(host)]
    assert not of_kind(c.submit("next"), Placed)
    c.see(MemberExited(old, host, 143, None, True), MemberReleased(old, host))
    assert of_kind(c.later(MINUTE), Placed) and not c.engine.outstanding(HostName("nowhere"))


def test_a_reboot_ends_the_search_for_strays() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", resumable=True)
    host, old = host_of(c, "w"), c.run("w")
    c.see(HostUnreachable(host, "timed out"))
    c.see(HostDeclared(host, "dead", OPS))
    c.see(c.seen(host, boot="boot2"))
    assert c.host(host).buried == [] and not of_kind(c.see(MemberStarted(old, host)), StrayFound)


def test_a_lost_host_with_a_fence_is_powered_off_once_and_its_runs_are_dead_when_that_is_confirmed() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    fleet = tuple(Host(HostName(name), 8, fence=True) for name in ("h1", "h2"))
    c.see(InventoryLoaded(c.policy, budgets(c.weights), fleet))
    c.running("w", resumable=True)
    host = host_of(c, "w")
    c.see(HostUnreachable(host, "timed out"))
    step = c.later(c.policy.lost_after_ms)
    assert of_kind(step, HostLost)
    (fence,) = step.commands
    assert isinstance(fence, FenceHost) and fence.host == host
    assert c.engine.outstanding(host)[-1] == fence
    placed = of_kind(c.see(HostFenced(host, fence.id)), Placed) or of_kind(c.later(MINUTE), Placed)
    assert placed and not [x for x in c.engine.outstanding(host) if isinstance(x, FenceHost)]


@pytest.mark.parametrize("undrained", [False, True])
def test_a_host_that_left_goes_for_good_when_its_reboot_ends_its_last_run(undrained: bool) -> None:
    """Nothing of it stays in service."""
    c = Cluster(hosts={"h1": 8, "h2": 4})
    c.running("w", gpus=8)
    rest = tuple(h.host for h in c.engine.state.hosts.values() if h.host.name != H1)
    c.see(InventoryLoaded(c.policy, budgets(c.weights), rest))
    if undrained:
        c.see(UndrainRequested(H1, OPS))
    c.later(MINUTE, c.seen("h1", boot="boot2"))
    assert H1 not in c.engine.state.hosts and c.engine.state.ledgers.service.rate == 4000


def test_a_power_off_that_is_confirmed_when_the_host_is_back_buries_nobody() -> None:
    c = Cluster()
    c.see(InventoryLoaded(c.policy, budgets(c.weights), (Host(H1, 8, fence=True),)))
    c.running("w", resumable=True)
    c.see(HostUnreachable(H1, "timed out"))
    (fence,) = c.later(c.policy.lost_after_ms).commands
    c.see(c.seen("h1", boot="boot2"))
    c.later(MINUTE)
    again = c.run("w")
    for _ in range(2):
        c.see(HostFenced(H1, fence.id))
        assert c.run("w") == again
        c.see(HostUnreachable(H1, "timed out"))
        c.later(c.policy.lost_after_ms)


def test_a_drain_ends_although_the_only_run_there_never_started() -> None:
    """The host has said all along that it is empty, and says nothing new."""
    c = Cluster()
    c.see(c.seen("h1", empty=True))
    c.submit("w", min_runtime=0)
    run = c.run("w")
    c.see(DrainRequested(DrainId("d"), H1, OPS))
    assert c.host("h1").state is HostState.DRAINING
    (moved,) = of_kind(c.see(MemberNeverStarted(run, H1, "stopped before it started")), HostMoved)
    assert isinstance(moved, HostMoved) and moved.to is HostState.DRAINED


def test_what_was_stopped_before_it_ran_keeps_its_place_even_if_not_resumable() -> None:
    c = Cluster()
    c.submit("w", min_runtime=0)
    c.see(DrainRequested(DrainId("d"), H1, OPS))
    c.see(MemberNeverStarted(c.run("w"), H1, "stopped before it started"))
    assert c.workload("w").phase is WorkloadPhase.WAITING and c.workload("w").retries == 0


def test_gang_protection_counts_from_the_member_that_really_started_last() -> None:
    """The report of the earlier start may arrive later."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.submit("gang", gpus=16)
    run = c.run("gang")
    c.later(5 * MINUTE, MemberStarted(run, H1))
    c.see(MemberStarted(run, H2, 4 * MINUTE))
    assert c.engine.state.runs[run].started_at == c.now


def test_a_member_that_ended_before_its_start_was_told_does_not_hold_the_gang_in_starting() -> None:
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.submit("gang", gpus=16)
    run = c.run("gang")
    c.see(MemberExited(run, H1, 0), MemberStarted(run, H2))
    assert c.engine.state.runs[run].started_at == c.now
    assert not of_kind(c.later(c.policy.start_timeout_ms), StopDecided)


def test_a_leaked_member_that_turns_out_never_to_have_started_is_gone() -> None:
    c = Cluster()
    c.submit("w", resumable=True)
    c.see(RequeueRequested(c.workload("w").workload.id, OPS, override=True))
    assert of_kind(c.later(c.policy.stop_grace_ms + c.policy.stop_deadline_ms), MemberLeaked)
    c.see(MemberNeverStarted(c.run("w"), H1, "stopped before it started"))
    assert c.host("h1").leaked == 0 and c.workload("w").phase is WorkloadPhase.WAITING


def test_outstanding_names_exactly_what_has_no_outcome() -> None:
    """G2-18: the same ids as when first issued."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    sent = c.submit("gang", gpus=16).commands
    assert c.engine.outstanding() == sent and all(isinstance(x, StartMember) for x in sent)
    run = c.run("gang")
    c.see(MemberStarted(run, H1))
    assert [x.id for x in c.engine.outstanding()] == [f"{run}/h2/start"]
    c.see(MemberStarted(run, H2))
    assert c.engine.outstanding() == ()
    sent = c.see(CancelRequested(c.workload("gang").workload.id, OPS)).commands
    c.see(MemberExited(run, H1, 0, None, True), MemberReleased(run, H1))
    assert c.engine.outstanding() == tuple(x for x in sent if isinstance(x, StopMember) and x.host == H2)


def test_a_cut_of_the_whole_network_changes_nothing_but_what_is_known() -> None:
    """G3-13: 20 runs on 5 hosts, cut for ten minutes."""
    c = Cluster({"a": 1}, hosts={f"h{n}": 8 for n in range(5)})
    for n in range(20):
        c.running(f"w{n}", gpus=2, resumable=True)
    runs = dict(c.engine.state.runs)
    c.see(*(HostUnreachable(HostName(f"h{n}"), "no route") for n in range(5)))
    assert {h.reach for h in c.engine.state.hosts.values()} == {Reach.UNREACHABLE}
    for _ in range(10):
        assert not of_kind(c.later(MINUTE), StopDecided)
    c.submit("late", gpus=1)
    c.see(*(c.seen(f"h{n}") for n in range(5)))
    assert {r for r in c.engine.state.runs if r != RunId("late~1")} == set(runs)
    assert all(run.stop is None for run in c.engine.state.runs.values())


def cut_gang(minutes: int) -> Cluster:
    """A protected gang on two hosts, all of which could not be reached for a while."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("gang", gpus=16, min_runtime=8 * HOUR, resumable=True)
    c.see(HostUnreachable(H1, "no route"), HostUnreachable(H2, "no route"))
    for _ in range(minutes):
        assert not of_kind(c.later(MINUTE), StopDecided)
    return c


def test_an_outage_of_our_own_breaks_no_gang() -> None:
    """G3-13: every host is lost at once and comes back, one after the other; the gang has run all the time."""
    c = cut_gang(minutes=10)
    assert c.host("h1").reach is Reach.LOST and c.host("h2").reach is Reach.LOST
    c.see(c.seen("h1"))
    assert not of_kind(c.later(RETURN_GRACE_MS - 1, c.seen("h2")), StopDecided)
    assert not of_kind(c.later(HOUR), StopDecided) and c.run("gang") == "gang~1"


def test_a_gang_of_which_one_host_does_not_come_back_is_broken() -> None:
    """Rule 27: its reachable member stops; a restart waits for proof of the other's death."""
    c = cut_gang(minutes=10)
    c.see(c.seen("h1"))
    assert c.engine.next_wakeup() == c.now + RETURN_GRACE_MS
    assert not of_kind(c.later(RETURN_GRACE_MS - 1), StopDecided)
    (stop,) = of_kind(c.later(1), StopDecided)
    assert (stop.cause, stop.reason) == (StopCause.GANG_BROKEN, "its member on h2 is lost")
