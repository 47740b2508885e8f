"""A host address together with ~/.ssh/config: where to connect, as whom, by which hops, with which keys and trust.

Decides by asyncssh's reading of the configuration (Host, Match, Include, HostName, Port, User, IdentityFile,
IdentitiesOnly, CertificateFile, IdentityAgent, HostKeyAlias, UserKnownHostsFile, ProxyJump, ProxyCommand). What the
inventory says wins. It ignores StrictHostKeyChecking, agent and X11 forwarding, SendEnv, SetEnv and RemoteCommand:
host keys are always verified and nothing of the operator's environment travels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh

from opsconsole.transport.address import HostAddress, parse_jump
from opsconsole.transport.errors import TransportError, Unreach, plain
from opsconsole.transport.hostkeys import DEFAULT_FILES
from opsconsole.transport.identity import Wanted

CONFIG_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes128-ctr",
)
KEEPALIVE_S = 15.0
KEEPALIVE_COUNT = 3


@dataclass(frozen=True, slots=True)
class Route:
    """One host, resolved. `hops` come first to last; `options` hold all but keys and trust."""

    address: HostAddress
    host: str
    port: int
    alias: str  # the name its key is known by
    wanted: Wanted
    known_hosts: tuple[str, ...]
    hops: tuple[Route, ...]
    options: asyncssh.SSHClientConnectionOptions

    @property
    def through(self) -> str:
        """For messages: how it is reached."""
        return "".join(f" through {hop.address.name}" for hop in self.hops)


def read_options(address: HostAddress, config_files: Sequence[str]) -> asyncssh.SSHClientConnectionOptions:
    """The options that need no key. Raises TransportError (kind CONFIG) with the file and line."""
    paths = [str(path) for path in (Path(name).expanduser() for name in config_files) if os.access(path, os.R_OK)]
    given: dict[str, Any] = {}
    if address.port is not None:
        given["port"] = address.port
    if address.user is not None:
        given["username"] = address.user
    try:
        return asyncssh.SSHClientConnectionOptions(
            config=paths or None,
            host=address.address,
            client_keys=None,
            agent_path=None,
            known_hosts=b"",
            preferred_auth="publickey",
            gss_kex=False,
            gss_auth=False,
            encryption_algs=CIPHERS,
            compression_algs=None,
            agent_forwarding=False,
            x11_forwarding=False,
            connect_timeout=None,
            login_timeout=0,
            keepalive_interval=KEEPALIVE_S,
            keepalive_count_max=KEEPALIVE_COUNT,
            env=None,
            send_env=None,
            request_pty=False,
            command=None,
            encoding=None,
            x509_trusted_certs=None,
            **given,
        )
    except (ValueError, OSError) as error:
        raise TransportError(address.name, "read the ssh configuration", plain(str(error)), Unreach.CONFIG) from None


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()


def _wanted(address: HostAddress, config: Any, fallback: tuple[str, ...]) -> Wanted:
    configured = _strings(config.get("IdentityFile"))
    agent = config.get("IdentityAgent", "SSH_AUTH_SOCK")
    if agent == "SSH_AUTH_SOCK":
        agent = os.environ.get("SSH_AUTH_SOCK")
    return Wanted(
        identities=address.identity or configured or fallback,
        certificates=_strings(config.get("CertificateFile")),
        agent_path=os.path.expanduser(str(agent)) if agent else None,
        only=bool(address.identity or fallback or config.get("IdentitiesOnly")),
    )


def _known_hosts(config: Any, extra: tuple[str, ...]) -> tuple[str, ...]:
    user = config.get("UserKnownHostsFile")
    system = config.get("GlobalKnownHostsFile")
    return (
        *extra,
        *(DEFAULT_FILES[:2] if user is None else _strings(user)),
        *(DEFAULT_FILES[2:] if system is None else _strings(system)),
    )


def resolve(
    address: HostAddress,
    *,
    config_files: Sequence[str] = CONFIG_FILES,
    extra_known_hosts: tuple[str, ...] = (),
    fallback_identity: tuple[str, ...] = (),
) -> Route:
    """Blocking (reads files): call it off the loop. Raises TransportError or UsageError. Follows nested ProxyJump."""
    return _resolve(address, config_files, extra_known_hosts, fallback_identity, depth=0)


def _resolve(
    address: HostAddress, config_files: Sequence[str], extra: tuple[str, ...], fallback: tuple[str, ...], depth: int
) -> Route:
    if depth > 8:
        raise TransportError(address.name, "read the ssh configuration", "ProxyJump runs in a circle", Unreach.CONFIG)
    options = read_options(address, config_files)
    config: Any = options.config
    jumps = address.jump or tuple(word for word in str(config.get("ProxyJump") or "").split(",") if word)
    hops: list[Route] = []
    for number, text in enumerate(jumps):
        hop = parse_jump(text, address)
        route = _resolve(hop, config_files, extra, address.identity or fallback, depth + 1)
        hops += (*route.hops, replace(route, hops=())) if number == 0 else (replace(route, hops=()),)
    return Route(
        address=address,
        host=str(config.get("Hostname", address.address)),
        port=int(options.port),
        alias=str(options.host_key_alias or config.get("Hostname", address.address)),
        wanted=_wanted(address, config, fallback),
        known_hosts=_known_hosts(config, extra),
        hops=tuple(hops),
        options=options,
    )
