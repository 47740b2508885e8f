"""What a follower shows: time goes on though a quiet leader writes nothing, and the last day is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import opsconsole.leader as live
from opsconsole import following
from opsconsole.cli.wiring import view_of
from opsconsole.runtime import Runtime
from scheduler_core.ids import HostName
from tests.runtime.rig import Rig, job, on_disk, record, started, until


@contextmanager
def beside(rig: Rig) -> Iterator[Runtime]:
    """Somebody who does not lead, and has followed once."""
    follower = rig.runtime()
    try:
        follower.follow()
        yield follower
    finally:
        follower.store.close()


async def test_ages_go_on_though_nothing_is_journalled(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as leader:
        await leader.ask(job("w", 60, min_s=60))
        await until(lambda: started(leader, "w"), "the run")
        with beside(rig) as follower:
            run = record(follower, "w").run
            assert run is not None
            begun = follower.state.runs[run].started_at
            first, journalled = view_of(follower), follower.state.now
            await asyncio.sleep(0.3)
            second = view_of(follower)
            assert second.state.now - first.state.now >= 300 and follower.state.now == journalled
            assert second.wall(begun or 0) - first.wall(begun or 0) in range(-50, 51), "an instant stays where it was"


async def test_the_lag_counts_from_the_leaders_last_sign_of_life(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading():
        with beside(rig) as follower:
            said_ms = follower.lease.age_ms
            assert said_ms is not None
            await asyncio.sleep(0.2)
            assert view_of(follower).lag_s >= 0.2 + said_ms / 1000


async def test_what_screens_worked_out_holds_until_something_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of leaders and followers. Of a state that the journal does not have yet nothing is kept."""
    monkeypatch.setattr(following, "KEPT_MS", 1 << 60)
    rig = Rig(tmp_path)
    async with rig.leading() as leader:
        with beside(rig) as follower:

            def worked_out(said: int) -> list[int]:
                return [one.kept().setdefault("it", said) for one in (leader, follower)]

            await until(lambda: on_disk(leader), "the journal")
            assert (worked_out(1), worked_out(2)) == ([1, 1], [1, 1])
            await leader.ask(job("w", 60, min_s=60))
            follower.follow()
            await until(lambda: on_disk(leader), "the journal")
            assert worked_out(3) == [3, 3]
            assert leader.leader is not None
            leader.leader.journal.ahead = True
            assert (worked_out(4), worked_out(5)) == ([4, 3], [5, 3])
            leader.leader.journal.ahead = False


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


XID = {"monotonic_s": 100.0, "text": "Xid: 79", "xid": {"code": 79, "pci": "0000:1b:00"}}


async def test_what_a_kernel_told_reaches_followers_and_the_next_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents tell it once in a boot: whoever was not there would show a sick host as well."""
    monkeypatch.setattr(live, "READINGS_S", 0.05)
    rig = Rig(tmp_path)
    async with rig.leading() as leader:
        assert leader.leader is not None
        leader.leader.links.sensing.line("h1", {"event": "kernel", "lines": [XID]})
        with beside(rig) as follower:

            def heard() -> bool:
                follower.read_readings()
                return bool(view_of(follower).facts("h1").kernel)

            await until(heard, "the follower to hear of it")
            assert list(view_of(follower).facts("h1").kernel) == [XID] and not view_of(follower).facts("h2").kernel
    async with rig.leading() as leader:
        assert list(leader.readings["h1"].kernel) == [XID]
        rig.hosts["h1"].reboot()
        rig.pool.down.add("h1")
        await until(lambda: leader.state.hosts[HostName("h1")].reach.value == "unreachable", "silence")
        rig.pool.down.clear()
        await until(lambda: not leader.readings["h1"].kernel, "the new boot to end what the old one told")
