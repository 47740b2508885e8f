"""~/.ssh/config: the same answers as OpenSSH (`ssh -G`) for the same file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opsconsole.errors import UsageError
from opsconsole.transport.address import HostAddress, parse_jump
from opsconsole.transport.errors import TransportError, Unreach
from opsconsole.transport.resolve import Route, resolve
from tests.sshd import SshdFactory, make_key, public_key
from tests.transport.driving import address_of, watching

CONFIG = """\
Include {directory}/more.conf
Host alias
    HostName 10.1.2.3
    Port 2201
    User alice
    HostKeyAlias known-as
Host gpu-*
    HostName %h.cluster.example
    User bob
    IdentityFile {directory}/key-%r
    IdentitiesOnly yes
    UserKnownHostsFile {directory}/kh1 {directory}/kh2
    ProxyJump carol@gate:2022,inner
Host gate
    HostName 192.0.2.1
    IdentityFile {directory}/gate-key
Match user dave
    Port 7000
Host *
    ConnectTimeout 7
    ForwardAgent yes
    SendEnv LANG
    SetEnv LEAK=1
    RemoteCommand tmux
    RequestTTY force
    StrictHostKeyChecking no
"""
HOSTS = ("alias", "gpu-7", "gate", "included", "plain.example", "fe80::1%lo")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config"
    file.write_text(CONFIG.format(directory=tmp_path))
    (tmp_path / "more.conf").write_text("Host included\n    HostName 10.9.9.9\n    Port 99\n")
    return file


def route_of(config: Path, name: str, **fields: object) -> Route:
    return resolve(HostAddress(name, name, **fields), config_files=(str(config),))  # type: ignore[arg-type]


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh here")
@pytest.mark.parametrize("user", [None, "dave"])
@pytest.mark.parametrize("name", HOSTS)
def test_host_port_user_and_hops_as_openssh_reads_them(config: Path, name: str, user: str | None) -> None:
    """G4-07."""
    argv = ["ssh", "-G", "-F", str(config), *(["-l", user] if user else []), name]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    theirs = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    route = route_of(config, name, user=user)
    assert (route.host, str(route.port), route.options.username) == (
        theirs["hostname"],
        theirs["port"],
        theirs["user"],
    )
    hops = theirs.get("proxyjump", "none")
    assert [hop.address.name for hop in route.hops] == ([] if hops == "none" else ["gate", "inner"])


def test_each_hop_has_its_own_name_user_port_and_key(config: Path) -> None:
    """G4-07."""
    route = route_of(config, "gpu-7")
    gate, inner = route.hops
    assert (gate.host, gate.port, gate.options.username) == ("192.0.2.1", 2022, "carol")
    assert gate.wanted.identities == (f"{config.parent}/gate-key",)
    assert (inner.host, inner.port) == ("inner", 22)
    assert route.wanted.identities == (f"{config.parent}/key-bob",) and route.wanted.only
    assert route.known_hosts[:2] == (f"{config.parent}/kh1", f"{config.parent}/kh2")


def test_a_key_alias_is_the_name_of_the_key(config: Path) -> None:
    assert route_of(config, "alias").alias == "known-as"


def test_the_inventory_wins(config: Path) -> None:
    route = route_of(config, "gpu-7", port=5, user="eve", identity=("mine",), jump=("other",))
    assert (route.port, route.options.username, route.wanted.identities) == (5, "eve", ("mine",))
    assert [hop.address.name for hop in route.hops] == ["other"]
    assert route.hops[0].wanted.identities == ("mine",)  # nothing else is known for this hop


def test_nothing_of_the_operator_travels(config: Path) -> None:
    """G4-21."""
    options = route_of(config, "plain.example").options
    assert (options.env, options.send_env, options.command, options.agent_forward_path) == (None, None, None, None)
    assert options.request_pty is False


def test_mistakes_in_the_configuration_are_named(config: Path) -> None:
    config.write_text("Host *\n  Port many\n")
    with pytest.raises(TransportError) as caught:
        route_of(config, "gpu-7")
    assert caught.value.kind == Unreach.CONFIG and "line 2" in str(caught.value)


def test_a_circle_of_jumps_is_named(config: Path) -> None:
    config.write_text("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
    with pytest.raises(TransportError, match="circle"):
        route_of(config, "a")


@pytest.mark.parametrize("address", ["-oProxyCommand=x", "a b", "", "$(x)", "a;b", "a\nb"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(UsageError):
        HostAddress("h", address)


def test_jumps_as_people_write_them() -> None:
    target = HostAddress("h", "h")
    assert parse_jump("gate", target).spoken == "gate"
    assert parse_jump("ssh://u@gate:22", target).spoken == "u@gate -p 22"
    assert parse_jump("u@[::1]:2200", target).address == "::1"
    with pytest.raises(UsageError):
        parse_jump("a:b:c", target)


@pytest.mark.sshd
async def test_a_host_that_only_the_configuration_knows(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    gate, host = sshd_factory("gate"), sshd_factory("gpu001")
    config = tmp_path / "config"
    config.write_text(
        f"Host myhost\n HostName {host.address}\n Port {host.port}\n UserKnownHostsFile {host.known_hosts}\n"
        f" HostKeyAlias [{host.address}]:{host.port}\n ProxyJump mygate\n"
        f"Host mygate\n HostName {gate.address}\n Port {gate.port}\n UserKnownHostsFile {gate.known_hosts}\n"
        f"Host *\n User {host.user}\n IdentityFile {host.key}\n IdentitiesOnly yes\n SetEnv LEAK=1\n"
    )
    async with watching(HostAddress("gpu001", "myhost"), known_hosts=(), ssh_config=(str(config),)) as watched:
        await watched.until_live()


@pytest.mark.sshd
async def test_a_proxy_command_works_and_its_failure_is_named(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    gate, host = sshd_factory("gate"), sshd_factory("gpu001")
    config = tmp_path / "config"
    through = f"ssh -F none -i {gate.key} -o UserKnownHostsFile={gate.known_hosts} -p {gate.port}"
    config.write_text(
        f"Host good\n ProxyCommand {through} -W %h:%p {gate.user}@{gate.address}\n"
        f"Host bad\n ProxyCommand false\n"
        f"Host *\n HostName {host.address}\n"
    )
    addresses = [address_of(host, name=name, address=name) for name in ("good", "bad")]
    async with watching(*addresses, known=[host], ssh_config=(str(config),)) as watched:
        await watched.until_live("good")
        assert "ProxyCommand false" in await watched.until_lost("bad", Unreach.PROXY_FAILED)


def sign(authority: Path, public: Path, *options: str) -> None:
    """A certificate beside `public`."""
    subprocess.run(["ssh-keygen", "-q", "-s", str(authority), "-I", "test", *options, str(public)], check=True)


@pytest.mark.sshd
async def test_host_and_user_certificates(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    host = sshd_factory("gpu001", start=False)
    authority, user_key = host.key, make_key(tmp_path / "user")  # any key may sign
    sign(authority, host.host_key.with_name("host_key.pub"), "-h", "-n", host.address)
    sign(authority, user_key.with_name("user.pub"), "-n", host.user)
    (host.root / "authorized_keys").write_text("")
    host.extra = (f"HostCertificate {host.host_key}-cert.pub", f"TrustedUserCAKeys {authority}.pub")
    names = f"{host.address},[{host.address}]:{host.port}"
    host.known_hosts.write_text(f"@cert-authority {names} {public_key(authority)}\n")
    host.start()
    async with watching(address_of(host, identity=(str(user_key),)), known=[host]) as watched:
        await watched.until_live()
