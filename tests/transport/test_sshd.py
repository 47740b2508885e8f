"""The fixture itself: what the other tests stand on."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.sshd import LOGIN_SHELLS, Sshd, SshdFactory, marked

pytestmark = pytest.mark.sshd


def ssh(host: Sshd, command: str) -> subprocess.CompletedProcess[str]:
    """What OpenSSH's own client gets."""
    options = ["IdentitiesOnly=yes", "BatchMode=yes", f"UserKnownHostsFile={host.known_hosts}"]
    argv = ["ssh", "-F", "none", "-i", str(host.key), "-p", str(host.port)]
    argv += [word for option in options for word in ("-o", option)]
    argv += [f"{host.user}@{host.address}", command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20)


def test_a_login_sees_its_own_home_and_state_directory(sshd_factory: SshdFactory) -> None:
    one, two = sshd_factory("one"), sshd_factory("two", env={"EXTRA": "a b"})
    assert ssh(one, 'echo "$HOME $OPSCONSOLE_STATE_DIR"').stdout.split() == [
        str(one.home),
        str(one.state_dir),
    ]
    assert ssh(two, 'echo "$EXTRA"').stdout == "a b\n"
    assert one.address != two.address


@pytest.mark.parametrize("shell", LOGIN_SHELLS)
def test_it_imitates_a_login_shell(sshd_factory: SshdFactory, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    assert ssh(sshd_factory(shell=shell), "echo hello").stdout == "hello\n"


def test_a_rotated_key_is_refused_and_a_restart_serves(sshd_factory: SshdFactory) -> None:
    host = sshd_factory()
    host.kill()
    host.rotate_host_key()
    host.start()
    assert ssh(host, "true").returncode == 255
    host.trust()
    assert ssh(host, "true").returncode == 0


def test_stop_leaves_nothing_running(sshd_factory: SshdFactory) -> None:
    host = sshd_factory()
    ssh(host, "setsid sleep 300 >/dev/null 2>&1 </dev/null & sleep 0.05")
    assert marked(str(host.root))
    host.stop()
    assert not marked(str(host.root))
