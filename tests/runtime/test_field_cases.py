"""Faults that other schedulers had (field_reports.json), in the live loop."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from opsconsole.store.store import Store
from scheduler_core.ids import RunId
from scheduler_core.observations import HostDeclared
from tests.runtime.rig import OPS, SOON_LOST, Rig, ended, job, problems, record, started, until


async def test_an_archive_that_cannot_be_written_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G6-18: only the store itself may stop the leader. The old journal stays where it is, and that is said."""
    real = Store.archive
    monkeypatch.setattr(Store, "archive", lambda store: real(store, keep_ms=-1))
    (tmp_path / "c.archive").write_text("a file in the way")
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 0.3))
        await until(lambda: started(runtime, "w"), "it")
        assert runtime.leader is not None
        await runtime.leader.journal.snapshot()
        assert "old journal stays where it is" in runtime.alarms["archive"]
        await until(lambda: ended(runtime, "w"), "its end")
        (tmp_path / "c.archive").unlink()
        await runtime.leader.journal.snapshot()
        assert "archive" not in runtime.alarms and list((tmp_path / "c.archive").iterdir())


async def test_readings_that_cannot_be_kept_stop_nothing(tmp_path: Path) -> None:
    """G6-18: what followers show of GPUs lies in a table that nothing depends on; it is lost here, and life goes on."""
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        with closing(sqlite3.connect(rig.store_path, timeout=30)) as own:  # the leader writes on its own at any moment
            own.execute("DROP TABLE readings")
        await runtime.ask(job("w", 0.3))
        await until(lambda: ended(runtime, "w"), "its end")
    assert not problems(rig, runtime, ("w",))


async def test_what_was_declared_dead_and_comes_back_is_stopped(tmp_path: Path) -> None:
    """G3-15: cut off, its workload started elsewhere on a person's word, then the cut heals and the old run lives."""
    rig = Rig(tmp_path, policy=SOON_LOST)
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, min_s=0.1, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        (host,) = runtime.state.runs[RunId("w~1")].members
        rig.pool.down.add(host)
        await until(lambda: runtime.state.hosts[host].reach.value == "lost", "the cut")
        await runtime.ask(HostDeclared(host, "dead", OPS))
        await until(lambda: RunId("w~2") in runtime.state.runs and started(runtime, "w"), "its second attempt")
        old = rig.hosts[host]
        assert old.phase(old.runs["w~1"]) == "running"
        rig.pool.down.clear()
        await until(lambda: old.phase(old.runs["w~1"]) == "released", "the old run to be stopped")
        await until(lambda: not runtime.state.hosts[host].buried, "the host to say so")
        assert runtime.state.hosts[host].places and record(runtime, "w").attempt == 2 and started(runtime, "w")


async def test_a_gang_goes_on_through_an_outage_of_our_own(tmp_path: Path) -> None:
    """G3-13: every host is lost for a while and comes back; nothing was stopped, started or given away."""
    rig = Rig(tmp_path, policy=SOON_LOST)
    async with rig.leading() as runtime:
        await runtime.ask(job("gang", 60, gpus=8, min_s=60, resumable=True))
        await until(lambda: started(runtime, "gang"), "it")
        rig.pool.down |= set(rig.names)
        reached = runtime.state.hosts.values
        await until(lambda: all(host.reach.value == "lost" for host in reached()), "all hosts to be lost")
        rig.pool.down.clear()
        await until(lambda: all(host.reach.value == "fresh" for host in reached()), "their return")
        assert record(runtime, "gang").run == "gang~1" and started(runtime, "gang")
        assert not [op for _, op, _ in rig.pool.sent if op == "stop"]
