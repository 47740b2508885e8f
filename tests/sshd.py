"""Real OpenSSH servers on loopback, for tests. Import `sshd_factory` into a conftest to have it as a fixture.

    def test_it(sshd_factory):
        host = sshd_factory("gpu001", env={"OPSCONSOLE_FAKE_NVML": str(fixture)}, max_sessions=1)
        host.address, host.port, host.user, host.client_key, host.known_hosts   # where and how to log in
        host.pause(); host.resume(); host.kill(); host.start(); host.rotate_host_key(); host.stop()

Each server has its own loopback address, host key, home and state directory below the test's `tmp_path`.
`stop` ends every process that a session of it has started, detached ones too: a mark in their environment tells.
"""

from __future__ import annotations

import contextlib
import getpass
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MARK = "OPSCONSOLE_TEST_SSHD"
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
LOGIN_SHELLS = ("bash", "dash", "zsh", "fish", "csh")
START_TIMEOUT_S = 10.0

_addresses = itertools.count(os.getpid() * 37 % 60_000)


def next_address() -> str:
    """A loopback address of its own for each server (Linux answers on all of 127/8)."""
    number = next(_addresses) % 60_000
    return f"127.{64 + os.getpid() % 64}.{number // 250 + 1}.{number % 250 + 2}"


