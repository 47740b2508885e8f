"""The console beside a real leader: what it shows and what it lets through when that leader dies."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from opsconsole.cli.source import LiveSource
from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.screens.plan import PlanScreen
from tests.live.clusters import Live, live_cluster
from tests.ui.driving import WRITE, commit, filled_plan, plan_notes, seen, status

pytestmark = pytest.mark.usefixtures("fast")
PATIENCE_S = 40.0


@asynccontextmanager
async def following(live: Live) -> AsyncIterator[tuple[OpsConsoleApp, Pilot[int]]]:
    """The console as `opsconsole` opens it."""
    app = OpsConsoleApp(LiveSource(live.place, live.place.leader(), hand_over=False), WRITE)
    async with app.run_test(size=(120, 40)) as pilot:
        yield app, pilot


async def until(pilot: Pilot[int], true: Callable[[], bool], what: str) -> None:
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not true():
        assert asyncio.get_running_loop().time() < end, f"waited {PATIENCE_S:.0f} s for {what}"
        await pilot.pause(0.2)


async def test_a_leader_that_is_killed_while_a_plan_is_open() -> None:
    """kill -9. Nothing is done, the dialog and the header say why, and it stays said."""
    async with live_cluster(2) as live:
        leader = live.serve()
        try:
            async with following(live) as (app, pilot):
                await until(
                    pilot, lambda: "2●" in seen(app) and "leader: serve" in seen(app), "the leader and its hosts"
                )
                await filled_plan(app, pilot, "2", "gpu02", "C")
                leader.send_signal(signal.SIGKILL)
                await asyncio.to_thread(leader.wait)
                await until(pilot, lambda: "NO LEADER: nothing is scheduled" in seen(app), "the death to be noticed")
                await commit(pilot)
                assert isinstance(app.screen, PlanScreen) and "nobody leads this cluster" in plan_notes(app)
                assert live.json("hosts")[1]["state"] == "serving"
        finally:
            leader.kill()


async def test_a_leader_that_is_killed_just_before_a_plan_is_carried_out() -> None:
    """Its lease still runs, so that nobody can know: what was asked is withdrawn unanswered, and that is said."""
    async with live_cluster(1) as live:
        leader = live.serve()
        try:
            async with following(live) as (app, pilot):
                await until(
                    pilot, lambda: "1●" in seen(app) and "leader: serve" in seen(app), "the leader and its host"
                )
                await filled_plan(app, pilot, "2", "gpu01", "C")
                leader.send_signal(signal.SIGKILL)
                await asyncio.to_thread(leader.wait)
                await commit(pilot)
                await until(pilot, lambda: "✖ cordon gpu01: " in status(app), "the refusal")
                assert [h["state"] for h in live.json("hosts")] == ["serving"]
        finally:
            leader.kill()


async def test_a_follower_reads_the_output_of_a_run_as_it_is_written() -> None:
    """From its host, over a connection of its own; with the page the connection goes."""
    async with live_cluster(1) as live:
        leader = live.serve()
        try:
            async with following(live) as (app, pilot):
                await until(pilot, lambda: "1●" in seen(app) and "leader: serve" in seen(app), "the leader")
                script = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i of it; sleep 0.1; done"
                wid = await asyncio.to_thread(live.submit, "--gpus", "1", "--", "sh", "-c", script)
                source = app.source
                await until(pilot, lambda: any(r.workload == wid for r in source.view().state.runs.values()), "a run")
                app.go("workload", wid)
                await until(pilot, lambda: "line 5 of it" in seen(app) and "(live)" in seen(app), "its output")
                await until(pilot, lambda: "line 15 of it" in seen(app), "more of it")
                app.go("overview")
                assert app.output.idle
        finally:
            leader.kill()
