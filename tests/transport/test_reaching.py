"""Every way a host can be out of reach, each with its own word; and that none of them delays another host."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from opsconsole.transport.errors import TransportError, Unreach
from opsconsole.transport.link import Connected, Disconnected, LinkState
from tests.sshd import Hang, SshdFactory, free_port, make_key, next_address
from tests.transport.driving import address_of, watching

pytestmark = pytest.mark.sshd


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


async def test_a_changed_host_key_shows_both_fingerprints_and_the_line(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001", start=False)
    host.known_hosts.write_text("# comment\n" + host.known_hosts_line)
    host.rotate_host_key()
    host.start()
    async with watching(address_of(host), known=[host]) as watched:
        said = await watched.until_lost("gpu001", Unreach.HOST_KEY_CHANGED)
        assert said.count("SHA256:") == 2 and f"{host.known_hosts}:2" in said and "ssh-keygen -f" in said
        host.trust()  # a person mends it; no restart of the console
        watched.pool.reconnect("gpu001")
        await watched.until_live()


async def test_a_host_key_of_another_type_is_a_changed_key(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001", start=False)
    host.rotate_host_key("ecdsa")
    host.start()
    async with watching(address_of(host), known=[host]) as watched:
        assert "ecdsa" in await watched.until_lost("gpu001", Unreach.HOST_KEY_CHANGED)


async def test_an_unknown_host_key_tells_the_command(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known_hosts=("/nonexistent",)) as watched:
        said = await watched.until_lost("gpu001", Unreach.HOST_KEY_UNKNOWN)
        assert f"ssh-keyscan -p {host.port} {host.address}" in said and "SHA256:" in said
        assert "/nonexistent (not there)" in said


async def test_a_revoked_host_key(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    host.known_hosts.write_text(host.known_hosts_line + "@revoked * " + host.known_hosts_line.split(" ", 1)[1])
    async with watching(address_of(host), known=[host]) as watched:
        assert "revoked" in await watched.until_lost("gpu001", Unreach.HOST_KEY_CHANGED)


async def test_a_wrong_key(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    host = sshd_factory("gpu001")
    wrong = make_key(tmp_path / "wrong")
    async with watching(address_of(host, identity=(str(wrong),)), known=[host]) as watched:
        said = await watched.until_lost("gpu001", Unreach.AUTH_FAILED)
        assert "1 key offered" in said and f"ssh -v {host.user}@{host.address} -p {host.port}" in said


async def test_a_key_with_a_passphrase_and_no_agent(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    locked = make_key(tmp_path / "locked", passphrase="secret words")
    host = sshd_factory("gpu001", client_key=locked)
    async with watching(address_of(host), known=[host]) as watched:
        assert f"ssh-add {locked}" in await watched.until_lost("gpu001", Unreach.AUTH_FAILED)


async def test_a_missing_key_file(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    async with watching(address_of(host, identity=("/nonexistent/key",)), known=[host]) as watched:
        assert "/nonexistent/key does not exist" in await watched.until_lost("gpu001", Unreach.AUTH_FAILED)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An ssh-agent of its own, with 7 keys nobody knows."""
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    while not socket.exists():
        pass
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    for number in range(7):
        add_key(make_key(tmp_path / f"extra{number}"))
    yield socket
    process.kill()
    process.wait()


def add_key(key: Path) -> None:
    subprocess.run(["ssh-add", "-q", str(key)], check=True, stdin=subprocess.DEVNULL)


async def test_an_agent_with_8_keys_and_max_auth_tries_3(sshd_factory: SshdFactory, agent: Path) -> None:
    """G4-23."""
    host = sshd_factory("gpu001", max_auth_tries=3)
    add_key(host.key)
    hidden = host.key.with_name("only_public")
    hidden.with_name("only_public.pub").write_text(host.key.with_name(host.key.name + ".pub").read_text())
    async with watching(address_of(host, identity=(str(hidden),)), known=[host]) as watched:
        await watched.until_live()  # only the agent's copy of the configured key was offered


async def test_too_many_keys_says_what_to_set(sshd_factory: SshdFactory, agent: Path) -> None:
    host = sshd_factory("gpu001", max_auth_tries=2)
    async with watching(address_of(host, identity=()), known=[host]) as watched:
        assert "Set identity:" in await watched.until_lost("gpu001", Unreach.AUTH_FAILED)


