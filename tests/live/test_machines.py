"""Real hosts under wrong names: a machine that is listed twice, and one that was renamed while it has work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scheduler_core.workload import Outcome
from tests.live.test_reload import edited
from tests.live.trio import Trio
from tests.sshd import Sshd, SshdFactory

pytestmark = pytest.mark.sshd


def second_door(trio: Trio, sshd_factory: SshdFactory, host: Sshd) -> None:
    """Another address of the same machine, which the inventory lists as a host of its own from now on."""
    door = sshd_factory("gpu9", env={**host.environment(), "HOME": str(host.home)}, max_sessions=1)
    known_hosts = trio.inventory.with_name("known_hosts")
    known_hosts.write_text(known_hosts.read_text() + door.known_hosts_line)
    edited(
        trio.inventory, "ssh: {", f"  - {{name: gpu9, address: {door.address}, port: {door.port}, gpus: 2}}\nssh: {{"
    )


@contextmanager
def led_anew(trio: Trio) -> Iterator[str]:
    """By a leader that reads the inventory as it is now. Gives what it would do, as it says before it leads."""
    leader = trio.leaders.pop()
    leader.terminate()
    leader.wait(20)
    plan = trio.run("serve", "--dry-run")
    trio.leaders.append(trio.serve())
    yield plan


def row(trio: Trio, host: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [row for row in trio.json("hosts") if row["host"] == host]
    assert found, f"no {host} yet"
    return found[0]


def test_a_machine_listed_twice_is_used_once(trio: Trio, sshd_factory: SshdFactory) -> None:
    second_door(trio, sshd_factory, trio.hosts[2])
    said = trio.run("check", "--connect", status=1)
    assert "the same GPUs as gpu9" in said and "the same GPUs as gpu3" in said
    assert trio.json("reload", "--yes", "--reason", "a new host")["outcome"] == "applied"
    trio.until(lambda: "the same machine as gpu3" in row(trio, "gpu9")["why"], "it to be refused")
    assert row(trio, "gpu9")["free"] == 0
    gangs = [trio.submit(f"w{n}", min_s=60) for n in range(4)]
    trio.wait(lambda: sum(trio.running(wid) is not None for wid in gangs) == 3, "three of them to run")
    used = [uuid for wid in gangs for life in trio.lives_of(wid) for uuid in life.gpus]
    assert len(used) == len(set(used)) == 6


def test_a_renamed_machine_keeps_its_work_and_then_takes_some_under_its_new_name(trio: Trio) -> None:
    wid = trio.submit("w", gpus=2, min_s=60)
    run = trio.wait(lambda: trio.running(wid), "it to start")
    (old,) = run.members
    edited(trio.inventory, f"name: {old},", "name: gpu7,")
    for _ in range(2):  # the second leader's inventory has never had the old name
        with led_anew(trio) as plan:
            assert f"gpu7: the same machine as {old}" in plan and "3 of 4 hosts can be used" in plan
            trio.until(lambda: f"the same machine as {old}" in row(trio, "gpu7")["why"], "it to be refused")
            assert row(trio, "gpu7")["free"] == 0 and row(trio, old)["reach"] == "fresh"
    trio.let_finish(wid)
    trio.wait(lambda: trio.ended(wid), "it to end")
    assert trio.record(wid).outcome is Outcome.SUCCEEDED and len(trio.lives_of(wid)) == 1
    trio.until(lambda: row(trio, "gpu7")["free"] == 2, "the new name to be used")
    assert old not in [found["host"] for found in trio.json("hosts")]
