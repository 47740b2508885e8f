"""The pool with the real hostkit over a real sshd: what the stand-in promises is true."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from opsconsole.hostkit.zipapp_build import build_zipapp
from opsconsole.transport.bootstrap import Kit
from opsconsole.transport.check import StepName, Verdict, check_hosts
from opsconsole.transport.errors import Unreach
from opsconsole.transport.link import Connected, Line
from opsconsole.transport.pool import PoolOptions
from tests.sshd import Sshd, SshdFactory, marked
from tests.transport.driving import Watched, address_of, watching

pytestmark = pytest.mark.sshd
KIT = Kit(*build_zipapp())
GPUS = {
    "driver": "580.1 (fake)",
    "gpus": [{"pci": f"0000:{n}0:00.0", "uuid": f"GPU-{n}", "name": "H100"} for n in (1, 2)],
}


@pytest.fixture
def gpu_host(sshd_factory: SshdFactory, tmp_path: Path) -> Sshd:
    (tmp_path / "gpus.json").write_text(json.dumps(GPUS))
    env = {"OPSCONSOLE_FAKE_NVML": str(tmp_path / "gpus.json")}
    return sshd_factory("gpu001", env=env, max_sessions=1, shell="bash")


def spec(*argv: str) -> dict[str, Any]:
    return {"argv": list(argv), "gpus": ["GPU-1"], "env": {}, "checkpoint": None, "owner": "me", "stop_grace_s": 1}


async def start(watched: Watched, token: str, *argv: str) -> dict[str, Any]:
    answer = await watched.pool.request("gpu001", "start", 20.0, store="s1", epoch=1, token=token, spec=spec(*argv))
    assert answer["ok"], answer
    return dict(answer["run"])


async def run_of(watched: Watched, token: str) -> dict[str, Any]:
    answer = await watched.pool.request("gpu001", "list", 10.0)
    return next(run for run in answer["runs"] if run["token"] == token)


def phases(watched: Watched) -> list[str]:
    """Of all run events so far."""
    return [line.fields["run"]["phase"] for line in watched.of(Line) if line.fields.get("event") == "run"]


async def test_hello_probe_and_a_run_that_outlives_the_connection(gpu_host: Sshd) -> None:
    async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT) as watched:
        await watched.until_live()
        assert {"hostkit", "boot_id", "time_unix_s", "runs"} <= set(watched.of(Connected)[0].hello)
        await watched.until(lambda: any(line.fields.get("event") == "probe" for line in watched.of(Line)))
        probe = next(line.fields["probe"] for line in watched.of(Line) if line.fields.get("event") == "probe")
        assert len(json.loads(probe)["gpus"]) == 2
        await start(watched, "t1", "sh", "-c", "echo it says ü; sleep 60")
        gpu_host.kill()
        await watched.until_lost("gpu001", Unreach.REFUSED)
        gpu_host.start()
        await watched.until_live()
        assert (await run_of(watched, "t1"))["phase"] == "running"
        log = await watched.pool.request("gpu001", "log", 5.0, token="t1", offset=0, max_bytes=1000)
        assert base64.b64decode(log["data"]).decode() == "it says ü\n"
        fields = {"reason": "test", "min_ran_s": 0, "checkpoint_grace_s": 1, "stop_grace_s": 1}
        stop = await watched.pool.request("gpu001", "stop", 10.0, store="s1", epoch=1, token="t1", **fields)
        assert stop["ok"], stop
        await watched.until(lambda: "released" in phases(watched))


async def test_the_agent_leaves_with_the_connection(gpu_host: Sshd) -> None:
    async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT) as watched:
        await watched.until_live()
        assert marked(str(gpu_host.root))
    async with asyncio.timeout(10):
        while agents(gpu_host):
            await asyncio.sleep(0.05)


def agents(host: Sshd) -> list[int]:
    """Processes of this host that run the kit and live."""
    found = []
    for pid in marked(str(host.root)):
        try:
            if "hostkit" in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
        except OSError:
            continue
    return found


async def test_two_agents_after_a_half_open_link_do_not_disturb_each_other(gpu_host: Sshd) -> None:
    async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT, interval_s=0.3) as watched:
        await watched.until_live()
        await start(watched, "t1", "sleep", "60")
        gpu_host.pause()
        await watched.until_lost("gpu001", Unreach.TIMED_OUT, 10.0)
        gpu_host.resume()
        await watched.until_live()
        assert (await run_of(watched, "t1"))["phase"] == "running"


async def test_a_host_of_another_store_is_not_live_until_it_is_adopted(gpu_host: Sshd) -> None:
    async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT) as first:
        await first.until_live()
        async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT, store="s2") as other:
            assert "belongs to store s1" in await other.until_lost("gpu001", Unreach.OTHER_STORE)
            answer = await first.pool.request("gpu001", "adopt", 5.0, store="s2", epoch=1)
            assert answer["ok"] and answer["previous_store"] == "s1"
            other.pool.reconnect("gpu001")
            await other.until_live()


async def test_an_older_leader_of_the_same_store_is_told_with_its_first_word(gpu_host: Sshd) -> None:
    async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT) as first:
        await first.until_live()
        answer = await first.pool.request("gpu001", "adopt", 5.0, store="s1", epoch=7)
        assert answer["ok"]
        async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT) as late:
            assert "epoch 1 is over: it has served epoch 7" in await late.until_lost("gpu001", Unreach.FENCED)


async def test_another_store_is_told_in_the_answer(gpu_host: Sshd) -> None:
    async with watching(address_of(gpu_host), known=[gpu_host], kit=KIT) as watched:
        await watched.until_live()
        fields = {"store": "s2", "epoch": 9, "token": "t", "spec": spec("true")}
        answer = await watched.pool.request("gpu001", "start", 5.0, **fields)
        assert (answer["ok"], answer["error"]) == (False, "fenced")


async def test_check_finds_gpus_clock_and_disk(gpu_host: Sshd) -> None:
    options = PoolOptions(
        kit=KIT,
        hello=lambda _: {"store": "s1", "epoch": 1, "interval_s": 0.5},
        ssh_config=(),
        known_hosts=(str(gpu_host.known_hosts),),
    )
    checks = await check_hosts([address_of(gpu_host)], options, expected_gpus={"gpu001": 2})
    steps = {step.name: step for step in checks[0].steps}
    assert checks[0].ok, checks[0]
    assert steps[StepName.GPUS].found == "2 of 2" and "580.1" in steps[StepName.DRIVER].found
    assert steps[StepName.CLOCK].verdict == Verdict.OK and steps[StepName.DISK].found.endswith("GiB free")
    assert os.listdir(gpu_host.state_dir / "kit") == [KIT.name]