def free_port(address: str) -> int:
    """A port nobody listens on; nobody else uses this address, so it stays free."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    """A fresh key pair at `path` and `path`.pub."""
    for old in (path, path.with_name(path.name + ".pub")):
        old.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return path


def public_key(path: Path) -> str:
    """`type base64` of the key at `path`, without the comment."""
    return " ".join(path.with_name(path.name + ".pub").read_text().split()[:2])


def tree(pid: int) -> list[int]:
    """`pid` and all that descend from it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                children.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(entry.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def marked(mark: str) -> list[int]:
    """Processes that carry `MARK=mark` in their environment."""
    needle, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if needle in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def program(pid: int) -> str:
    """The name of the program that it runs, "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def signal_all(pids: Sequence[int], signum: signal.Signals) -> None:
    """Sends to each that still lives."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


@dataclass(eq=False)
class Sshd:
    """One OpenSSH server. `root` holds everything of it; options are sshd's own, under their names."""

    root: Path
    name: str = "host"
    client_key: Path | None = None  # made when not given
    address: str = field(default_factory=next_address)
    port: int = 0
    env: Mapping[str, str] = field(default_factory=dict)  # what sessions see, over HOME, PATH and the state directory
    shell: str | None = None  # the login shell to imitate: one of LOGIN_SHELLS
    force_command: str | None = None
    banner: str | None = None
    max_sessions: int = 10
    max_startups: str = "100:30:200"
    max_auth_tries: int = 6
    login_grace_s: int = 120
    sftp: bool = False
    extra: Sequence[str] = ()  # further lines of sshd_config

    def __post_init__(self) -> None:
        self.user = getpass.getuser()
        self.home = self.root / "home"
        self.state_dir = self.root / "state"
        self.host_key = self.root / "host_key"
        self.known_hosts = self.root / "known_hosts"
        self.log = self.root / "sshd.log"
        self.home.mkdir(parents=True, exist_ok=True)
        self.port = self.port or free_port(self.address)
        self.key = self.client_key or make_key(self.root / "client_key")
        (self.root / "authorized_keys").write_text(public_key(self.key) + "\n")
        self.rotate_host_key()
        self.trust()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def known_hosts_line(self) -> str:
        """The right entry for the present host key, with a newline."""
        return f"[{self.address}]:{self.port} {public_key(self.host_key)}\n"

    def trust(self) -> None:
        """Write `known_hosts` with the present host key."""
        self.known_hosts.write_text(self.known_hosts_line)

    def rotate_host_key(self, kind: str = "ed25519") -> None:
        """A new host key, used from the next start; `known_hosts` keeps the old one until `trust`."""
        make_key(self.host_key, kind=kind)

    def environment(self) -> dict[str, str]:
        """What a session sees. The tests' own Python comes last on PATH, for machines without another."""
        return {
            "HOME": str(self.home),
            "PATH": f"/usr/local/bin:/usr/bin:/bin:{sys.base_prefix}/bin",
            "OPSCONSOLE_STATE_DIR": str(self.state_dir),
            **self.env,
            MARK: str(self.root),
        }

    def config(self) -> str:
        """The text of sshd_config."""
        command = self.force_command
        if self.shell is not None:
            command = f'exec {shutil.which(self.shell)} -c "$SSH_ORIGINAL_COMMAND"'
        lines = [
            f"ListenAddress {self.address}:{self.port}",
            f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {self.root}/authorized_keys",
            "PidFile none",
            "UsePAM no",
            "StrictModes no",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "UseDNS no",
            "PrintMotd no",
            f"MaxSessions {self.max_sessions}",
            f"MaxStartups {self.max_startups}",
            f"MaxAuthTries {self.max_auth_tries}",
            f"LoginGraceTime {self.login_grace_s}",
            "SetEnv " + " ".join(f'{key}="{value}"' for key, value in self.environment().items()),
        ]
        if command is not None:
            lines.append(f"ForceCommand {command}")
        if self.banner is not None:
            (self.root / "banner").write_text(self.banner)
            lines.append(f"Banner {self.root}/banner")
        if self.sftp:
            lines.append("Subsystem sftp internal-sftp")
        return "\n".join([*lines, *self.extra]) + "\n"

    def start(self) -> Sshd:
        """Serve; returns when the port answers. Raises RuntimeError with sshd's own words otherwise."""
        assert SSHD is not None and self._process is None
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # compiled in: root's sshd refuses to start without
        config = self.root / "sshd_config"
        config.write_text(self.config())
        self._process = subprocess.Popen(
            [SSHD, "-D", "-f", str(config), "-E", str(self.log)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._wait_until_it_answers(self._process)
        return self

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        give_up_at = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < give_up_at and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), 1.0):
                return
            time.sleep(0.01)
        process.kill()
        _, said = process.communicate()
        log = self.log.read_text() if self.log.exists() else ""
        raise RuntimeError(f"sshd did not start: {said.decode(errors='replace')} {log}")

    def pids(self) -> list[int]:
        """The server and everything below it: connections, sessions, their children."""
        return tree(self._process.pid) if self._process is not None else []

    def sessions(self) -> list[int]:
        """sshd's own processes of the connections that are open; what they started is not among them."""
        return [pid for pid in self.pids()[1:] if program(pid).startswith("sshd")]

    def pause(self) -> None:
        """Freeze the server with all its sessions. The kernel goes on acknowledging: a half-open link."""
        signal_all(self.pids(), signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        signal_all(self.pids(), signal.SIGCONT)

    def kill(self) -> None:
        """Server and connections die at once; detached processes (runs) live on. `start` serves again."""
        process, self._process = self._process, None
        if process is not None:
            signal_all(tree(process.pid), signal.SIGKILL)
            process.wait()
            if process.stderr is not None:
                process.stderr.close()

    def drop_connections(self) -> None:
        """Cut every live connection; the server goes on listening."""
        signal_all(self.sessions(), signal.SIGKILL)

    def stop(self) -> None:
        """Nothing of this host is left running."""
        self.kill()
        while pids := marked(str(self.root)):
            signal_all(pids, signal.SIGKILL)
            time.sleep(0.01)


@dataclass(eq=False)
class Hang:
    """A port that accepts and never says a word."""

    address: str = field(default_factory=next_address)

    def __post_init__(self) -> None:
        self._socket = socket.create_server((self.address, 0), backlog=512)
        self.port = int(self._socket.getsockname()[1])

    def stop(self) -> None:
        self._socket.close()


SshdFactory = Callable[..., Sshd]


@pytest.fixture
def sshd_factory(tmp_path: Path) -> Iterator[SshdFactory]:
    """`sshd_factory(name, **options of Sshd)` starts a server (start=False: only makes it); one client key for all.

    Skips with a reason where OpenSSH is missing; mark the test `sshd`.
    """
    if SSHD is None or shutil.which("ssh-keygen") is None:
        pytest.skip("no OpenSSH server here (Debian, Ubuntu: apt install openssh-server)")
    made: list[Sshd] = []
    client_key = make_key(tmp_path / "client_key")

    def make(name: str = "host", *, start: bool = True, **options: object) -> Sshd:
        options.setdefault("client_key", client_key)
        host = Sshd(tmp_path / "sshd" / f"{len(made):03d}", name, **options)  # type: ignore[arg-type]
        made.append(host)
        return host.start() if start else host

    yield make
    for host in made:
        host.stop()


@pytest.fixture
def hang() -> Iterator[Hang]:
    """A listener that never answers."""
    listener = Hang()
    yield listener
    listener.stop()
