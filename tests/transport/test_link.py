"""Pauses, the gate, descriptors: without a network."""

from __future__ import annotations

import asyncio
import resource

import pytest

from opsconsole.transport import opener
from opsconsole.transport.address import HostAddress
from opsconsole.transport.errors import ADVICE, NEEDS_A_PERSON, TransportError, Unreach
from opsconsole.transport.link import LONGEST_PAUSE_S, Gate, pause_s
from opsconsole.transport.opener import SshOpener
from opsconsole.transport.session import Session


def test_pauses_grow_with_jitter_up_to_a_minute() -> None:
    for failures, longest in ((1, 0.5), (2, 1.0), (4, 4.0), (8, 60.0), (10_000, 60.0)):
        seconds = [pause_s(failures, Unreach.REFUSED) for _ in range(200)]
        assert longest / 2 <= min(seconds) < max(seconds) <= longest


@pytest.mark.parametrize("kind", sorted(NEEDS_A_PERSON))
def test_what_only_a_person_mends_is_not_hammered(kind: Unreach) -> None:
    assert pause_s(1, kind) >= LONGEST_PAUSE_S / 2


def test_every_kind_has_its_own_word_and_advice() -> None:
    assert set(ADVICE) == set(Unreach) and len({str(kind) for kind in Unreach}) == len(Unreach)
    assert {"refused", "timed out", "auth failed", "host key changed", "never seen"} <= {str(k) for k in Unreach}


def test_an_error_reads_as_a_sentence() -> None:
    error = TransportError("gpu1", "log in as root", "2 keys offered", Unreach.AUTH_FAILED)
    assert str(error).splitlines() == [
        "gpu1: log in as root: auth failed: 2 keys offered",
        f"  {ADVICE[Unreach.AUTH_FAILED]}",
    ]
    assert (error.host, error.exit_code, error.outcome_unknown) == ("gpu1", 1, False)


async def test_the_gate_bounds_and_lets_slow_ones_step_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsconsole.transport.link.SLOW_AFTER_S", 0.05)
    gate, inside, most = Gate(2), 0, 0

    async def quick() -> None:
        nonlocal inside, most
        async with gate.place():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    async def slow() -> None:
        async with gate.place():
            await asyncio.sleep(30)

    await asyncio.gather(*(quick() for _ in range(6)))
    assert most == 2
    hanging = [asyncio.create_task(slow()) for _ in range(2)]
    await asyncio.wait_for(quick(), 2.0)
    for task in hanging:
        task.cancel()


async def test_more_hosts_than_descriptors_is_said_and_the_rest_is_kept() -> None:
    """G4-04."""
    ssh = SshOpener((), budget=1)
    addresses = [HostAddress(f"h{n}", "127.0.0.1", port=1) for n in range(2)]
    sessions = [Session(address.name, print) for address in addresses]
    routes = [await ssh.route(address) for address in addresses]
    with pytest.raises(TransportError, match="refused"):
        await ssh.connect(routes[0], sessions[0])
    with pytest.raises(TransportError) as caught:
        await ssh.connect(routes[1], sessions[1])
    assert caught.value.kind == Unreach.LOCAL_LIMIT
    sessions[0].end()
    await asyncio.sleep(0)
    with pytest.raises(TransportError, match="refused"):
        await ssh.connect(routes[1], sessions[1])


def test_the_descriptor_budget_leaves_a_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    """G4-04."""
    limits = {"now": (64, 1024)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.update(now=new))
    assert opener.descriptor_budget() == 1024 - opener.RESERVED_DESCRIPTORS
    assert limits["now"] == (1024, 1024)
