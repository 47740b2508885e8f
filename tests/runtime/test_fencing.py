"""Rule 27: a lost host with runs is powered off by the inventory's command, a real process; only then are they dead."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opsconsole import fencing
from opsconsole.fencing import power_off
from opsconsole.runtime import Runtime
from scheduler_core.ids import HostName
from tests.runtime.rig import POLICY, Rig, acts, all_fresh, job, record, started, until

QUICK = replace(POLICY, lost_after_ms=150)


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "FIRST_PAUSE_S", 0.2)


def script(tmp_path: Path, body: str) -> tuple[str, ...]:
    path = tmp_path / "fence"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return (str(path), "--off")


def calls(tmp_path: Path) -> list[str]:
    log = tmp_path / "calls"
    return log.read_text().splitlines() if log.exists() else []


async def lose(rig: Rig, runtime: Runtime, *hosts: str) -> None:
    """Cut, until they are lost. The command may have been faster."""
    rig.pool.down.update(hosts)
    await until(lambda: all(runtime.state.hosts[HostName(h)].reach.value == "lost" for h in hosts), "them to be lost")


async def test_what_the_command_confirms_is_dead_and_starts_elsewhere(tmp_path: Path) -> None:
    log = f'echo "$1 $OPSCONSOLE_HOST $OPSCONSOLE_ADDRESS" >> {tmp_path}/calls'
    rig = Rig(tmp_path, policy=QUICK, fence=script(tmp_path, log))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, min_s=30, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        (host,) = runtime.state.runs[record(runtime, "w").run].members  # type: ignore[index]
        await lose(rig, runtime, host)
        await until(lambda: record(runtime, "w").attempt == 2 and started(runtime, "w"), "the second attempt")
        assert calls(tmp_path) == [f"--off {host} addr-{host}"]
        assert not [a for a in runtime.alarms if a.startswith("fence")]
        assert any(e.kind == "HostFenced" for e in runtime.events)


async def test_a_failure_is_no_confirmation_and_is_tried_again(tmp_path: Path) -> None:
    body = f"echo x >> {tmp_path}/calls; [ -e {tmp_path}/bmc-is-back ] || {{ echo BMC timeout; exit 3; }}"
    rig = Rig(tmp_path, policy=QUICK, fence=script(tmp_path, body))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        (host,) = runtime.state.runs[record(runtime, "w").run].members  # type: ignore[index]
        await lose(rig, runtime, host)
        about = f"fence {host}"
        await until(lambda: len(calls(tmp_path)) >= 2, "a second try")
        assert f"{host} is lost and was not powered off: exit status 3: BMC timeout" in runtime.alarms[about]
        assert record(runtime, "w").attempt == 1
        (tmp_path / "bmc-is-back").touch()
        await until(lambda: record(runtime, "w").attempt == 2, "the confirmation")
        await until(lambda: about not in runtime.alarms, "the alarm to end")


async def test_a_host_that_comes_back_is_left_alone(tmp_path: Path) -> None:
    rig = Rig(tmp_path, policy=QUICK, fence=script(tmp_path, f"echo x >> {tmp_path}/calls; exit 1"))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60))
        await until(lambda: started(runtime, "w"), "it")
        run = record(runtime, "w").run
        (host,) = runtime.state.runs[run].members  # type: ignore[index]
        await lose(rig, runtime, host)
        await until(lambda: f"fence {host}" in runtime.alarms, "a failed try")
        rig.pool.down.clear()
        await until(lambda: all_fresh(runtime) and not runtime.alarms, "it to be back")
        tried = len(calls(tmp_path))
        await asyncio.sleep(0.5)
        assert len(calls(tmp_path)) == tried and record(runtime, "w").run == run


async def test_many_lost_at_once_are_taken_for_a_broken_network(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ("h1", "h2", "h3"), policy=QUICK, fence=script(tmp_path, f"echo x >> {tmp_path}/calls"))
    async with rig.leading() as runtime:
        await runtime.ask(job("gang", 60, gpus=12))
        await until(lambda: started(runtime, "gang"), "it")
        await lose(rig, runtime, *rig.names)
        await until(lambda: "more than the breaker's 2" in runtime.alarms.get("fence h3", ""), "the brake")
        assert not calls(tmp_path)


async def test_an_outage_that_does_not_begin_everywhere_at_once_powers_nobody_off(tmp_path: Path) -> None:
    """The first two are lost while the third is silent for a moment only."""
    slow = replace(POLICY, lost_after_ms=2000)
    rig = Rig(tmp_path, ("h1", "h2", "h3"), policy=slow, fence=script(tmp_path, f"echo x >> {tmp_path}/calls"))
    async with rig.leading() as runtime:
        await runtime.ask(job("gang", 60, gpus=12))
        await until(lambda: started(runtime, "gang"), "it")
        for host in rig.names:
            rig.pool.down.add(host)
            await until(lambda host=host: runtime.state.hosts[HostName(host)].reach.value == "unreachable", host)  # type: ignore[misc]
            await asyncio.sleep(0.3)
        await until(lambda: runtime.state.hosts[HostName("h3")].reach.value == "lost", "the last to be lost")
        await until(lambda: "more than the breaker's 2" in runtime.alarms.get("fence h3", ""), "the brake")
        assert not calls(tmp_path)


async def test_a_new_leader_shows_whom_it_would_power_off_before_it_does(tmp_path: Path) -> None:
    rig = Rig(tmp_path, policy=QUICK)
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        (host,) = runtime.state.runs[record(runtime, "w").run].members  # type: ignore[index]
        await lose(rig, runtime, host)
    rig.fence = script(tmp_path, f"echo x >> {tmp_path}/calls")
    later = rig.runtime()
    shown: list[Any] = []
    agreed = asyncio.Event()

    async def confirm(plan: Any) -> bool:
        shown.append(plan)
        await agreed.wait()
        return True

    leading = asyncio.create_task(later.lead("test", confirm, reconcile_s=0.3))
    await until(lambda: len(rig.pools) == 2, "its connections", leading)
    rig.pool.down.add(host)
    await until(lambda: bool(shown), "the plan", leading)
    assert shown[0].fenced == (host,) and not calls(tmp_path)
    agreed.set()
    await until(lambda: acts(later) and record(later, "w").attempt == 2, "the power-off", leading)
    assert len(calls(tmp_path)) == 1
    leading.cancel()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit 0", ""),
        ("echo; echo no route to BMC; exit 2", "exit status 2: no route to BMC"),
        ("kill -TERM $$", "killed by signal 15"),
        ("sleep 60", "fence did not end in 0 s"),
        ("sleep 60 & exit 0", ""),
        ("head -c 3000000 /dev/zero | tr '\\0' x; echo END; exit 1", "END"),
        (r"printf '\033[31mred\007\n'; exit 1", "exit status 1:  [31mred"),
    ],
)
async def test_only_exit_status_0_confirms(tmp_path: Path, body: str, said: str) -> None:
    why = await power_off(script(tmp_path, body), {}, 0.3 if body == "sleep 60" else 30.0)
    assert why == "" if not said else said in why and len(why) < 700


async def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert await power_off(["/nowhere/fence"], {}, 1.0) == "/nowhere/fence cannot be run: No such file or directory"
