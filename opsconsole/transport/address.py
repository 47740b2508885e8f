"""Who a host is to SSH: what the inventory says about reaching it. What ~/.ssh/config adds is decided in `resolve`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opsconsole.errors import UsageError

LOCAL = "local"
_ADDRESS = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@\\-]*\$?")
_JUMP = re.compile(r"(?:(?P<user>.+)@)?(?:\[(?P<literal>[^\]]+)\]|(?P<host>[^:@\[\]]+))(?::(?P<port>\d+))?")


@dataclass(frozen=True, slots=True)
class HostAddress:
    """`address` is what one would type after `ssh`: a name, an alias of ~/.ssh/config, an IP address, or "local".

    None and () mean: as ~/.ssh/config says. `connect_timeout_s` covers resolving, all hops, handshake and login.
    """

    name: str
    address: str
    port: int | None = None
    user: str | None = None
    identity: tuple[str, ...] = ()
    jump: tuple[str, ...] = ()
    connect_timeout_s: float = 10.0
    python: str | None = None  # the interpreter there, when it is not on PATH
    state_dir: str | None = None  # default: OPSCONSOLE_STATE_DIR there, else /var/tmp/opsconsole-UID

    def __post_init__(self) -> None:
        if not _ADDRESS.fullmatch(self.address):
            raise UsageError(f"host {self.name!r}: {self.address!r} is no address")
        if self.user is not None and not _USER.fullmatch(self.user):
            raise UsageError(f"host {self.name!r}: {self.user!r} is no user name")
        if self.port is not None and not 0 < self.port < 65536:
            raise UsageError(f"host {self.name!r}: port {self.port} is not between 1 and 65535")

    @property
    def is_local(self) -> bool:
        return self.address == LOCAL

    @property
    def spoken(self) -> str:
        """As an ssh command names it, for messages."""
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.address}" + (f" -p {self.port}" if self.port else "")


def parse_jump(text: str, target: HostAddress) -> HostAddress:
    """One hop of a ProxyJump list, `[user@]host[:port]` or `ssh://…`; its keys and trust go by its own name."""
    found = _JUMP.fullmatch(text.removeprefix("ssh://").strip())
    if found is None:
        raise UsageError(f"host {target.name!r}: {text!r} is no jump host: write [user@]host[:port]")
    port = found["port"]
    host = found["literal"] or found["host"]
    return HostAddress(
        host, host, int(port) if port else None, found["user"], connect_timeout_s=target.connect_timeout_s
    )
