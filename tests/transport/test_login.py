"""The ssh command of the console: OpenSSH itself reaches the host as the pool does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opsconsole.transport.address import HostAddress
from opsconsole.transport.login import local_login, login, one_config
from opsconsole.transport.resolve import resolve
from tests.sshd import Sshd, SshdFactory
from tests.transport.driving import address_of

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh here")


def said_through(host: Sshd, known: list[Sshd], config: Path | None = None, **how: object) -> str:
    """What a session there says, and where it logged in; nothing is asked."""
    files = () if config is None else (str(config),)
    trusted = tuple(str(server.known_hosts) for server in known)
    route = resolve(address_of(host, **how), config_files=files, extra_known_hosts=trusted)
    words = login(route, str(config) if config is not None else "none")
    words[1:1] = ["-o", "BatchMode=yes"]
    done = subprocess.run([*words, "echo in $HOME"], capture_output=True, text=True, timeout=30, env=no_agent())
    return done.stdout + done.stderr


def no_agent() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}


@pytest.mark.sshd
def test_with_the_port_the_user_the_key_and_the_trust_of_the_inventory(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    assert said_through(host, [host]) == f"in {host.home}\n"
    assert "Host key verification failed" in said_through(host, [])


@pytest.mark.sshd
def test_through_jump_hosts_with_the_key_that_only_the_inventory_names(
    sshd_factory: SshdFactory, tmp_path: Path
) -> None:
    """Three hops, each verified; `ssh -J` would offer none of the keys."""
    host = sshd_factory("gpu 001")
    hops = [sshd_factory(name, client_key=host.key) for name in ("gate", "in%h", "third")]
    chain = tuple(f"{hop.user}@{hop.address}:{hop.port}" for hop in hops)
    assert said_through(host, [*hops, host], jump=chain) == f"in {host.home}\n"
    assert all(hop.log.read_text().count("Accepted publickey") == 1 for hop in hops)
    assert "Host key verification failed" in said_through(host, [*hops[:2], host], jump=chain)


@pytest.mark.sshd
def test_what_an_ssh_config_says_counts_too(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    gate, host = sshd_factory("gate"), sshd_factory("gpu001")
    config = tmp_path / "config"
    config.write_text(
        f"Host behind\n  HostName {host.address}\n  Port {host.port}\n  IdentityFile {host.key}\n  ProxyJump gate\n"
        f"Host gate\n  HostName {gate.address}\n  Port {gate.port}\n  IdentityFile {gate.key}\n"
    )
    found = said_through(host, [gate, host], config, address="behind", port=None, user=None, identity=())
    assert found == f"in {host.home}\n"


def test_several_configurations_count_as_the_pool_counts_them(tmp_path: Path) -> None:
    """The first that says something wins; one that is not there is nothing."""
    files = [tmp_path / "one", tmp_path / "two", tmp_path / "none"]
    files[0].write_text("Host gpu001\n  User ada\n")
    files[1].write_text("Host gpu001\n  User bob\n  Port 2222\n")
    names = [str(file) for file in files]
    config = one_config(names, tmp_path / "state/ssh_config")
    said = subprocess.run(["ssh", "-G", "-F", config, "gpu001"], capture_output=True, text=True, check=True).stdout
    route = resolve(HostAddress("gpu001", "gpu001"), config_files=names)
    assert "user ada\n" in said and "port 2222\n" in said
    assert (route.options.username, route.port) == ("ada", 2222)
    assert one_config(names[:1], tmp_path / "x") == names[0] and one_config([], tmp_path / "x") == "none"


def test_a_host_that_is_this_machine_has_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert local_login(HostAddress("here", "local")) == ["/bin/bash", "-l"]
