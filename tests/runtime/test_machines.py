"""Names and machines: none is used under two names, and no run is taken for dead because its name points elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.runtime import Runtime
from scheduler_core.fleet import Reach
from scheduler_core.ids import HostName
from scheduler_core.observations import HostDeclared
from tests.runtime.rig import OPS, SOON_LOST, Rig, all_fresh, ended, job, problems, record, spans, started, until


def why(runtime: Runtime, host: str) -> str:
    found = runtime.state.hosts[HostName(host)]
    return "" if found.reach is Reach.FRESH else found.unreachable_why


def at(rig: Rig, **machines: str) -> None:
    """Names lead to these machines from the next leader on, as when somebody has edited addresses."""
    made = {host.name: host for host in rig.hosts.values()}
    rig.hosts = {name: made[machine] for name, machine in machines.items()}
    rig.names = tuple(machines)


async def test_a_machine_is_used_under_one_name_only(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1", "h2"))
    at(rig, h1="h1", h2="h1")
    async with rig.leading_anyhow() as runtime:
        await until(
            lambda: any("the same machine as" in why(runtime, h) for h in ("h1", "h2")), "the second to be told"
        )
        for wid in ("a", "b"):
            await runtime.ask(job(wid, 0.3))
        await until(lambda: ended(runtime, "a", "b"), "both, one after the other")
    kept = [name for name in ("h1", "h2") if not why(runtime, name)]
    async with rig.leading_anyhow() as runtime:
        await until(lambda: "the same machine as" in why(runtime, *{"h1", "h2"} - {*kept}), "the same one to be told")
        assert not why(runtime, kept[0]), "the next leader keeps to the first name"
    assert len({began for ran in spans(rig).values() for began, *_ in ran}) == 2
    assert not problems(rig, runtime, ("a", "b"))


async def test_a_host_that_was_renamed_is_used_once_its_runs_of_the_old_name_have_ended(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("old", 3))
        await until(lambda: started(runtime, "old"), "it")
    at(rig, h7="h1")
    async with rig.leading_anyhow() as runtime:
        await runtime.ask(job("new", 0.2))
        await until(lambda: "the same machine as h1" in why(runtime, "h7"), "the new name to be refused")
        assert record(runtime, "new").run is None
    at(rig, h1="h1", h7="h1")
    async with rig.leading_anyhow() as runtime:
        await until(lambda: ended(runtime, "old", "new"), "both to end under the old name")
    at(rig, h7="h1")
    async with rig.leading() as runtime:
        assert [*runtime.state.hosts] == ["h7"]
        await runtime.ask(job("last", 0.2))
        await until(lambda: ended(runtime, "last"), "the new name to be used")
    assert not problems(rig, runtime, ("old", "new", "last"))


async def test_swapped_addresses_start_nothing_twice_and_end_nothing(tmp_path: Path) -> None:
    """Each name answers with a new boot id: no proof that its runs are dead, since it is the other machine's."""
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        for wid in ("a", "b"):
            await runtime.ask(job(wid, 3, min_s=3))
        await until(lambda: started(runtime, "a") and started(runtime, "b"), "both")
    at(rig, h1="h2", h2="h1")
    async with rig.leading_anyhow() as runtime:
        await until(lambda: "machine" in why(runtime, "h1") and "machine" in why(runtime, "h2"), "both to be refused")
        assert [record(runtime, wid).attempt for wid in "ab"] == [1, 1]
        assert not [op for _, op, _ in rig.pool.sent if op in ("start", "stop")]
    at(rig, h1="h1", h2="h2")
    async with rig.leading() as runtime:
        await until(lambda: ended(runtime, "a", "b"), "both to end")
    assert not problems(rig, runtime, ("a", "b"))


async def test_another_machine_takes_a_name_over_when_the_old_one_is_declared_dead(tmp_path: Path) -> None:
    rig = Rig(tmp_path, names=("h1", "spare"), policy=SOON_LOST)
    at(rig, h1="h1")
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
    spare = Rig(tmp_path, names=("spare",)).hosts["spare"]
    rig.hosts["h1"] = spare
    async with rig.leading_anyhow() as runtime:
        await until(lambda: "another machine than before" in why(runtime, "h1"), "the spare to be told apart")
        await until(lambda: runtime.state.hosts[HostName("h1")].reach is Reach.LOST, "it to be lost")
        assert record(runtime, "w").attempt == 1
        await runtime.ask(HostDeclared(HostName("h1"), "dead", OPS))
        await until(lambda: started(runtime, "w") and record(runtime, "w").attempt == 2, "it to start anew")
        assert "w~2" in spare.runs


async def test_a_machine_is_not_powered_off_because_its_name_leads_elsewhere(tmp_path: Path) -> None:
    rig = Rig(tmp_path, policy=SOON_LOST, fence=("touch", str(tmp_path / "off")))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, gpus=8))
        await until(lambda: started(runtime, "w"), "it")
    at(rig, h1="h2", h2="h1")
    async with rig.leading_anyhow() as runtime:
        told = "its name leads to another machine than before"
        await until(lambda: told in runtime.alarms.get("fence h1", ""), "it to be left alone")
    assert not (tmp_path / "off").exists()


@pytest.mark.parametrize("reinstalled", [False, True])
async def test_a_reboot_of_the_same_machine_proves_that_its_runs_are_dead(tmp_path: Path, reinstalled: bool) -> None:
    """Without a disk of its own it may have another machine id then; its GPUs are the same."""
    rig = Rig(tmp_path, names=("h1",))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        rig.pool.down.add("h1")
        await until(lambda: not all_fresh(runtime), "silence")
        rig.hosts["h1"].reboot()
        if reinstalled:
            rig.hosts["h1"].machine_id, rig.hosts["h1"].runs = "machine-new", {}
        rig.pool.down.clear()
        await until(lambda: started(runtime, "w") and record(runtime, "w").attempt == 2, "it to start anew")


async def test_cloned_images_are_two_machines(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for host in rig.hosts.values():
        host.machine_id, host.boot_id = "cloned", "in a container"
    async with rig.leading() as runtime:
        for wid in ("a", "b"):
            await runtime.ask(job(wid, 60))
        await until(lambda: started(runtime, "a") and started(runtime, "b"), "both")
