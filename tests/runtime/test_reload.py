"""A changed inventory reaches a leader that is at work (G6-09): runs are not touched, links follow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from opsconsole.errors import OpsConsoleError
from opsconsole.runtime import Runtime
from opsconsole.site import INVENTORY_DIGEST
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import ReloadRequested
from scheduler_core.policy import Policy
from tests.runtime.rig import OPS, POLICY, Rig, all_fresh, ended, job, record, started, until

H3 = HostName("h3")


def run_of(runtime: Runtime, wid: str) -> RunId:
    run = record(runtime, wid).run
    assert run is not None
    return run


async def reload(rig: Rig, runtime: Runtime, names: tuple[str, ...], policy: Policy = POLICY) -> None:
    """As somebody who edits the file and asks for it."""
    rig.names, rig.policy, rig.digest = names, policy, f"{names} {policy}"
    rig.__post_init__()
    await runtime.ask(ReloadRequested(rig.digest, OPS))


async def test_hosts_come_and_go_and_runs_stay(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 1.2))
        await until(lambda: started(runtime, "w"), "it")
        run = run_of(runtime, "w")
        (host,) = runtime.state.runs[run].members
        (other,) = {"h1", "h2"} - {host}
        await reload(rig, runtime, (other, "h3"))
        assert runtime.state.hosts[host].removed and run_of(runtime, "w") == run
        await until(lambda: runtime.state.hosts[H3].reach.value == "fresh", "the new host to answer")
        assert host in rig.pool.live, "where it still runs it is watched"
        await until(lambda: ended(runtime, "w"), "the run to end by itself")
        assert record(runtime, "w").outcome == "succeeded" and len(rig.hosts[host].runs) == 1
        await until(lambda: host not in rig.pool.tasks, "its host to be let go")
        assert host not in runtime.state.hosts and not runtime.alarms
        assert runtime.store.get(INVENTORY_DIGEST) == rig.digest
        kinds = [e.kind for e in runtime.store.tail(0)]
        assert kinds.index("ReloadRequested") > 0 and kinds.count("InventoryLoaded") == 2


async def test_a_host_that_comes_back_while_its_run_goes_on_serves_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        await reload(rig, runtime, ("h3",))
        assert runtime.state.hosts[HostName("h1")].state is HostState.CORDONED
        await reload(rig, runtime, ("h1", "h3"))
        assert runtime.state.hosts[HostName("h1")].state is HostState.SERVING and started(runtime, "w")


async def test_a_knob_counts_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        await reload(rig, runtime, rig.names, Policy(pass_interval_ms=20, lost_after_ms=77_000))
        assert runtime.state.policy.lost_after_ms == 77_000 and all_fresh(runtime)


async def test_another_file_than_the_one_agreed_to_is_refused(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        with pytest.raises(OpsConsoleError, match="not the file that was agreed to"):
            await runtime.ask(ReloadRequested("something else", OPS))
        assert not any(e.kind == "ReloadRequested" for e in runtime.store.tail(0))


async def test_a_host_that_left_while_nobody_led_is_not_forgotten(tmp_path: Path) -> None:
    """Its run is there, the way to it is not: nothing is guessed, and a person is told what to do."""
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        run = run_of(runtime, "w")
    rig.names = ("h3",)
    rig.__post_init__()
    async with rig.leading_anyhow() as runtime:
        await until(lambda: "left" in runtime.alarms, "the alarm")
        assert "h1 left the inventory with runs: put it back" in runtime.alarms["left"]
        assert run_of(runtime, "w") == run
        assert runtime.state.hosts[HostName("h1")].reach.value == "unreachable"
        await asyncio.sleep(0.2)
        assert not rig.hosts["h3"].runs
