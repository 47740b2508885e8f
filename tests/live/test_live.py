"""The whole product on a real cluster: SSH servers, agents, processes, store. What a user does, and what must
never happen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from opsconsole.errors import OpsConsoleError
from opsconsole.store.errors import LostLease
from scheduler_core.decisions import Placed
from scheduler_core.fleet import HostState
from scheduler_core.ids import DrainId, HostName, WorkloadId
from scheduler_core.observations import By, CancelRequested, DrainRequested, MemberReleased, UndrainRequested
from scheduler_core.units import HOUR
from scheduler_core.workload import WorkloadPhase
from tests.live.clusters import STUBBORN, Live, job, leading, live_cluster, until

OPS = By("ops", "test")


def never_twice(live: Live) -> None:
    """Every attempt was placed after all members of the one before had given their GPUs back."""
    held: dict[str, int] = {}
    for event in live.events():
        if event.role == "command":
            continue
        value = event.value
        if isinstance(value, Placed):
            assert not any(n for run, n in held.items() if run.rpartition("~")[0] == value.workload), value
            held[value.run] = len(value.members)
        elif isinstance(value, MemberReleased) and value.run in held:
            held[value.run] -= 1


async def test_submit_run_preempt_requeue_drain_undrain_cancel() -> None:
    async with live_cluster(2) as live, leading(live) as runtime:
        state = runtime.state
        await runtime.ask(job("squat", "vision", 16, min_s=6, resumable=True))
        await until(lambda: _started(runtime, "squat"), "squat to start")
        began = runtime.state.runs[runtime.state.workloads[WorkloadId("squat")].run].started_at  # type: ignore[index]
        await runtime.ask(
            job("claim", "olmo/eval", 8, min_s=1, argv=("sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 600"))
        )
        await until(lambda: _started(runtime, "claim"), "the claimant to start")
        squat = state.workloads[WorkloadId("squat")]
        (attempt,) = squat.attempts
        assert began is not None and attempt.outcome == "preempted" and attempt.ended_at - began >= 6000
        assert attempt.stop is not None and attempt.stop.for_workload == "claim"
        host = next(iter(state.runs[state.workloads[WorkloadId("claim")].run].members))  # type: ignore[index]
        await runtime.ask(DrainRequested(DrainId("d1"), host, OPS))
        await until(lambda: state.hosts[host].state is HostState.DRAINED, "the host to be drained")
        await runtime.ask(UndrainRequested(host, OPS))
        await until(lambda: _started(runtime, "squat"), "squat to go on")
        await runtime.ask(CancelRequested(WorkloadId("squat"), OPS))
        await until(lambda: squat.phase is WorkloadPhase.ENDED, "squat to be cancelled")
        never_twice(live)
        assert not runtime.alarms


def _started(runtime: Any, wid: str) -> bool:
    record = runtime.state.workloads.get(WorkloadId(wid))
    return record is not None and record.run is not None and runtime.state.runs[record.run].started_at is not None


async def test_a_process_that_ignores_term_is_gone_before_its_gpus_are_free() -> None:
    async with live_cluster(2) as live, leading(live) as runtime:
        program = f"{STUBBORN}  # {live.cluster.root}"
        lives = ["pgrep", "-f", re.escape(program)]
        await runtime.ask(job("stubborn", argv=("python3", "-c", program)))
        await until(lambda: _started(runtime, "stubborn"), "it to start")
        await until(lambda: subprocess.run(lives, capture_output=True).returncode == 0, "it to ignore SIGTERM")
        await runtime.ask(CancelRequested(WorkloadId("stubborn"), OPS))
        record = runtime.state.workloads[WorkloadId("stubborn")]
        await until(lambda: record.phase is WorkloadPhase.ENDED, "it to be gone")
        (attempt,) = record.attempts
        assert attempt.signal == "SIGKILL" and attempt.outcome == "cancelled"
        assert subprocess.run(lives, capture_output=True).returncode == 1


async def test_the_command_line_does_it_all_against_a_headless_leader() -> None:
    async with live_cluster(2) as live:
        assert "is no store" in await asyncio.to_thread(live.run, "queue", status=1)
        leader = live.serve()
        try:
            await asyncio.to_thread(_by_command_line, live)
        finally:
            leader.terminate()
            await asyncio.to_thread(leader.wait, 20)
        assert "nobody leads" in await asyncio.to_thread(live.submit, "--gpus", "1", "--", "true", status=1)


def _by_command_line(live: Live) -> None:
    live.until_all_answer()
    said = live.submit("--budget", "vison", "--gpus", "9", "--", "true", status=2)
    assert "did you mean 'vision'" in said
    words = ("--gpus", "2", "--name", "hello", "--wait", "--", "sh", "-c", "echo from $NODE_RANK of $NNODES")
    ended = live.submit(*words)
    wid = ended.split()[0]
    assert "succeeded" in ended and live.run("logs", wid) == "from 0 of 1\n"
    assert "no live workload is called 'hello'; say which one: " + wid in live.run("logs", "hello", status=2)
    assert "It has ended: succeeded." in live.run("explain", wid)
    assert live.json("drain", "gpu01", "--reason", "fan", "--dry-run")["targets"] == ["gpu01"]
    assert "drained" in live.run("drain", "gpu01", "--reason", "fan", "--yes", "--wait")
    assert "drain it first" not in live.run("undrain", "gpu01", "--yes")
    assert "not confirmed" in live.run("cordon", "gpu01", "--reason", "x", status=2)
    assert live.run("snapshot").startswith("# Written by")
    kinds = {row["kind"] for row in map(json.loads, live.run("events", "--json").splitlines())}
    assert {"WorkloadSubmitted", "Placed", "DrainRequested", "UndrainRequested"} <= kinds


async def test_runs_outlive_the_leader_and_the_next_one_goes_on() -> None:
    """kill -9 of the leader, then another: nothing lost, nothing twice, protection intact."""
    async with live_cluster(2) as live:
        first = live.serve()
        await asyncio.to_thread(live.until, lambda: len(live.json("hosts")) == 2, "hosts")
        words = ("--gpus", "8", "--min-runtime", "1m", "--resumable", "--", "sleep", "60")
        wid = await asyncio.to_thread(live.submit, *words)
        await asyncio.to_thread(live.until, lambda: [r for r in live.json("runs") if r["ran_s"] is not None], "the run")
        first.send_signal(signal.SIGKILL)
        await asyncio.to_thread(first.wait)
        begun = time.monotonic()
        second = live.serve("--standby")
        try:
            await asyncio.to_thread(
                live.until, lambda: live.run("cordon", "gpu02", "--reason", "x", "--yes"), "the second leader", 15.0
            )
            assert time.monotonic() - begun < 12, "another may lead within 10 s of a death"
            (run,) = await asyncio.to_thread(live.json, "runs")
            assert run["workload"] == wid and run["run"].endswith("~1") and run["protected"]
            never_twice(live)
        finally:
            second.terminate()
            await asyncio.to_thread(second.wait, 20)


async def test_a_frozen_leader_cannot_act_when_it_wakes() -> None:
    async with live_cluster(1) as live:
        frozen = live.serve()
        try:
            await asyncio.to_thread(live.until_all_answer)
            await asyncio.to_thread(_freeze, frozen, live.cluster.root / "console" / "main.db")
            await asyncio.sleep(6.5)
            async with leading(live) as runtime:
                frozen.send_signal(signal.SIGCONT)
                assert await asyncio.to_thread(frozen.wait, 20) == 1
                await runtime.ask(job("after", gpus=1))
                await until(lambda: _started(runtime, "after"), "the new leader to act")
        finally:
            frozen.kill()


def _freeze(leader: subprocess.Popen[str], store: Path) -> None:
    """Not inside a write: it would hold the store as long as it is frozen, and nobody could take over."""
    while True:
        leader.send_signal(signal.SIGSTOP)
        db = sqlite3.connect(store, timeout=0, isolation_level=None)
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(db):
            db.execute("BEGIN IMMEDIATE")
            return
        leader.send_signal(signal.SIGCONT)


async def test_a_standby_waits_for_a_store_that_a_frozen_writer_holds() -> None:
    async with live_cluster(1) as live:
        first, log = live.serve(), live.inventory.with_name("serve.log")
        await asyncio.to_thread(live.until_all_answer)
        first.kill()
        first.wait()
        holds = sqlite3.connect(live.cluster.root / "console" / "main.db", isolation_level=None)
        holds.execute("BEGIN IMMEDIATE")
        second = live.serve("--standby")
        try:
            await asyncio.to_thread(live.until, lambda: "cannot take over yet" in log.read_text(), "it to wait")
            holds.execute("ROLLBACK")
            await asyncio.to_thread(live.until, lambda: "epoch 2" in log.read_text(), "it to lead")
        finally:
            holds.close()
            second.kill()


async def test_one_leads_and_the_other_follows_and_shows_the_same() -> None:
    async with live_cluster(1) as live, leading(live) as runtime:
        other = live.place.leader()
        with pytest.raises(OpsConsoleError, match="leads this cluster already"):
            await other.lead("test")
        await runtime.ask(job("w", gpus=2))
        await until(lambda: _started(runtime, "w"), "it to run")
        following = asyncio.create_task(other.follow_forever())
        await until(lambda: _started(other, "w"), "the follower to see it")
        assert other.state.runs.keys() == runtime.state.runs.keys()
        await other.ask(CancelRequested(WorkloadId("w"), OPS))
        assert runtime.state.workloads[WorkloadId("w")].held_by == OPS
        following.cancel()


async def test_a_broken_connection_leaves_runs_alone_and_comes_back() -> None:
    async with live_cluster(1) as live, leading(live) as runtime:
        await runtime.ask(job("w", gpus=2, min_s=60))
        await until(lambda: _started(runtime, "w"), "it to run")
        agents = subprocess.run(["pgrep", "-f", "hostkit-.*agent"], capture_output=True, text=True).stdout.split()
        root = str(live.cluster.root)
        for pid in agents:
            with contextlib.suppress(OSError):  # those of other tests come and go
                if root in Path(f"/proc/{pid}/environ").read_text():
                    os.kill(int(pid), signal.SIGKILL)
        host = runtime.state.hosts[HostName("gpu01")]
        await until(lambda: host.reach.value != "fresh", "the loss to be noticed")
        await until(lambda: host.reach.value == "fresh", "the host to come back")
        assert _started(runtime, "w") and len(runtime.state.workloads[WorkloadId("w")].attempts) == 0
        never_twice(live)


async def test_a_lost_lease_ends_acting() -> None:
    async with live_cluster(1) as live:
        runtime = live.place.leader()
        task = asyncio.create_task(runtime.lead("test"))
        await until(lambda: bool(runtime.state.hosts), "leading", task)
        store = live.place.open_store()
        store._db.execute("UPDATE lease SET epoch = epoch + 1, holder = 'thief'")
        with pytest.raises(LostLease):
            await asyncio.wait_for(task, 10)
        assert runtime.leader is None and runtime.pool is None


async def test_usage_is_charged_to_the_second() -> None:
    async with live_cluster(1) as live, leading(live) as runtime:
        await runtime.ask(job("w", gpus=4, argv=("sleep", "3")))
        record = runtime.state.workloads[WorkloadId("w")]
        await until(lambda: record.phase is WorkloadPhase.ENDED, "it to end")
        (attempt,) = record.attempts
        used = runtime.state.ledgers.used(record.workload.budget, runtime.state.now, HOUR)
        assert used == 4 * 1000 * (attempt.ended_at - attempt.placed_at)
        assert 3000 <= attempt.ended_at - attempt.placed_at < 8000
