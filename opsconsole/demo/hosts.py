"""The demo's hosts, as one child process: an SSH server per host on loopback, each with its own key and state
directory.

`python -m opsconsole.demo.hosts ROOT NAME…` prints one JSON line `{"ports": {name: port}}` and serves until its
stdin ends.
Then it kills whatever any host still runs and removes ROOT, so that nothing is left behind however the demo ended.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import sys
import termios
from pathlib import Path

import asyncssh

MARK = "OPSCONSOLE_DEMO"  # in the environment of all that the demo's hosts start


class DemoServer(asyncssh.SSHServer):
    """Lets in whoever holds the demo's client key."""

    def begin_auth(self, username: str) -> bool:
        return True


def host_environment(root: Path, name: str) -> dict[str, str]:
    """What a login on this host sees: its own home, state directory and GPUs."""
    home = root / "hosts" / name
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "OPSCONSOLE_STATE_DIR": str(home / "state"),
        "OPSCONSOLE_FAKE_NVML": str(home / "gpus.json"),
        "OPSCONSOLE_BOOT_ID_FILE": str(home / "boot_id"),
        MARK: str(root),
    }


async def run_command(process: asyncssh.SSHServerProcess[bytes], environment: dict[str, str]) -> None:
    """One exec request: the command in a shell, its pipes joined to the session's."""
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command or "exit 0",
        env=environment,
        cwd=environment["HOME"],
        start_new_session=True,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
    process.exit(await child.wait())


async def run_shell(process: asyncssh.SSHServerProcess[bytes], environment: dict[str, str]) -> None:
    """A login: a shell on a terminal of its own, of the size that it has when it begins."""
    ours, theirs = os.openpty()
    columns, rows, *_ = process.term_size
    termios.tcsetwinsize(theirs, (rows, columns))
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-i",
        env={**environment, "TERM": process.term_type or "dumb", "PS1": f"{Path(environment['HOME']).name}$ "},
        cwd=environment["HOME"],
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    await process.redirect(stdin=os.dup(ours), stdout=ours)
    process.exit(await child.wait())


async def serve(root: Path, names: list[str]) -> dict[str, asyncssh.SSHAcceptor]:
    """One server per host, on a free port of loopback."""
    servers = {}
    for name in names:
        environment = host_environment(root, name)

        async def handle(process: asyncssh.SSHServerProcess[bytes], environment: dict[str, str] = environment) -> None:
            login = process.command is None and process.term_type is not None
            await (run_shell if login else run_command)(process, environment)

        servers[name] = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=DemoServer,
            server_host_keys=[str(root / "hosts" / name / "host_key")],
            authorized_client_keys=str(root / "client_key.pub"),
            process_factory=handle,
            encoding=None,
            line_editor=False,
        )
    return servers


def marked_processes(mark: str) -> list[int]:
    """Every process that carries this in its environment, `NAME=value`; this one excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # gone already, or not ours
        if mark.encode() in environment.split(b"\0"):
            found.append(int(entry.name))
    return found


def kill_all(mark: str) -> None:
    """Until none is left that carries the mark."""
    while pids := marked_processes(mark):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def sweep(root: Path) -> None:
    """Kill what the hosts still run, then remove their files."""
    kill_all(f"{MARK}={root}")
    shutil.rmtree(root, ignore_errors=True)


async def main(root: Path, names: list[str]) -> None:
    servers = await serve(root, names)
    print(json.dumps({"ports": {name: server.get_port() for name, server in servers.items()}}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()  # ends with the demo, whatever ended it
    for server in servers.values():
        server.close()
    sweep(root)
    os._exit(0)  # the children's transports have nothing left to say


if __name__ == "__main__":
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)  # the end of stdin is the only way out, so that the sweep always runs
    try:
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
    finally:  # it did not even start
        sweep(Path(sys.argv[1]))
