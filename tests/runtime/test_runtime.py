"""The live loop against hosts that forget, reboot, lie and fall silent."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import opsconsole.leader as live
from opsconsole import clock, hostlinks
from opsconsole.errors import LostLease, OpsConsoleError, StoreError
from opsconsole.runtime import Runtime
from opsconsole.store.store import Store
from scheduler_core.decisions import Placed
from scheduler_core.fleet import HostState
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostDeclared,
    MemberStarted,
    ReleaseRequested,
    RequeueRequested,
    UndrainRequested,
    WeightChanged,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.workload import WorkloadPhase
from tests.runtime.rig import OPS, POLICY, Rig, acts, all_fresh, ended, job, on_disk, problems, record, started, until

H1, H2 = HostName("h1"), HostName("h2")


async def test_a_day_in_the_life(tmp_path: Path) -> None:
    """Submit, gang, preempt after the minimum, requeue, drain, undrain, cancel; nothing lost, twice or early."""
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        await runtime.ask(job("gang", 0.6, gpus=8, min_s=0.3, resumable=True))
        await until(lambda: started(runtime, "gang"), "the gang")
        specs = [host.runs[record(runtime, "gang").run]["spec"] for host in rig.hosts.values()]  # type: ignore[index]
        assert {s["rank"] for s in specs} == {0, 1} and {s["master_addr"] for s in specs} == {"addr-h1"}
        assert len({s["master_port"] for s in specs}) == 1 and {s["nodes"] for s in specs} == {2}
        await runtime.ask(job("claim", 0.2, gpus=4, budget="b"))
        await until(lambda: started(runtime, "claim"), "the claimant")
        await runtime.ask(DrainRequested(DrainId("d"), H1, OPS))
        await until(lambda: runtime.state.hosts[H1].state is HostState.DRAINED, "the drain")
        await runtime.ask(UndrainRequested(H1, OPS))
        await runtime.ask(job("long", gpus=4, budget="b", min_s=60))
        await until(lambda: started(runtime, "long"), "the long one")
        await runtime.ask(CancelRequested(WorkloadId("long"), OPS))
        await until(lambda: ended(runtime, "gang", "claim", "long") and on_disk(runtime), "all to end")
        assert record(runtime, "gang").attempts[0].outcome == "preempted"
        assert not runtime.alarms
    assert not problems(rig, runtime, ("gang", "claim", "long"))


# -- hosts that come back ------------------------------------------------------------------------------------------


async def test_a_run_started_after_a_reboot_is_not_taken_for_dead(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, min_s=0.1, resumable=True))
        await until(lambda: started(runtime, "w"), "the first attempt")
        rig.pool.down.add("h1")
        await until(lambda: runtime.state.hosts[H1].reach.value == "unreachable", "silence")
        rig.hosts["h1"].reboot()
        rig.pool.down.clear()
        await until(lambda: record(runtime, "w").attempt == 2 and started(runtime, "w"), "the second attempt")
        await asyncio.sleep(0.2)
        assert record(runtime, "w").attempt == 2, "the new boot was told after the run that it had started"


async def test_a_new_leader_places_nothing_on_a_host_that_has_not_spoken_to_it(
    tmp_path: Path,
) -> None:
    """The journal says fresh; that was another leader's reading (rule 26)."""
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as first:
        await first.ask(job("before", 0.01, min_s=0.01))
    runtime = rig.runtime()
    assert all_fresh(runtime)
    rig.hosts["h1"].mute = True
    task = asyncio.create_task(runtime.lead("test", reconcile_s=0.1))
    await until(lambda: acts(runtime), "it to lead", task)
    await runtime.ask(job("w", 60))
    await asyncio.sleep(0.2)
    assert record(runtime, "w").run is None and runtime.state.hosts[H1].reach.value == "stale"
    rig.hosts["h1"].mute = False
    await until(lambda: started(runtime, "w"), "its first word")
    task.cancel()


async def test_a_host_in_silence_keeps_its_runs(tmp_path: Path) -> None:
    """G2-21, G3-12: no answer is no negative answer."""
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        run = record(runtime, "w").run
        rig.hosts["h1"].mute = True
        await until(lambda: runtime.state.hosts[H1].reach.value == "stale", "a stale reading")
        rig.pool.down.add("h1")
        await until(lambda: runtime.state.hosts[H1].reach.value == "unreachable", "a cut")
        rig.hosts["h1"].mute = False
        rig.pool.down.clear()
        await until(lambda: all_fresh(runtime), "its return")
        assert record(runtime, "w").run == run and len(rig.hosts["h1"].runs) == 1


