"""Hosts that replay recorded probe lines: an SSH server each, with its own address, port and host key on loopback.

`python -m benchmarks.ssh.servers ROOT COUNT` writes ROOT/inventory.yaml with all that a client needs, prints a line
when every server listens, and serves until its stdin ends. A process of its own, so that its CPU is not the client's.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh

from benchmarks.ssh.record import recorded

UPTIME = re.compile(rb'"uptime_s":[0-9.]+')
BOOT_END = b"\nboot; exit\n"
HELLO = {"boot_id": "boot1", "hostkit": "replay", "runs": []}
RECORDED_GPU = b'"GPU-00000001-'  # how UUIDs of the recorded host begin


class Replay(asyncssh.SSHServerSession[bytes]):
    """One agent's session: BOOT for the boot script, an answer for every request, a recorded line per interval."""

    def __init__(self, lines: list[bytes], gpu: bytes) -> None:
        self._lines, self._gpu = lines, gpu
        self._next = random.randrange(len(lines))
        self._data = b""
        self._booted = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._chan = chan

    def exec_requested(self, command: str) -> bool:
        return command == "exec /bin/sh"

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._data += data
        if not self._booted and self._data.endswith(BOOT_END):
            self._boot()
        elif self._booted:
            *lines, self._data = self._data.split(b"\n")
            for line in lines:
                self._answer(json.loads(line))

    def _boot(self) -> None:
        nonce = re.search(rb"nonce=(\w+)", self._data)
        assert nonce is not None
        self._booted, self._data = True, b""
        boot = {"nonce": nonce[1].decode(), "home": "/", "uname": "Linux", "python": "/usr/bin/python3", "have": True}
        self._chan.write(b"\nOPSCONSOLE-BOOT " + json.dumps(boot).encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> None:
        self._chan.write(json.dumps({"re": request["id"], "ok": True, **HELLO}).encode() + b"\n")
        if request["op"] == "hello":
            self._probe(float(request["interval_s"]))

    def _probe(self, interval_s: float) -> None:
        if self._chan.is_closing():
            return
        uptime = b'"uptime_s":%.3f' % time.monotonic()  # a line with an old stamp would be taken for a late one
        line = self._lines[self._next].replace(RECORDED_GPU, self._gpu)
        self._chan.write(UPTIME.sub(uptime, line, count=1))
        self._next = (self._next + 1) % len(self._lines)
        self._timer = asyncio.get_running_loop().call_later(interval_s, self._probe, interval_s)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Server(asyncssh.SSHServer):
    """`gpu`: how the UUIDs of this host begin."""

    def __init__(self, lines: list[bytes], gpu: bytes) -> None:
        self._lines, self._gpu = lines, gpu

    def session_requested(self) -> Replay:
        return Replay(self._lines, self._gpu)


async def listen(root: Path, count: int) -> list[tuple[str, int, str]]:
    """Address, port and public host key of each server; user_key and user_key.pub are what they let in."""
    user, lines = asyncssh.generate_private_key("ssh-ed25519"), recorded()
    user.write_private_key(str(root / "user_key"))
    user.write_public_key(str(root / "user_key.pub"))
    found = []
    for number in range(count):
        address = f"127.1.{number // 250}.{number % 250 + 1}"
        key = asyncssh.generate_private_key("ssh-ed25519")
        server = await asyncssh.listen(
            address,
            0,
            server_factory=partial(Server, lines, b'"GPU-%08x-' % (number + 1)),
            server_host_keys=[key],
            authorized_client_keys=str(root / "user_key.pub"),
            encoding=None,
        )
        found.append((address, server.get_port(), key.export_public_key().decode().strip()))
    return found


def write_inventory(root: Path, hosts: list[tuple[str, int, str]]) -> None:
    """What somebody would write for these hosts, and nothing else: every setting is the default."""
    known = "".join(f"[{address}]:{port} {key}\n" for address, port, key in hosts)
    (root / "known_hosts").write_text(known)
    rows = "\n".join(
        f"  - {{name: gpu{number:04}, address: {address}, port: {port}, gpus: 8}}"
        for number, (address, port, _) in enumerate(hosts)
    )
    ssh = f"{{user: bench, identity: {root}/user_key, known_hosts: {root}/known_hosts}}"
    text = f"hosts:\n{rows}\nssh: {ssh}\nstate_dir: {root}/state\nbudgets:\n  - {{name: research}}\n"
    (root / "inventory.yaml").write_text(text)


async def main(root: Path, count: int) -> None:
    hosts = await listen(root, count)
    write_inventory(root, hosts)
    print("ready", flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
