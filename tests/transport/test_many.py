"""64 hosts at once, served by asyncssh in this process: nothing is serial that need not be."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from opsconsole.transport.link import Connected, Line
from tests.transport.driving import watching
from tests.transport.fakehosts import FakeHosts

HOSTS = 64


async def test_64_hosts_are_live_within_seconds(tmp_path: Path) -> None:
    async with FakeHosts(tmp_path, HOSTS) as fake:
        began = time.monotonic()
        async with watching(*fake.addresses, known_hosts=(str(fake.known_hosts),)) as watched:
            await watched.until_live(within_s=30.0)
            assert time.monotonic() - began < 10.0
            answers = await asyncio.gather(*(watched.pool.request(h, "list", 10.0) for h in watched.pool.hosts))
            assert all(answer["ok"] for answer in answers)
            await watched.until(lambda: len({line.host for line in watched.of(Line)}) == HOSTS)
            first = {event.host: event for event in reversed(watched.events)}
            assert all(isinstance(event, Connected) for event in first.values()), "a line came before the greeting"
