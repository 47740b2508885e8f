"""One SSH connection: dial, verify, log in, open the one session. asyncssh stays behind this module.

Every failure leaves as a TransportError that names the step, and the hop where there are hops.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import asyncssh

from opsconsole.transport.bootstrap import EXEC_COMMAND
from opsconsole.transport.errors import TransportError, Unreach, plain
from opsconsole.transport.hostkeys import KnownHosts, KnownHostsStore, Trust, fingerprint
from opsconsole.transport.identity import Keyring, Offer
from opsconsole.transport.resolve import Route
from opsconsole.transport.session import Session

HASHED_ON_LOOP = 200


class Watcher(asyncssh.SSHClient):
    """Notes how far a connection came, and the host key that was not trusted."""

    def __init__(self) -> None:
        self.step = "connect"
        self.offered: str | None = None
        self.banner = ""

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.step = "wait for the SSH greeting and the host key"

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.offered = " ".join(key.export_public_key().decode().split()[:2])
        return False

    def begin_auth(self, username: str) -> None:
        self.step = f"log in as {username}"

    def auth_completed(self) -> None:
        self.step = "open a session"

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner = plain(msg)


@dataclass(slots=True)
class Dialer:
    """What all connections share: the keyring and the known hosts."""

    keyring: Keyring = field(default_factory=Keyring)
    hosts: KnownHostsStore = field(default_factory=KnownHostsStore)

    async def dial(
        self, route: Route, tunnel: asyncssh.SSHClientConnection | None, watcher: Watcher | None = None
    ) -> asyncssh.SSHClientConnection:
        """A connection, logged in. The caller sets the deadline. Raises TransportError."""
        watcher = watcher or Watcher()
        index = await self.hosts.index(route.known_hosts)
        offer = await self.keyring.offer(route.wanted)
        trust = await _trust(index, route)
        try:
            return await asyncssh.connect(
                host=route.address.address,
                config=None,
                options=route.options,
                tunnel=tunnel,
                client_factory=lambda: watcher,
                client_keys=offer.keys or None,
                agent_path=None,
                known_hosts=trusted_keys(index),
                server_host_key_algs=trust.algorithms(),
            )
        except (OSError, asyncssh.Error, ValueError) as error:
            raise explain(error, route, watcher, trust, offer) from None


async def _trust(index: KnownHosts, route: Route) -> Trust:
    """What is known of the host. Many hashed names cost milliseconds: not on the loop."""
    if len(index.hashed) > HASHED_ON_LOOP:
        return await asyncio.to_thread(index.trust, route.alias, route.port)
    return index.trust(route.alias, route.port)


def trusted_keys(index: KnownHosts) -> Callable[[str, str, int | None], Any]:
    """What asyncssh asks during the handshake. The address it resolved to does not count, as with OpenSSH."""

    def look_up(host: str, addr: str, port: int | None) -> Any:
        found = index.trust(host, port or 22)
        return _usable(found.keys()), _usable(found.keys("cert-authority")), _usable(found.keys("revoked"))

    return look_up


def _usable(keys: list[str]) -> list[asyncssh.SSHKey]:
    """Those that asyncssh can read: an entry of an unknown type is trusted for nothing."""
    found = []
    for key in keys:
        try:
            found.append(asyncssh.import_public_key(key))
        except asyncssh.KeyImportError:
            continue
    return found


def explain(error: Exception, route: Route, watcher: Watcher, trust: Trust, offer: Offer) -> TransportError:
    """The exception of a failed connection as a sentence. Never an authentication failure unless the server said so."""
    name, step = route.address.name, watcher.step + route.through
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _host_key_error(name, error, route, watcher, trust)
    if isinstance(error, asyncssh.PermissionDenied) or _too_many_keys(error):
        return _auth_error(name, step, error, route, watcher, offer)
    if isinstance(error, asyncssh.ChannelOpenError):
        return _tunnel_error(name, step, error, route)
    if isinstance(error, socket.gaierror):
        return TransportError(name, step, f"{route.host}: {error.strerror}", Unreach.DNS)
    if isinstance(error, ConnectionRefusedError):
        return TransportError(name, step, f"{route.host} port {route.port}", Unreach.REFUSED)
    if route.options.proxy_command and watcher.step.startswith("wait"):
        command = plain(" ".join(route.options.proxy_command))
        return TransportError(name, step, f"ProxyCommand {command}: {plain(str(error))}", Unreach.PROXY_FAILED)
    if isinstance(error, asyncssh.ConnectionLost | ConnectionError):
        dropped = Unreach.DROPPED if watcher.step.startswith("wait") else Unreach.CLOSED
        return TransportError(name, step, plain(str(error)) or "the connection was dropped", dropped)
    if isinstance(error, OSError):
        return _os_error(name, step, error)
    return TransportError(name, step, plain(str(error)), Unreach.PROTOCOL)


def _os_error(name: str, step: str, error: OSError) -> TransportError:
    kind = Unreach.NO_ROUTE
    if f"[Errno {errno.ECONNREFUSED}]" in str(error):  # asyncio's sum over several addresses of one name
        kind = Unreach.REFUSED
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        kind = Unreach.LOCAL_LIMIT
    elif error.errno == errno.ETIMEDOUT or isinstance(error, TimeoutError):
        kind = Unreach.TIMED_OUT
    return TransportError(name, step, plain(error.strerror or str(error)), kind)


def _too_many_keys(error: Exception) -> bool:
    return isinstance(error, asyncssh.DisconnectError) and "too many authentication" in str(error).lower()


def _auth_error(name: str, step: str, error: Exception, route: Route, watcher: Watcher, offer: Offer) -> TransportError:
    tried = f"{len(offer.keys)} key{'s' if len(offer.keys) != 1 else ''} offered"
    why = "; ".join([plain(str(error)), tried, *offer.problems, *([watcher.banner] if watcher.banner else [])])
    advice = f"Log in by hand with: {_login(route, '-v')}; check user: and identity: in the inventory."
    if _too_many_keys(error):
        advice = "Set identity: for this host in the inventory, so that only that key is offered."
    elif offer.problems:
        problem = offer.problems[-1]
        advice = problem[0].upper() + problem[1:] + "."
    return TransportError(name, step, plain(why, 500), Unreach.AUTH_FAILED, advice=advice)


def _tunnel_error(name: str, step: str, error: asyncssh.ChannelOpenError, route: Route) -> TransportError:
    """The last hop could not reach the next: its reason is about the target, except where it forbids forwarding."""
    why = plain(error.reason)
    if "refused" in why.lower():
        return TransportError(name, step, f"{route.host} port {route.port}: {why}", Unreach.REFUSED)
    if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
        return TransportError(
            name, step, why, Unreach.PROXY_FAILED, advice="Allow TCP forwarding on the jump host (AllowTcpForwarding)."
        )
    kind = Unreach.TIMED_OUT if "timed out" in why.lower() else Unreach.NO_ROUTE
    return TransportError(name, step, why, Unreach.DNS if "resolve" in why.lower() else kind)


def _login(route: Route, *options: str) -> str:
    """What a person types to do the same."""
    jump = ("-J", ",".join(hop.address.spoken for hop in route.hops)) if route.hops else ()
    return " ".join(("ssh", *options, *jump, route.address.spoken))


def _host_key_error(name: str, error: Exception, route: Route, watcher: Watcher, trust: Trust) -> TransportError:
    what = "verify the host key" + route.through
    port = f"-p {route.port} " if route.port != 22 else ""
    if watcher.offered is None:
        return TransportError(name, what, plain(str(error)), Unreach.HOST_KEY_CHANGED)
    offered = f"it shows {watcher.offered.split()[0]} {fingerprint(watcher.offered)}"
    if trust.known:
        old = trust.known[0]
        alias = route.alias if route.port == 22 else f"[{route.alias}]:{route.port}"
        return TransportError(
            name,
            what,
            f"{offered}, but {old.where} expects {old.key.split()[0]} {old.fingerprint}",
            Unreach.HOST_KEY_CHANGED,
            advice=f"If the host was reinstalled: ssh-keygen -f {old.where.rsplit(':', 1)[0]} -R '{alias}', "
            f"then compare the new fingerprint by another way.",
        )
    scan = f"ssh-keyscan {port}{route.host}"
    looked = [path if os.path.exists(os.path.expanduser(path)) else f"{path} (not there)" for path in route.known_hosts]
    return TransportError(
        name,
        what,
        f"{offered}, and {route.alias} is in none of {', '.join(looked)}",
        Unreach.HOST_KEY_UNKNOWN,
        advice=f"Compare the fingerprint while logging in once with: {_login(route)}"
        + (f"  (or add the line of: {scan})" if not route.hops else ""),
    )


class SshChannel(asyncssh.SSHClientSession[bytes]):
    """The one session of a connection, as bytes for a Session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._chan: asyncssh.SSHClientChannel[bytes] | None = None
        self._conn: asyncssh.SSHClientConnection | None = None

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._chan = chan
        self._conn = chan.get_connection()  # type: ignore[assignment]
        self._session.attach(self)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is None:
            self._session.feed(data)
        else:
            self._session.feed_stderr(data)

    def exit_status_received(self, status: int) -> None:
        self._session.exited(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self._session.lost(plain(str(exc)) if exc else "")

    def write(self, data: bytes) -> None:
        if self._chan is not None and not self._chan.is_closing():
            self._chan.write(data)

    def abort(self) -> None:
        """End the whole connection: polite words first, without waiting for an answer."""
        if self._conn is not None:
            self._conn.close()
            self._conn.abort()


async def open_session(conn: asyncssh.SSHClientConnection, session: Session) -> None:
    """Start /bin/sh on the connection's only session. Raises TransportError."""
    try:
        await conn.create_session(lambda: SshChannel(session), EXEC_COMMAND, encoding=None, request_pty=False)
        conn.set_keepalive(0)  # the session watches itself, and a timer set anew with every packet costs a fortieth
    except asyncssh.ChannelOpenError as error:
        raise TransportError(
            session.host,
            "open a session",
            plain(error.reason),
            Unreach.NO_SHELL,
            advice="Set MaxSessions to 1 or more in the host's sshd_config.",
        ) from None
    except (OSError, asyncssh.Error) as error:
        raise TransportError(session.host, "open a session", plain(str(error)), Unreach.CLOSED) from None


def deadline_error(route: Route, watcher: Watcher) -> TransportError:
    """The connection's deadline passed: says in which step."""
    seconds = f"{route.address.connect_timeout_s:g} s"
    return TransportError(route.address.name, watcher.step + route.through, f"not done in {seconds}", Unreach.TIMED_OUT)
