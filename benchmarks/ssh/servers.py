"""Hosts that replay recorded probe lines: an SSH server each, with its own address, port and host key on loopback.

`python -m benchmarks.ssh.servers ROOT COUNT` writes ROOT/inventory.yaml with all that a client needs, prints a line
when every server listens, and serves until its stdin ends. A line `drop` there cuts every connection. A process of its
own, so that its CPU is not the client's.
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

import asyncssh

from benchmarks.ssh.record import recorded
from tests.transport.fakehosts import FakeHost, FakeServer

UPTIME = re.compile(rb'"uptime_s":[0-9.]+')
RECORDED_GPU = b'"GPU-00000001-'  # how UUIDs of the recorded host begin
BUDGETS = 20
Live = set[asyncssh.SSHServerConnection]


class Replay(FakeHost):
    """A recorded line per interval, with GPUs of its own; `number` of the host, from 1."""

    def __init__(self, lines: list[bytes], number: int) -> None:
        super().__init__(json.loads(lines[0])["probe"]["boot_id"])
        self._lines, self._gpu = lines, b'"GPU-%08x-' % number
        self._next = random.randrange(len(lines))

    def probe(self) -> bytes:
        uptime = b'"uptime_s":%.3f' % time.monotonic()  # a line with an old stamp would be taken for a late one
        line = self._lines[self._next].replace(RECORDED_GPU, self._gpu)
        self._next = (self._next + 1) % len(self._lines)
        return UPTIME.sub(uptime, line, count=1)


async def listen(root: Path, count: int, live: Live) -> list[tuple[str, int, str]]:
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
            server_factory=partial(FakeServer, Replay(lines, number + 1), live),
            server_host_keys=[key],
            authorized_client_keys=str(root / "user_key.pub"),
            encoding=None,
        )
        found.append((address, server.get_port(), key.export_public_key().decode().strip()))
    return found


def write_inventory(root: Path, hosts: list[tuple[str, int, str]]) -> None:
    """What somebody would write for these hosts, and no setting but that nobody leads after a console that leaves."""
    known = "".join(f"[{address}]:{port} {key}\n" for address, port, key in hosts)
    (root / "known_hosts").write_text(known)
    rows = "\n".join(
        f"  - {{name: gpu{number:04}, address: {address}, port: {port}, gpus: 8}}"
        for number, (address, port, _) in enumerate(hosts)
    )
    ssh = f"{{user: bench, identity: {root}/user_key, known_hosts: {root}/known_hosts}}"
    budgets = "\n".join(f"  - {{name: team{number:02}, weight: {number % 5 + 1}}}" for number in range(BUDGETS))
    text = f"hosts:\n{rows}\nssh: {ssh}\nstate_dir: {root}/state\non_quit: stop\nbudgets:\n{budgets}\n"
    (root / "inventory.yaml").write_text(text)


async def main(root: Path, count: int) -> None:
    live: Live = set()
    write_inventory(root, await listen(root, count, live))
    print("ready", flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line == b"drop\n":
            for connection in list(live):
                connection.abort()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
