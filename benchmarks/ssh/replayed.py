"""256 SSH servers on loopback replay recorded probe lines of 8 GPUs; the client is a leader with default settings.

Goals: all connected and read in 3 s, then 5 % of one core. A bare asyncssh client goes first, against the same servers:
it connects, logs in and opens a session, nothing else. It shows what servers and library allow on this machine now.

python -m benchmarks.ssh.replayed [HOSTS]
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from benchmarks.figures import say
from benchmarks.ssh.leading import Spent, lead, memory_mb, place_of
from opsconsole.cli.wiring import Place

HOSTS = 256
STREAM_S = 30.0


@contextmanager
def servers(root: Path, count: int) -> Iterator[Path]:
    """The replaying servers, in a process of their own; gives the inventory."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.ssh.servers", str(root), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        if child.stdout.readline() != b"ready\n":
            raise SystemExit("the servers did not start")
        yield root / "inventory.yaml"
    finally:
        child.stdin.close()
        child.wait()


async def bare(place: Place) -> Spent:
    """A session on every host, as many at once as the product opens; host keys are verified."""
    addresses, began = place.addresses(), Spent.now()
    gate = asyncio.Semaphore(place.inventory.ssh.connecting)
    options = asyncssh.SSHClientConnectionOptions(
        config=None,
        username="bench",
        client_keys=[asyncssh.read_private_key(addresses[0].identity[0])],
        agent_path=None,
        known_hosts=asyncssh.read_known_hosts(list(place.inventory.ssh.known_hosts)),
    )

    async def one(host: str, port: int) -> asyncssh.SSHClientConnection:
        async with gate:
            connection = await asyncssh.connect(host, port, options=options)
            await connection.create_session(asyncssh.SSHClientSession, "exec /bin/sh", encoding=None)
            return connection

    made = await asyncio.gather(*(one(a.address, a.port or 22) for a in addresses))
    spent = Spent.since(began)
    for connection in made:
        connection.abort()
    return spent


def main(hosts: int) -> None:
    with tempfile.TemporaryDirectory() as made, servers(Path(made), hosts) as inventory:
        place, before = place_of(inventory), memory_mb()
        floor = asyncio.run(bare(place))
        connected, streaming = asyncio.run(lead(place, STREAM_S))
    say(f"{hosts} hosts, bare asyncssh client: sessions open", floor.wall_s, "s", more=each(floor, hosts))
    say(f"{hosts} hosts, leader: connected and read", connected.wall_s, "s", 3, each(connected, hosts))
    say(f"{hosts} hosts, leader: streaming for {STREAM_S:g} s", streaming.percent, "% of a core", 5)
    say(f"{hosts} hosts, leader: memory", memory_mb(), "MB", more=f"{before:.0f} MB before the first connection")


def each(spent: Spent, hosts: int) -> str:
    return f"{1000 * spent.cpu_s / hosts:.1f} ms of this process's CPU each"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS)
