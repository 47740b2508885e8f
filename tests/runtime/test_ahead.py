"""An older copy of the store is put back under a cluster that went on without it (G6-13: nothing twice)."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from scheduler_core.ids import RunId, WorkloadId
from scheduler_core.observations import CancelRequested, ReleaseRequested, RequeueRequested
from scheduler_core.workload import WorkloadPhase
from tests.runtime.rig import OPS, Rig, all_fresh, job, record, started, until


def copied(rig: Rig) -> Path:
    """As a backup takes it, while nobody writes."""
    copy = rig.path / "copy.db"
    shutil.copy(rig.store_path, copy)
    return copy


async def first_attempt(rig: Rig) -> Path:
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, min_s=0.05, resumable=True))
        await until(lambda: started(runtime, "w"), "the first attempt")
    return copied(rig)


async def put_back_before_the_second_attempt(rig: Rig) -> None:
    """The store that hosts find knows only of the first."""
    copy = await first_attempt(rig)
    async with rig.leading() as runtime:
        await asyncio.sleep(0.1)
        await runtime.ask(RequeueRequested(WorkloadId("w"), OPS))
        await until(lambda: record(runtime, "w").attempt == 2 and started(runtime, "w"), "the second attempt")
    shutil.copy(copy, rig.store_path)


async def test_what_hosts_started_since_is_held_until_somebody_has_looked(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await put_back_before_the_second_attempt(rig)
    for host in rig.hosts.values():
        host.fence[1] = 1  # the copy was made and put back within one epoch
    async with rig.leading() as runtime:
        await until(lambda: record(runtime, "w").phase is WorkloadPhase.HELD, "it to be held")
        assert "has started w~2, which the journal does not know" in record(runtime, "w").reason
        await asyncio.sleep(0.3)
        tokens = [(name, token) for name, host in rig.hosts.items() for token in host.runs]
        assert sorted(token for _, token in tokens) == ["w~1", "w~2"], "nothing was started beside it"
        await runtime.ask(CancelRequested(WorkloadId("w"), OPS))
        assert record(runtime, "w").phase is WorkloadPhase.ENDED


async def test_a_release_is_the_last_word(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await put_back_before_the_second_attempt(rig)
    for host in rig.hosts.values():
        host.fence[1] = 1
        for run in host.runs.values():
            run["ends_ms"] = 0  # all of it has ended meanwhile
    async with rig.leading() as runtime:
        await until(lambda: record(runtime, "w").phase is WorkloadPhase.HELD, "it to be held")
        await runtime.ask(ReleaseRequested(WorkloadId("w"), OPS))
        await until(lambda: record(runtime, "w").attempt >= 2, "it to go on")
        assert record(runtime, "w").phase is not WorkloadPhase.HELD


async def test_ordinary_restarts_hold_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await first_attempt(rig)
    async with rig.leading() as runtime:
        await until(lambda: all_fresh(runtime), "hosts")
        assert record(runtime, "w").run == RunId("w~1") and not runtime.leader.links.ahead.reasons  # type: ignore[union-attr]
