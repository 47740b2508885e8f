"""A pool that a test can watch: events are kept, states can be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from opsconsole.transport.address import HostAddress
from opsconsole.transport.errors import Unreach
from opsconsole.transport.link import Connected, Disconnected, HostEvent, Line, LinkState
from opsconsole.transport.pool import HostPool, PoolOptions
from tests.sshd import Sshd
from tests.transport.standin import standin_kit

KIT = standin_kit()
PATIENCE_S = 45.0


def address_of(host: Sshd, **changes: Any) -> HostAddress:
    """How the console reaches a test host."""
    fields = {
        "name": host.name,
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "identity": (str(host.key),),
    }
    return HostAddress(**{**fields, **changes})


class Watched:
    """A started pool with all it has said."""

    def __init__(self, addresses: list[HostAddress], **options: Any) -> None:
        self.events: list[HostEvent] = []
        interval_s = options.pop("interval_s", 0.3)
        store = options.pop("store", "s1")
        options.setdefault("kit", KIT)
        options.setdefault("ssh_config", ())
        options.setdefault("longest_pause_s", 0.5)
        hello = {"store": store, "epoch": 1, "interval_s": interval_s, "system_processes": [], "free_memory_mib": 500}
        self.pool = HostPool(addresses, PoolOptions(hello=lambda _: dict(hello), **options), self.events.append)
        self.pool.start()

    async def until(self, true: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
        """Waits for a fact; fails with the states when it does not come."""
        try:
            async with asyncio.timeout(within_s):
                while not true():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            states = {host: self.pool.status(host) for host in self.pool.hosts}
            raise AssertionError(f"it did not come true: {states}") from None

    async def until_live(self, *hosts: str, within_s: float = PATIENCE_S) -> None:
        names = hosts or self.pool.hosts
        await self.until(lambda: all(self.pool.status(h).state == LinkState.LIVE for h in names), within_s)

    async def until_lost(self, host: str, kind: Unreach, within_s: float = PATIENCE_S) -> str:
        """The sentences a person reads then."""
        await self.until(lambda: self.pool.status(host).kind == kind, within_s)
        status = self.pool.status(host)
        return f"{status.why} | {status.advice}"

    def of(self, kind: type[Connected] | type[Disconnected] | type[Line], host: str | None = None) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind) and host in (None, e.host)]


@asynccontextmanager
async def watching(*addresses: HostAddress, known: list[Sshd] | None = None, **options: Any) -> AsyncIterator[Watched]:
    """A pool over `addresses` that trusts the host keys of `known`; closed at the end, in time."""
    options.setdefault("known_hosts", tuple(str(host.known_hosts) for host in known or []))
    watched = Watched(list(addresses), **options)
    try:
        yield watched
    finally:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await watched.pool.aclose()
        assert loop.time() - began < 2.0