async def test_a_run_that_its_host_forgot_is_neither_dead_nor_silent(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        run = record(runtime, "w").run
        rig.pool.down.add("h1")
        await until(lambda: runtime.state.hosts[H1].reach.value == "unreachable", "a cut")
        rig.hosts["h1"].runs.clear()
        rig.pool.down.clear()
        await until(lambda: all_fresh(runtime), "its return")
        assert record(runtime, "w").run == run and f"knows nothing of {run}" in runtime.alarms["runs h1"]


# -- commands ------------------------------------------------------------------------------------------------------


async def test_a_start_whose_answer_was_lost_is_looked_for_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G4-18 and the second kill of G2-18: done on the host, unknown here."""
    monkeypatch.setattr(hostlinks, "LOOK_S", 0.05)
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        rig.pool.lose_answers = 1
        await runtime.ask(job("w", 0.3))
        await until(lambda: ended(runtime, "w"), "it to end")
        starts = [fields["token"] for _, op, fields in rig.pool.sent if op == "start"]
        assert starts == [record(runtime, "w").attempts[0].run]
    assert not problems(rig, runtime, ("w",))


async def test_a_start_that_the_host_refuses_is_burnt_and_told(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        rig.hosts["h1"].refuse_start = "not_started"
        await runtime.ask(job("w", 0.3, max_retries=0))
        await until(lambda: bool(record(runtime, "w").attempts), "the refusal")
        attempt = record(runtime, "w").attempts[0]
        assert attempt.run in rig.hosts["h1"].burnt and attempt.outcome == "failed"
        assert attempt.why == "the host refused to start it: no such GPU"
        assert record(runtime, "w").reason == "failed: the host refused to start it: no such GPU on h1"


async def test_the_host_is_asked_again_when_it_guards_the_contract(tmp_path: Path) -> None:
    """The host's clock says protected although ours says not: its word counts, and the stop is not forgotten."""
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, min_s=0.2, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        (run,) = rig.hosts["h1"].runs.values()
        run["began_ms"] += 2000  # this host noticed later
        await runtime.ask(job("claim", 0.1, budget="b"))
        await until(lambda: ended(runtime, "claim"), "the claimant")
        assert rig.hosts["h1"].protected and run["ends_ms"] - run["began_ms"] >= 200


# -- GPUs ----------------------------------------------------------------------------------------------------------


async def test_what_keeps_a_run_from_being_over_is_said_while_it_does(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    host = rig.hosts["h1"]
    host.stop_ms = 3_600_000
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        host.trouble = "cannot be killed: process 7 waits for a device"
        await runtime.ask(CancelRequested(WorkloadId("w"), OPS))
        await until(lambda: runtime.alarms, "the trouble")
        run = str(record(runtime, "w").run)
        assert list(runtime.alarms.values()) == [f"{run} on h1: {host.trouble}"]
        host.trouble, host.runs[run]["ends_ms"] = None, clock.boot_now_ms()
        await until(lambda: ended(runtime, "w") and not runtime.alarms, "its end")


async def test_gpus_of_strangers_and_of_runs_that_nobody_knows_are_not_free(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    host = rig.hosts["h1"]
    host.foreign[0] = 1
    stray = {"store": "another", "boot_id": host.boot_id, "gpus": ["GPU-h1-1"], "spec": {"workload": "x"}}
    host.runs["x~1"] = {**stray, "began_ms": 0, "ends_ms": 1 << 60, "stopped": False, "code": 0}
    async with rig.leading() as runtime:
        record_ = runtime.state.hosts[H1]
        assert record_.foreign == 0b11 and not record_.empty
        await runtime.ask(job("w", 60, gpus=3))
        await asyncio.sleep(0.2)
        assert record(runtime, "w").run is None
        host.foreign[0] = 0
        await until(lambda: started(runtime, "w"), "three GPUs to be free")
        run = host.runs[record(runtime, "w").run]  # type: ignore[index]
        assert run["gpus"] == ["GPU-h1-0", "GPU-h1-2", "GPU-h1-3"]


@pytest.mark.parametrize(
    "nonsense",
    [
        {"event": "run", "run": {"token": 3}},
        {"event": "run", "run": {}},
        {"event": "probe", "probe": b'{"gpus": [{"slot": "x"}, {"slot": 99}, {"slot": 0, "processes": []}]}'},
        {"event": "probe", "probe": b'{"gpus": [null, 7]}'},
        {"event": "probe", "probe": b'{"gpus": 3}'},
        {"event": "probe", "probe": b"[]"},
        {"event": "probe", "probe": 3},
        {"event": "kernel", "lines": "none"},
        {"event": ["?"]},
    ],
)
async def test_a_host_that_speaks_nonsense_harms_nobody(tmp_path: Path, nonsense: Any) -> None:
    """Foreign text is data: it is passed over, and never reaches the journal in a shape that cannot be read."""
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        rig.pool.hear("line", "h1", nonsense)
        await runtime.ask(job("w", 0.1))
        rig.pool.hear("line", "h1", nonsense)
        await until(lambda: ended(runtime, "w"), "work to go on")
    assert Store(rig.store_path).recover().seq > 0


async def test_what_a_host_says_of_a_run_is_checked_before_it_is_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        lie = {"token": record(runtime, "w").run, "store": runtime.store.id, "phase": "exited", "ran_s": float("nan")}
        rig.pool.hear("line", "h1", {"event": "run", "run": {**lie, "exit": {"code": "zero", "signal": ["x"]}}})
        await until(lambda: any(e.kind == "MemberExited" for e in runtime.events), "the fact")
    exited = next(e.value for e in Store(rig.store_path).tail(0) if e.kind == "MemberExited")
    assert (exited.exit_code, exited.signal) == (None, None)


# -- asking --------------------------------------------------------------------------------------------------------


async def test_what_cannot_be_done_is_refused_before_it_is_journalled(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        for asked, why in (
            (CordonRequested(HostName("h9"), OPS), "no host 'h9'"),
            (CancelRequested(WorkloadId("w9"), OPS), "no workload 'w9'"),
            (job("w", budget="zzz"), "no budget 'zzz'"),
        ):
            with pytest.raises(OpsConsoleError, match=why):
                await runtime.ask(asked)
        events = runtime.store.tail(0)
        assert not {event.kind for event in events} & {"CordonRequested", "CancelRequested", "WorkloadSubmitted"}
        told = [event.value for event in events if event.kind == "RequestRefused"]
        assert [(t.asked, t.about, t.why, t.by.actor) for t in told] == [
            ("CordonRequested", "h9", "no host 'h9'", "ops"),
            ("CancelRequested", "w9", "no workload 'w9'", "ops"),
            ("WorkloadSubmitted", "w", "no budget 'zzz'", "me"),
        ], "but that it was refused is"


async def test_what_others_were_faster_with_is_refused(tmp_path: Path) -> None:
    """Between a plan and its request: nothing stands in the journal that never happened."""
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w"))
        await until(lambda: started(runtime, "w"), "w to run")
        for asked, why in (
            (HoldRequested(WorkloadId("w"), OPS), "w: it is running, not waiting"),
            (ReleaseRequested(WorkloadId("w"), OPS), "w: it is running, not held"),
            (UndrainRequested(H1, OPS), "h1: undrain does nothing to a serving host"),
            (WorkloadMoved(WorkloadId("w"), OPS, BudgetId("c")), "no budget 'c'"),
            (WeightChanged(BudgetId("c"), 1, OPS), "no budget 'c'"),
        ):
            with pytest.raises(OpsConsoleError, match=why):
                await runtime.ask(asked)
        await runtime.ask(CancelRequested(WorkloadId("w"), OPS))
        await until(lambda: ended(runtime, "w"), "w to end")
        for late in (CancelRequested(WorkloadId("w"), OPS), RequeueRequested(WorkloadId("w"), OPS)):
            with pytest.raises(OpsConsoleError, match="ended"):
                await runtime.ask(late)


async def test_of_two_who_ask_for_the_same_at_once_one_is_told_that_the_other_was_faster(tmp_path: Path) -> None:
    """Whatever they ask for, on hosts and on workloads, also under an id that only the first of them makes."""
    rig, lee = Rig(tmp_path, names=("h1", "h2")), By("lee", "me too")
    async with rig.leading() as runtime:
        asked = [CordonRequested(H1, OPS), job("w"), CordonRequested(HostName("h2"), OPS), CordonRequested(H1, lee)]
        asked.append(WorkloadSubmitted(replace(job("w").workload, submitted_at=1)))
        problems = sorted(map(str, await runtime.ask_all(asked)))
        assert problems == [
            "refused: h1: cordon does nothing to a cordoned host: nothing starts there anyway",
            "refused: the id 'w' is taken; submit it once more under another",
        ]
        by = runtime.state.hosts[H1].by
        assert by is not None and by.actor == "ops"


def serves(runtime: Runtime) -> bool:
    return runtime.state.hosts[H1].state is HostState.SERVING


async def test_a_cordon_for_a_while_ends_by_itself_whoever_leads_then(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(CordonRequested(H1, OPS, runtime.clock.now() + 300))
        assert runtime.state.hosts[H1].state is HostState.CORDONED
    async with rig.leading() as runtime:
        await until(lambda: on_disk(runtime) and serves(runtime), "the cordon to end")
        (over,) = [event.value for event in runtime.store.tail(0) if event.kind == "UndrainRequested"]
        assert over.by.actor == "timer"


async def test_a_submission_counts_once_and_another_under_its_id_is_refused(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        first = job("w")
        await runtime.ask(first)
        await runtime.ask(first)
        with pytest.raises(OpsConsoleError, match="the id 'w' is taken; submit it once more under another"):
            await runtime.ask(WorkloadSubmitted(replace(first.workload, submitted_at=1)))
        assert len(runtime.state.workloads) == 1


async def test_a_host_that_answers_is_not_dead_whatever_anybody_says(tmp_path: Path) -> None:
    """Its runs would be started a second time beside themselves. Nor is one that answered a moment ago."""
    rig = Rig(tmp_path, names=("h1",), policy=replace(POLICY, lost_after_ms=1000))

    async def refused(runtime: Runtime, what: Any, why: str) -> None:
        with pytest.raises(OpsConsoleError, match=why):
            await runtime.ask(HostDeclared(H1, what, OPS))

    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        await refused(runtime, "dead", "it answers, so it is not dead")
        await refused(runtime, "empty", "it has runs")
        rig.pool.down.add("h1")
        await until(lambda: runtime.state.hosts[H1].reach.value == "unreachable", "silence")
        await refused(runtime, "dead", "it answered less than lost_after ago")
        await until(lambda: runtime.state.hosts[H1].reach.value == "lost", "longer silence")
        await runtime.ask(HostDeclared(H1, "dead", OPS))
        assert record(runtime, "w").run is None


async def test_a_host_that_reports_processes_of_others_is_not_empty(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    rig.hosts["h1"].foreign[2] = 1
    async with rig.leading() as runtime:
        await runtime.ask(DrainRequested(DrainId("d"), H1, OPS))
        with pytest.raises(OpsConsoleError, match="it reports processes of others"):
            await runtime.ask(HostDeclared(H1, "empty", OPS))
        rig.hosts["h1"].mute = True
        await until(lambda: runtime.state.hosts[H1].reach.value == "stale", "it to say nothing more")
        await runtime.ask(HostDeclared(H1, "empty", OPS))
        assert runtime.state.hosts[H1].state is HostState.DRAINED


async def test_a_request_that_breaks_the_engine_is_not_met_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    asker = Rig(tmp_path).runtime()
    with contextlib.suppress(ZeroDivisionError):
        async with rig.leading() as runtime:
            step = runtime.engine.step

            def broken(now: int, observations: Any = ()) -> Any:
                return 1 / 0 if any(isinstance(o, CordonRequested) for o in observations) else step(now, observations)

            monkeypatch.setattr(runtime.engine, "step", broken)
            with pytest.raises(OpsConsoleError, match="the engine failed: ZeroDivisionError"):
                await asker.ask(CordonRequested(H1, OPS))
    async with rig.leading() as again:
        assert not again.store.open_requests()


async def test_many_are_asked_for_at_once_and_those_that_are_refused_do_not_keep_the_others_back(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask_all([job(f"w{n}", gpus=4) for n in range(300)])
        await until(lambda: started(runtime, "w0"), "the first to run")
        problems = await runtime.ask_all([HoldRequested(WorkloadId(f"w{n}"), OPS) for n in range(300)])
        assert [str(problem) for problem in problems] == ["refused: w0: it is running, not waiting"]
        held = [w for w in runtime.state.workloads.values() if w.phase is WorkloadPhase.HELD]
        assert len(held) == 299
        at = {event.tick for event in runtime.store.tail(0) if event.kind == "HoldRequested"}
        assert len(at) == 1, "one tick took them"


async def test_nobody_leads_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(OpsConsoleError, match="nobody leads"):
        await Rig(tmp_path).runtime().ask(CordonRequested(H1, OPS))


# -- leading and following -----------------------------------------------------------------------------------------


async def test_two_runtimes_one_leads_and_the_other_shows_the_same(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as leader:
        follower = Rig(tmp_path).runtime()
        following = asyncio.create_task(follower.follow_forever())
        with pytest.raises(OpsConsoleError, match="leads this cluster already"):
            await Rig(tmp_path).runtime().lead("console")
        await follower.ask(job("w", 0.3, gpus=8))
        await until(lambda: ended(follower, "w"), "the follower to see the end")
        await until(lambda: follower.following.seq == leader.following.seq, "the follower to catch up")
        assert follower.state.workloads == leader.state.workloads
        assert follower.state.ledgers == leader.state.ledgers
        assert follower.lease.live and follower.lease.kind == "test"
        following.cancel()


async def test_leading_shows_first_and_does_nothing_when_refused(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        await runtime.ask(job("next", 60))
    later = rig.runtime()
    plans = []

    async def no(plan: live.LeadPlan) -> bool:
        plans.append(plan)
        return False

    before = later.store.last_seq()  # type: ignore[attr-defined]
    with pytest.raises(OpsConsoleError, match="nothing was done"):
        await later.lead("test", no)
    assert plans[0].live_runs >= 1 and all(h.reach.value == "fresh" for h in plans[0].state.hosts.values())
    assert later.store.last_seq() == before and not later.store.lease().live  # type: ignore[attr-defined]
    assert not [op for _, op, _ in rig.pool.sent if op in ("start", "stop")]


async def test_a_beaten_leader_stops_at_once_and_leaves_no_snapshot(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    runtime = rig.runtime()
    task = asyncio.create_task(runtime.lead("test"))
    await until(lambda: all_fresh(runtime), "hosts", task)
    with sqlite3.connect(rig.store_path) as db:
        db.execute("UPDATE lease SET epoch = epoch + 1, holder = 'somebody pid 1'")
    with pytest.raises(LostLease):
        await asyncio.wait_for(task, 5.0)
    assert runtime.leader is None and not runtime.led_until_closed
    with sqlite3.connect(rig.store_path) as db:
        assert db.execute("SELECT count(*) FROM snapshots").fetchone() == (0,)
        assert db.execute("SELECT holder FROM lease").fetchone() == ("somebody pid 1",)


async def test_a_host_that_knows_a_newer_leader_ends_leading(tmp_path: Path) -> None:
    """The fence of the hosts: a late command of an old epoch is refused, and its sender gives up."""
    rig = Rig(tmp_path)
    runtime = rig.runtime()
    task = asyncio.create_task(runtime.lead("test"))
    await until(lambda: all_fresh(runtime), "hosts", task)
    for host in rig.hosts.values():
        host.fence = [runtime.store.id, 99]
    await runtime.ask(job("w"))
    with pytest.raises(LostLease, match="epoch 99 leads here"):
        await asyncio.wait_for(task, 5.0)
    assert not any(host.runs for host in rig.hosts.values())
    with pytest.raises(StoreError, match=r"older copy: .*epoch 99 leads here"):
        await rig.runtime().lead("test")


async def test_a_step_of_the_wall_clock_is_journalled_and_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G2-24: an hour back in the middle of a min runtime."""
    set_by = [0]
    watch = partial(clock.WallWatch, wall_now=lambda: clock.wall_now_ms() + set_by[0])
    monkeypatch.setattr(live, "WallWatch", watch)
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, min_s=1800))
        await until(lambda: started(runtime, "w"), "it")
        before, ends = runtime.state.now, record(runtime, "w").run
        set_by[0] = -3_600_000
        await until(lambda: any(event.kind == "ClockStepped" for event in runtime.events), "the step to be told")
        (told,) = [event for event in runtime.events if event.kind == "ClockStepped"]
        assert abs(told.value.by_ms + 3_600_000) < 1000 and told.told
        assert 0 <= runtime.state.now - before < 60_000 and record(runtime, "w").run == ends
        assert runtime.state.runs[ends].protected(runtime.state.now)  # type: ignore[index]


async def test_a_worker_that_fails_is_not_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "READINGS_S", 0.02)
    rig = Rig(tmp_path)
    runtime = rig.runtime()
    task = asyncio.create_task(runtime.lead("test"))
    await until(lambda: all_fresh(runtime), "hosts", task)
    monkeypatch.setattr(runtime.store, "put_readings", lambda readings: 1 / 0)
    with pytest.raises(LostLease, match=r"a worker failed \(keep readings\): ZeroDivisionError"):
        await asyncio.wait_for(task, 5.0)
    assert "ZeroDivisionError" in runtime.alarms["leader"]


async def test_after_an_absence_hosts_are_asked_before_anything_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G2-26: eight hours away (SIGSTOP, a lid). A start that was seen by nobody must not run into its time-out."""
    away = [0]
    real = clock.boot_now_ms
    monkeypatch.setattr(live, "boot_now_ms", lambda: real() + away[0])
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        hear, runs = rig.pool.hear, rig.hosts["h1"].runs
        # From the start on its words are on the way while we sleep; until then it is fresh, however slow the machine.
        monkeypatch.setattr(rig.pool, "hear", lambda *event: None if runs else hear(*event))
        rig.pool.lose_answers = 1
        await runtime.ask(job("w", 60, min_s=30))
        await until(lambda: bool(runs), "the start on the host")
        runtime.clock._boot_now = lambda: real() + away[0]
        away[0] = 8 * 3_600_000
        await until(lambda: "absence" in runtime.alarms, "the absence to be noticed")
        assert record(runtime, "w").run is not None and runtime.state.runs[record(runtime, "w").run].stop is None  # type: ignore[index]
        monkeypatch.setattr(rig.pool, "hear", hear)
        hear("connected", "h1", rig.hosts["h1"].answer("list", {}) | {"boot_id": rig.hosts["h1"].boot_id})
        await until(lambda: started(runtime, "w"), "its start to be heard")
        await until(lambda: "absence" not in runtime.alarms, "life to go on")
        await asyncio.sleep(0.1)
        assert record(runtime, "w").attempt == 1 and started(runtime, "w")


async def test_a_full_disk_stops_acting_and_is_over_without_a_restart(tmp_path: Path) -> None:
    """G6-15. Runs end meanwhile; nothing is started; all is told when there is room again."""
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 0.3))
        await until(lambda: started(runtime, "w"), "it")
        assert runtime.leader is not None
        store: Any = runtime.leader.journal.store
        store._db.execute(f"PRAGMA max_page_count = {store._db.execute('PRAGMA page_count').fetchone()[0]}")
        many = [runtime.store.ask(job(f"w{n}", 0.05, min_s=0.01)) for n in range(60)]
        await until(lambda: "nothing is done" in runtime.alarms.get("store", ""), "the disk to be full")
        placed = {e.value.workload for e in runtime.store.tail(0) if e.kind == Placed.__name__}
        ran = {run["spec"]["workload"] for host in rig.hosts.values() for run in host.runs.values()}
        assert ran <= placed, "nothing starts that is not in the journal"
        store._db.execute("PRAGMA max_page_count = 100000")
        await until(lambda: ended(runtime, "w", *(f"w{n}" for n in range(60))), "all to be done")
        assert all(runtime.store.outcome(r) == "accepted" for r in many)
        assert "store" not in runtime.alarms
    assert not problems(rig, runtime, ("w",))


async def test_facts_of_one_link_are_told_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 0.2))
        await until(lambda: ended(runtime, "w"), "it")
        rig.pool.down.add("h1")
        await until(lambda: runtime.state.hosts[H1].reach.value == "unreachable", "a cut")
        rig.pool.down.clear()
        await until(lambda: all_fresh(runtime), "its return")
        kinds = [e.kind for e in runtime.store.tail(0)]
        assert kinds.count(MemberStarted.__name__) == 1, "what a host keeps of ended runs is not journalled again"
