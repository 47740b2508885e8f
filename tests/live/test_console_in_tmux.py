"""The real console in a real terminal: logging in on a host of a real sshd, job control, storms of resizing."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.commands import OPSCONSOLE
from tests.sshd import Sshd, SshdFactory, sshd_factory
from tests.tmux import Tmux, in_tmux, needs_tmux

__all__ = ["sshd_factory"]
pytestmark = needs_tmux
SHELL = ("/bin/sh", "-i")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Tmux]:
    """A shell with job control that has an inventory; it says `$` and nothing else."""
    environment = {
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "OPSCONSOLE_INVENTORY": str(tmp_path / "inventory.yaml"),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PS1": "$ ",
        "ENV": "",
    }
    with in_tmux(SHELL, tmp_path, environment) as tmux:
        tmux.until("$")
        yield tmux


def write_inventory(folder: Path, *hosts: str, ssh: str = "{}") -> None:
    rows = "\n".join(f"  - {host}" for host in hosts)
    (folder / "inventory.yaml").write_text(
        f"hosts:\n{rows}\nssh: {ssh}\nbudgets: [{{name: a}}]\nstate_dir: {folder}/state\n"
    )


def opened(shell: Tmux, *words: str) -> None:
    shell.type(shlex.join([*OPSCONSOLE, *words]))
    shell.keys("Enter")
    shell.until("NO LEADER")


def command(shell: Tmux, words: str) -> None:
    shell.type(f":{words}")
    shell.keys("Enter")


def behind(hop: Sshd, host: Sshd) -> str:
    """An entry of the inventory: through a jump host, with keys that are named nowhere else."""
    return (
        f"{{name: gpu001, gpus: 1, address: {host.address}, port: {host.port}, user: {host.user}, "
        f'identity: "{host.key}", jump: "{hop.user}@{hop.address}:{hop.port}"}}'
    )


@pytest.mark.sshd
def test_ssh_logs_in_by_the_way_of_the_pool_and_comes_back(
    sshd_factory: SshdFactory, tmp_path: Path, shell: Tmux
) -> None:
    host = sshd_factory("gpu001")
    hop = sshd_factory("hop", client_key=host.key)
    known = f"[{host.known_hosts}, {hop.known_hosts}]"
    write_inventory(tmp_path, behind(hop, host), ssh=f"{{known_hosts: {known}}}")
    opened(shell)
    command(shell, "ssh gpu001")
    shell.until("$")
    shell.type("echo in $HOME; sleep 1000\n")
    shell.until(f"in {host.home}")
    shell.keys("C-c")
    shell.type("echo still $((40 + 2))\n")
    seen = shell.until("still 42")
    assert "NO LEADER" not in seen, "the terminal is the host's alone"
    shell.type("exit 3\n")
    shell.until("NO LEADER", "ssh gpu001 ended with exit status 3")
    shell.keys("2")
    shell.until(" hosts |")
    shell.keys("C-q")
    shell.until("$")


@pytest.mark.sshd
def test_what_ssh_says_can_be_read_when_it_fails(sshd_factory: SshdFactory, tmp_path: Path, shell: Tmux) -> None:
    host = sshd_factory("gpu001")
    hop = sshd_factory("hop")
    write_inventory(tmp_path, behind(hop, host), ssh=f"{{known_hosts: [{host.known_hosts}]}}")
    opened(shell)
    command(shell, "ssh gpu001")
    shell.until("authenticity of host")
    shell.type("no\n")
    shell.until("Host key verification failed", "Press Enter to go back to the console")
    shell.keys("Enter")
    shell.until("NO LEADER", "ssh gpu001 ended with exit status 255")


def test_the_shell_that_started_it_is_one_key_away(tmp_path: Path, shell: Tmux) -> None:
    """G5: Ctrl-Z and fg, and the console is as it was; the terminal between them is sane."""
    write_inventory(tmp_path, "{name: gpu001, gpus: 1}")
    opened(shell)
    shell.keys("2", "C-z")
    shell.until("Stopped")
    shell.type("echo back $((40 + 2))\n")
    seen = shell.until("back 42")
    assert "NO LEADER" not in seen
    shell.type("fg\n")
    shell.until("NO LEADER", " hosts |")
    shell.keys("1")
    shell.until(" overview |")
    shell.keys("C-q")
    shell.until("$")


def test_a_storm_of_resizing_leaves_a_whole_picture(tmp_path: Path, shell: Tmux) -> None:
    """G5-14. Whatever size somebody has exported."""
    write_inventory(tmp_path, "{name: gpu001, gpus: 1}")
    shell.type("export COLUMNS=80 LINES=24\n")
    opened(shell)
    for n in range(60):
        shell.resize(20 + n * 37 % 180, 5 + n * 13 % 50)
    shell.resize(100, 30)
    shell.until("Availability", "NO LEADER", "quit")
    shell.resize(30, 8)
    shell.until("needs at least")
    shell.resize(80, 24)
    shell.until("NO LEADER", "help")
    time.sleep(0.3)
    assert max(map(len, shell.seen.splitlines())) <= 80


def test_a_store_that_vanishes_is_said_and_found_again(tmp_path: Path, shell: Tmux) -> None:
    write_inventory(tmp_path, "{name: gpu001, gpus: 1}")
    opened(shell)
    store, away = tmp_path / "state", tmp_path / "away"
    store.rename(away)
    shell.until("store: cannot follow")
    shell.keys("2")
    shell.until(" hosts |")
    away.rename(store)
    end = time.monotonic() + 20
    while "cannot follow" in shell.seen:
        assert time.monotonic() < end, shell.seen
        time.sleep(0.1)
    shell.keys("C-q")
    shell.until("$")
