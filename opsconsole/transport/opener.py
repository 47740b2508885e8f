"""Opens SSH sessions: one deadline over all steps, retries of dropped logins, shared jump hosts."""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Sequence

import asyncssh

from opsconsole.transport.address import HostAddress
from opsconsole.transport.errors import TransportError, Unreach
from opsconsole.transport.resolve import CONFIG_FILES, Route, resolve
from opsconsole.transport.session import Session
from opsconsole.transport.ssh import Dialer, Watcher, deadline_error, open_session

DROPPED_TRIES = 12  # within the host's deadline
RESERVED_DESCRIPTORS = 128  # for the database, the screen, agents and key files
JUMP_KEEPALIVE_S = 5.0


def descriptor_budget() -> int:
    """How many connections fit under the limit of open files, which is first raised as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = hard if hard != resource.RLIM_INFINITY else 1 << 20
    return max(limit - RESERVED_DESCRIPTORS, limit // 2)


class JumpHosts:
    """One connection per chain of hops, opened by the first that needs it and shared. A dead one is forgotten."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._open: dict[tuple[object, ...], asyncio.Task[asyncssh.SSHClientConnection]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def reach(self, target: str, hops: tuple[Route, ...]) -> asyncssh.SSHClientConnection | None:
        """The connection to the last hop; None without hops. Raises TransportError (PROXY_FAILED) naming the hop."""
        if not hops:
            return None
        tunnel = await self.reach(target, hops[:-1])
        hop = hops[-1]
        key = tuple((each.host, each.port, each.options.username, each.wanted) for each in hops)
        task = self._open.get(key)
        if task is None:
            task = asyncio.create_task(self._dial(key, hop, tunnel))
            self._open[key] = task
        try:
            return await asyncio.shield(task)
        except TransportError as error:
            raise TransportError(
                target,
                f"reach jump host {hop.address.name}",
                f"{error.what}: {error.kind}: {error.why}",
                Unreach.PROXY_FAILED,
                advice=error.advice,
            ) from None

    async def _dial(
        self, key: tuple[object, ...], hop: Route, tunnel: asyncssh.SSHClientConnection | None
    ) -> asyncssh.SSHClientConnection:
        try:
            conn = await dial_patiently(self._dialer, hop, tunnel, give_up_at(hop))
        except BaseException:
            self._open.pop(key, None)
            raise
        conn.set_keepalive(JUMP_KEEPALIVE_S, 3)
        watch = asyncio.create_task(self._forget_when_closed(key, conn))
        self._closing.add(watch)
        watch.add_done_callback(self._closing.discard)
        return conn

    async def _forget_when_closed(self, key: tuple[object, ...], conn: asyncssh.SSHClientConnection) -> None:
        await conn.wait_closed()
        self._open.pop(key, None)

    def close(self) -> list[asyncio.Task[None]]:
        """Cut all. Returns what ends soon, for the one who wants to wait."""
        for task in self._open.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().abort()
            task.cancel()
        return list(self._closing)


def give_up_at(route: Route) -> float:
    """The loop's time when connecting there has taken too long."""
    return asyncio.get_running_loop().time() + route.address.connect_timeout_s


async def dial_patiently(
    dialer: Dialer, route: Route, tunnel: asyncssh.SSHClientConnection | None, give_up_at: float
) -> asyncssh.SSHClientConnection:
    """A login until `give_up_at` (loop time). Drops by MaxStartups are tried again, soon and at random moments."""
    watcher, last = Watcher(), None
    try:
        async with asyncio.timeout_at(give_up_at):
            for number in range(DROPPED_TRIES):
                watcher = Watcher()
                try:
                    return await dialer.dial(route, tunnel, watcher)
                except TransportError as error:
                    if error.kind != Unreach.DROPPED:
                        raise
                    last = error
                await asyncio.sleep(random.uniform(0.05, min(0.2 * 2**number, 2.0)))
    except TimeoutError:
        raise last or deadline_error(route, watcher) from None
    assert last is not None
    raise last


class SshOpener:
    """Opens sessions by SSH. Routes are resolved once per address, in a thread."""

    def __init__(
        self,
        config_files: Sequence[str] = CONFIG_FILES,
        extra_known_hosts: tuple[str, ...] = (),
        budget: int | None = None,
    ) -> None:
        self.dialer = Dialer()
        self._config_files = config_files
        self._extra = extra_known_hosts
        self._jumps = JumpHosts(self.dialer)
        self._routes: dict[HostAddress, Route] = {}
        self._budget = descriptor_budget() if budget is None else budget
        self._direct = 0

    async def open(self, address: HostAddress, session: Session) -> None:
        """Connect, log in, start the shell. Raises TransportError."""
        route = await self.route(address)
        conn = await self.connect(route, session)
        try:
            await open_session(conn, session)
        except BaseException:
            conn.abort()
            raise

    async def route(self, address: HostAddress) -> Route:
        """The address resolved; forgotten when a connection fails, so that a mended ssh configuration is read."""
        route = self._routes.get(address)
        if route is None:
            route = await asyncio.to_thread(
                resolve, address, config_files=self._config_files, extra_known_hosts=self._extra
            )
            self._routes[address] = route
        return route

    async def connect(self, route: Route, session: Session) -> asyncssh.SSHClientConnection:
        """The connection alone, inside its deadline. It counts against the descriptors until the session ends."""
        if not route.hops:
            self._count(route.address.name, session)
        until = give_up_at(route)
        try:
            tunnel = await self._reach(route, until)
            return await dial_patiently(self.dialer, route, tunnel, until)
        except TransportError:
            self._routes.pop(route.address, None)
            raise

    async def _reach(self, route: Route, until: float) -> asyncssh.SSHClientConnection | None:
        try:
            async with asyncio.timeout_at(until):
                return await self._jumps.reach(route.address.name, route.hops)
        except TimeoutError:
            why = f"not done in {route.address.connect_timeout_s:g} s"
            what = f"reach jump host {route.hops[-1].address.name}"
            raise TransportError(route.address.name, what, why, Unreach.PROXY_FAILED) from None

    def _count(self, name: str, session: Session) -> None:
        if self._direct >= self._budget:
            why = f"this machine allows {self._budget} connections at once"
            raise TransportError(name, "connect", why, Unreach.LOCAL_LIMIT)
        self._direct += 1

        def give_back(_: object) -> None:
            self._direct -= 1

        session.closed.add_done_callback(give_back)

    def close(self) -> list[asyncio.Task[None]]:
        """Cut the jump hosts, let go of the agents."""
        self.dialer.keyring.close()
        return self._jumps.close()