async def test_an_agent_that_hangs_costs_its_deadline_only(
    sshd_factory: SshdFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G4-23."""
    server = await asyncio.start_unix_server(lambda reader, writer: asyncio.sleep(60), tmp_path / "hanging")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "hanging"))
    monkeypatch.setattr("opsconsole.transport.identity.AGENT_TIMEOUT_S", 0.3)
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
    server.close()


async def test_refused_silent_and_unknown_names_have_different_words(sshd_factory: SshdFactory, hang: Hang) -> None:
    good = sshd_factory("good")
    nobody = next_address()
    refused = address_of(good, name="refused", address=nobody, port=free_port(nobody))
    silent = address_of(good, name="silent", address=hang.address, port=hang.port, connect_timeout_s=0.5)
    nameless = address_of(good, name="nameless", address="no-such-host.invalid")
    async with watching(silent, refused, nameless, address_of(good), known=[good]) as watched:
        assert watched.pool.status("silent").kind == Unreach.NEVER_SEEN
        await watched.until_live("good")
        assert "sshd runs there" in await watched.until_lost("refused", Unreach.REFUSED)
        assert "not done in 0.5 s" in await watched.until_lost("silent", Unreach.TIMED_OUT)
        await watched.until_lost("nameless", Unreach.DNS)


async def test_hosts_that_hang_do_not_delay_the_others(
    sshd_factory: SshdFactory, hang: Hang, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G4-01."""
    monkeypatch.setattr("opsconsole.transport.link.SLOW_AFTER_S", 0.2)
    good = sshd_factory("good")
    hanging = [address_of(good, name=f"h{n}", address=hang.address, port=hang.port) for n in range(12)]
    async with watching(*hanging, address_of(good), known=[good], connecting_at_once=4) as watched:
        await watched.until_live("good", within_s=5.0)
        assert watched.pool.status("h0").state == LinkState.CONNECTING
    # `watching` has checked that closing did not wait for the hanging ones


async def test_a_half_open_link_is_found_by_its_silence(sshd_factory: SshdFactory) -> None:
    """G4-01."""
    host, other = sshd_factory("gpu001"), sshd_factory("gpu002")
    async with watching(address_of(host), address_of(other), known=[host, other], interval_s=0.3) as watched:
        await watched.until_live()
        host.pause()
        await watched.until(lambda: watched.pool.status("gpu001").state == LinkState.LATE, 5.0)
        assert "silent" in await watched.until_lost("gpu001", Unreach.TIMED_OUT, 6.0)
        assert watched.pool.status("gpu002").state == LinkState.LIVE
        host.resume()
        await watched.until_live()


async def test_reconnects_after_the_server_was_killed(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        host.kill()
        await watched.until_lost("gpu001", Unreach.REFUSED)
        assert watched.of(Disconnected)[0].kind == Unreach.CLOSED
        host.start()
        await watched.until_live()
        assert len(watched.of(Connected)) == 2
        assert watched.pool.status("gpu001").kind is None


async def test_max_startups_is_not_an_outage_and_no_failed_login(sshd_factory: SshdFactory) -> None:
    """G4-02."""
    host = sshd_factory("gate", max_startups="2:100:2")
    addresses = [address_of(host, name=f"gpu{n:03d}") for n in range(12)]
    async with watching(*addresses, known=[host]) as watched:
        await watched.until_live(within_s=30.0)
        assert not [event for event in watched.of(Disconnected) if event.kind != Unreach.DROPPED]


async def test_max_sessions_0_is_said(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001", max_sessions=0)
    async with watching(address_of(host), known=[host]) as watched:
        assert "MaxSessions" in await watched.until_lost("gpu001", Unreach.NO_SHELL)


async def test_through_jump_hosts_one_connection_carries_many(sshd_factory: SshdFactory) -> None:
    """G4-02."""
    bastion, second = sshd_factory("bastion"), sshd_factory("second")
    hosts = [sshd_factory(f"gpu{n:03d}") for n in range(4)]
    chain = tuple(f"{hop.user}@{hop.address}:{hop.port}" for hop in (bastion, second))
    async with watching(*(address_of(h, jump=chain) for h in hosts), known=[bastion, second, *hosts]) as watched:
        await watched.until_live()
        log = bastion.log.read_text() if bastion.log.exists() else ""
        assert log.count("Accepted publickey") == 1, log
        bastion.drop_connections()
        await watched.until(lambda: len(watched.of(Connected)) == 8)


async def test_a_failing_jump_host_is_named(sshd_factory: SshdFactory, hang: Hang) -> None:
    """G4-06."""
    host, bastion = sshd_factory("gpu001"), sshd_factory("bastion")
    nobody = next_address()
    dead = f"{nobody}:{free_port(nobody)}"
    good = f"{bastion.user}@{bastion.address}:{bastion.port}"
    addresses = [
        address_of(host, name="dead-hop", jump=(dead,)),
        address_of(host, name="silent-hop", jump=(f"{hang.address}:{hang.port}",), connect_timeout_s=0.5),
        address_of(host, name="dead-target", jump=(good,), port=free_port(host.address)),
        address_of(host, name="silent-target", jump=(good,), address=hang.address, port=hang.port, connect_timeout_s=1),
    ]
    async with watching(*addresses, known=[host, bastion]) as watched:
        assert nobody in (await watched.until_lost("dead-hop", Unreach.PROXY_FAILED))
        await watched.until_lost("silent-hop", Unreach.PROXY_FAILED)
        await watched.until_lost("dead-target", Unreach.REFUSED)
        await watched.until_lost("silent-target", Unreach.TIMED_OUT)
        whats = [link._error.what for link in watched.pool._links.values() if link._error]
        assert any("through" in what for what in whats)


async def test_a_frozen_jump_host_is_found_and_left(sshd_factory: SshdFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """G4-06."""
    monkeypatch.setattr("opsconsole.transport.opener.JUMP_KEEPALIVE_S", 0.3)
    bastion, host, direct = sshd_factory("bastion"), sshd_factory("gpu001"), sshd_factory("gpu002")
    behind = address_of(host, jump=(f"{bastion.user}@{bastion.address}:{bastion.port}",), connect_timeout_s=2.0)
    async with watching(behind, address_of(direct), known=[bastion, host, direct], interval_s=0.3) as watched:
        await watched.until_live()
        bastion.pause()
        await watched.until(lambda: watched.pool.status("gpu001").state == LinkState.LOST, 6.0)
        bastion.kill()
        bastion.start()
        await watched.until_live()
        assert len(watched.of(Connected, "gpu002")) == 1


async def test_a_server_that_drops_everybody_is_no_failed_login(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    server = await asyncio.start_server(lambda reader, writer: writer.close(), next_address(), 0)
    address, port = server.sockets[0].getsockname()
    closing = address_of(host, address=address, port=port, connect_timeout_s=1.0)
    async with watching(closing, known=[host]) as watched:
        assert "MaxStartups" in await watched.until_lost("gpu001", Unreach.DROPPED)
    server.close()


async def test_a_slow_handshake_is_not_an_outage(sshd_factory: SshdFactory) -> None:
    """G3-12."""
    host = sshd_factory("gpu001")

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await asyncio.sleep(0.3)
            writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward = await asyncio.open_connection(host.address, host.port)
        await asyncio.gather(pass_on(reader, onward), pass_on(onward_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(relay, next_address(), 0)
    address, port = server.sockets[0].getsockname()
    host.known_hosts.write_text(host.known_hosts_line.replace(f"[{host.address}]:{host.port}", f"[{address}]:{port}"))
    async with watching(address_of(host, address=address, port=port), known=[host], interval_s=1.0) as watched:
        await watched.until_live()
        assert not watched.of(Disconnected)
        await watched.until(lambda: (watched.pool.status("gpu001").rtt_s or 0) > 0.5)
    server.close()


async def test_a_request_cut_in_mid_flight_may_have_been_carried_out(sshd_factory: SshdFactory) -> None:
    """G3-14, G4-01."""
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        request = asyncio.create_task(watched.pool.request("gpu001", "never", 30.0))
        await asyncio.sleep(0.1)
        host.kill()
        with pytest.raises(TransportError) as caught:
            await request
        assert caught.value.outcome_unknown and caught.value.kind == Unreach.CLOSED
        with pytest.raises(TransportError) as caught:
            await watched.pool.request("gpu001", "never", 30.0)
        assert not caught.value.outcome_unknown  # it never left this machine


async def test_replace_touches_only_what_changed(sshd_factory: SshdFactory) -> None:
    one, two, three = (sshd_factory(f"gpu00{n}") for n in (1, 2, 3))
    async with watching(address_of(one), address_of(two), known=[one, two, three]) as watched:
        await watched.until_live()
        watched.pool.replace([address_of(two), address_of(three)])
        await watched.until_live("gpu002", "gpu003")
        assert watched.pool.hosts == ("gpu002", "gpu003")
        assert len(watched.of(Connected, "gpu002")) == 1


async def test_host_names_are_data(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    """G4-12."""
    host = sshd_factory("plain")
    odd = ["a'b", f"$(touch {tmp_path}/hit)", "`x`", "-rf", "[red]", "zeile\nzwei", "\u202eabc", "../../x", "n" * 300]
    async with watching(*(address_of(host, name=name) for name in odd), known=[host]) as watched:
        await watched.until_live()
    assert "hit" not in os.listdir(tmp_path)
