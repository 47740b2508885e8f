"""What a follower shows: time goes on though a quiet leader writes nothing, and the last day is known."""

from __future__ import annotations

import asyncio
from pathlib import Path

from opsconsole.cli.wiring import view_of
from tests.runtime.rig import Rig, job, record, started, until


async def test_ages_go_on_though_nothing_is_journalled(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as leader:
        await leader.ask(job("w", 60, min_s=60))
        await until(lambda: started(leader, "w"), "the run")
        follower = rig.runtime()
        follower.follow()
        run = record(follower, "w").run
        assert run is not None
        begun = follower.state.runs[run].started_at
        first, journalled = view_of(follower), follower.state.now
        await asyncio.sleep(0.3)
        second = view_of(follower)
        assert second.state.now - first.state.now >= 300 and follower.state.now == journalled
        assert second.wall(begun or 0) - first.wall(begun or 0) in range(-50, 51), "an instant stays where it was"
        follower.store.close()


async def test_the_lag_counts_from_the_leaders_last_sign_of_life(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading():
        follower = rig.runtime()
        follower.follow()
        said_ms = follower.lease.age_ms
        assert said_ms is not None
        await asyncio.sleep(0.2)
        assert view_of(follower).lag_s >= 0.2 + said_ms / 1000
        follower.store.close()


async def test_a_follower_knows_what_was_told_before_it_came(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as leader:
        await leader.ask(job("w", 60, min_s=60))
        await until(lambda: started(leader, "w"), "the run")
        follower = rig.runtime()
        follower.look_back()
        await leader.ask(job("v", 60, min_s=60))
        follower.follow()
        seen = [happening.seq for happening in view_of(follower).happenings]
        kinds = [happening.kind for happening in view_of(follower).happenings]
        assert seen == sorted(set(seen)) and kinds.count("WorkloadSubmitted") == 2 and "MemberStarted" in kinds
        follower.store.close()
