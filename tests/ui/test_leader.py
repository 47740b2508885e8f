"""The console beside a real leader: what it shows and what it lets through when that leader dies."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from textual.pilot import Pilot

from opsconsole.cli.source import LiveSource
from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.screens.plan import PlanScreen
from tests.live.clusters import Live, live_cluster
from tests.ui.driving import WRITE, commit, filled_plan, plan_notes, seen, status
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("fast")


@dataclass
class Beside:
    """A console as `opsconsole` opens it, beside the leader of a cluster."""

    live: Live
    leader: subprocess.Popen[str]
    app: OpsConsoleApp
    pilot: Pilot[int]

    async def kill_leader(self) -> None:
        self.leader.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self.leader.wait)


@asynccontextmanager
async def following(hosts: int) -> AsyncIterator[Beside]:
    """Once it shows that leader and all hosts. Whatever happens, the leader ends."""
    async with live_cluster(hosts) as live:
        leader = live.serve()
        app = OpsConsoleApp(LiveSource(live.place, live.place.leader(), hand_over=False), WRITE)
        try:
            async with app.run_test(size=(120, 40)) as pilot:
                shown = f"{hosts}●"
                await until(lambda: shown in seen(app) and "leader: serve" in seen(app), "leader and hosts")
                yield Beside(live, leader, app, pilot)
        finally:
            leader.kill()


async def test_a_leader_that_is_killed_while_a_plan_is_open() -> None:
    """kill -9. Nothing is done, the dialog and the header say why, and it stays said."""
    async with following(2) as beside:
        app, pilot = beside.app, beside.pilot
        await filled_plan(app, pilot, "2", "gpu02", "C")
        await beside.kill_leader()
        await until(lambda: "NO LEADER: nothing is scheduled" in seen(app), "the death to be noticed")
        await commit(pilot)
        assert isinstance(app.screen, PlanScreen) and "nobody leads this cluster" in plan_notes(app)
        assert beside.live.json("hosts")[1]["state"] == "serving"


async def test_a_leader_that_is_killed_just_before_a_plan_is_carried_out() -> None:
    """Its lease still runs, so that nobody can know: what was asked is withdrawn unanswered, and that is said."""
    async with following(1) as beside:
        app, pilot = beside.app, beside.pilot
        await filled_plan(app, pilot, "2", "gpu01", "C")
        await beside.kill_leader()
        await commit(pilot)
        await until(lambda: "✖ cordon gpu01: " in status(app), "the refusal")
        assert [h["state"] for h in beside.live.json("hosts")] == ["serving"]
