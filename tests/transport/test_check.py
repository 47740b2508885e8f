"""`check_hosts`: where a host stops and what to do there."""

from __future__ import annotations

import time

import pytest

from opsconsole.transport.check import (
    StepName,
    Verdict,
    check_hosts,
    clock_step,
    disk_step,
    driver_step,
    failed_steps,
    gpu_step,
    stopped_at,
)
from opsconsole.transport.errors import TransportError, Unreach
from opsconsole.transport.pool import PoolOptions
from tests.sshd import Hang, SshdFactory
from tests.transport.driving import KIT, address_of


@pytest.mark.sshd
async def test_a_good_host_a_silent_one_and_one_with_another_key(sshd_factory: SshdFactory, hang: Hang) -> None:
    good, changed = sshd_factory("good"), sshd_factory("changed", start=False)
    changed.rotate_host_key()
    changed.start()
    silent = address_of(good, name="silent", address=hang.address, port=hang.port, connect_timeout_s=0.5)
    options = PoolOptions(
        kit=KIT,
        hello=lambda _: {"store": "s1", "epoch": 1, "interval_s": 0.3},
        ssh_config=(),
        known_hosts=(str(good.known_hosts), str(changed.known_hosts)),
    )
    done: list[str] = []
    checks = await check_hosts(
        [address_of(good), silent, address_of(changed)], options, expected_gpus={"good": 8}, on_done=done.append
    )
    found = {check.host: {step.name: step for step in check.steps} for check in checks}
    assert [check.host for check in checks] == ["good", "silent", "changed"] and sorted(done) == sorted(found)
    assert all(list(steps) == list(StepName) for steps in found.values())
    assert found["good"][StepName.AGENT].verdict == Verdict.OK
    assert found["good"][StepName.GPUS].found == "0 of 8"
    assert found["silent"][StepName.REACHABLE].verdict == Verdict.FAIL
    assert found["changed"][StepName.REACHABLE].verdict == Verdict.OK
    assert found["changed"][StepName.HOST_KEY].verdict == Verdict.FAIL and found["changed"][StepName.HOST_KEY].advice
    assert found["changed"][StepName.LOGIN].verdict == Verdict.UNKNOWN
    assert not any(check.ok for check in checks)


@pytest.mark.parametrize("kind", list(Unreach))
def test_every_kind_stops_at_a_step_and_has_advice(kind: Unreach) -> None:
    steps = failed_steps(TransportError("h", "connect", "why", kind))
    failed = [step for step in steps if step.verdict == Verdict.FAIL]
    assert len(failed) == 1 and failed[0].advice.endswith((".", "now.", ")"))


def test_a_time_out_belongs_to_the_step_it_happened_in() -> None:
    assert stopped_at(Unreach.TIMED_OUT, "log in as root through b") == StepName.LOGIN
    assert stopped_at(Unreach.TIMED_OUT, "wait for the login shell") == StepName.SHELL
    assert stopped_at(Unreach.TIMED_OUT, "start the agent") == StepName.AGENT
    assert stopped_at(Unreach.TIMED_OUT, "connect") == StepName.REACHABLE


def test_the_clock_takes_half_the_round_trip_as_doubt() -> None:
    now = time.time()
    assert clock_step({"time_unix_s": now - 2.5}, now, 1.2).verdict == Verdict.OK
    assert clock_step({"time_unix_s": now - 30}, now, 1.2).verdict == Verdict.WARN
    assert clock_step({}, now, 1.2).verdict == Verdict.UNKNOWN


def test_unknown_readings_are_not_zero() -> None:
    assert driver_step({"driver": {"failed": "Driver/library version mismatch"}}).found.startswith("Driver/library")
    assert disk_step({"host": {"state_disk_free_bytes": {"denied": "no"}}}).verdict == Verdict.UNKNOWN
    assert disk_step({"host": {"state_disk_free_bytes": {"v": 5}}}).verdict == Verdict.WARN
    assert gpu_step({"gpus": [1, 2]}, 2).verdict == Verdict.OK
