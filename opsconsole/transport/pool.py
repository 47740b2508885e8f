"""All hosts of an inventory: one link each. asyncssh is imported with the first host that needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opsconsole.errors import UsageError
from opsconsole.transport.address import HostAddress
from opsconsole.transport.bootstrap import Kit
from opsconsole.transport.link import LONGEST_PAUSE_S, Gate, HostEvent, HostLink, LinkContext, LinkStatus, Opener
from opsconsole.transport.local import LocalOpener

if TYPE_CHECKING:
    from opsconsole.transport.opener import SshOpener

CLOSE_S = 1.5


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """`hello` gives the fields of a host's hello (store, epoch, interval_s, …), asked anew at every connection."""

    kit: Kit
    hello: Callable[[str], dict[str, Any]]
    ssh_config: tuple[str, ...] | None = None  # default: ~/.ssh/config and /etc/ssh/ssh_config
    known_hosts: tuple[str, ...] = ()  # read besides those of the ssh configuration
    connecting_at_once: int = 32
    boot_timeout_s: float = 30.0
    longest_pause_s: float = LONGEST_PAUSE_S


class HostPool:
    """`on_event` is called in the loop's thread and must not block. Start, replace and close from within the loop."""

    def __init__(
        self, addresses: Iterable[HostAddress], options: PoolOptions, on_event: Callable[[HostEvent], None]
    ) -> None:
        self._options = options
        self._on_event = on_event
        self._wanted = {address.name: address for address in addresses}
        self._links: dict[str, HostLink] = {}
        self._local = LocalOpener()
        self._ssh: SshOpener | None = None
        self._context: LinkContext | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to connect, all hosts."""
        self._context = LinkContext(
            kit=self._options.kit,
            hello=self._options.hello,
            emit=self._emit,
            gate=Gate(self._options.connecting_at_once),
            boot_timeout_s=self._options.boot_timeout_s,
            longest_pause_s=self._options.longest_pause_s,
        )
        for address in self._wanted.values():
            self._add(address)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._wanted)

    def status(self, host: str) -> LinkStatus:
        return self._link(host).status()

    async def request(self, host: str, op: str, deadline_s: float, **fields: Any) -> dict[str, Any]:
        """The agent's answer, `ok` true or false. Raises TransportError; see its `outcome_unknown`."""
        return await self._link(host).request(op, deadline_s, **fields)

    def reconnect(self, host: str) -> None:
        """Try now instead of after the pause. A live host is left alone."""
        self._link(host).retry_now()

    def replace(self, addresses: Iterable[HostAddress]) -> None:
        """A new inventory: who is gone is cut, who is new or moved is connected, the others are not touched."""
        new = {address.name: address for address in addresses}
        for name, link in list(self._links.items()):
            if new.get(name) != link.address:
                self._leave(self._links.pop(name))
        self._wanted = new
        for name, address in new.items():
            if name not in self._links and self._context is not None:
                self._add(address)

    async def aclose(self) -> None:
        """Cut everything; returns within 2 s whatever hangs."""
        for link in self._links.values():
            self._leave(link)
        if self._ssh is not None:
            self._leaving.update(self._ssh.close())
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=CLOSE_S)

    def _add(self, address: HostAddress) -> None:
        assert self._context is not None
        link = HostLink(address, self._opener(address), self._context)
        self._links[address.name] = link
        link.start()

    def _opener(self, address: HostAddress) -> Opener:
        if address.is_local:
            return self._local
        if self._ssh is None:
            from opsconsole.transport.opener import SshOpener
            from opsconsole.transport.resolve import CONFIG_FILES

            config = self._options.ssh_config
            self._ssh = SshOpener(CONFIG_FILES if config is None else config, self._options.known_hosts)
        return self._ssh

    def _leave(self, link: HostLink) -> None:
        for task in link.close():
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    def _link(self, host: str) -> HostLink:
        link = self._links.get(host)
        if link is None:
            raise UsageError(f"no host {host!r} in the inventory, or the pool has not started")
        return link

    def _emit(self, event: HostEvent) -> None:
        try:
            self._on_event(event)
        except Exception as error:  # the receiver's mistake may not end a link; the loop's handler tells a person
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"receiver of {type(event).__name__} from {event.host} failed", "exception": error}
            )
