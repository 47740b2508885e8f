"""The `ssh` command that reaches a host as the pool does: same user, port, keys, jump hosts and known hosts.

Jump hosts become ProxyCommands of our own, for `-J` would give them none of the keys. What else ~/.ssh/config says of a
host (agent, certificates, ProxyCommand, HostKeyAlias) `ssh` reads itself, by the name that is given to it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opsconsole.transport.address import HostAddress
from opsconsole.transport.resolve import Route

HERE = "[%h]:%p"  # where the host behind a hop listens, as the ssh that starts a ProxyCommand knows it


def login(route: Route, config: str | None = None) -> list[str]:
    """`config`: the file that stands for ~/.ssh/config and the system's, where the inventory names one."""
    return [*_ssh(route, config), route.address.address]


def one_config(files: Sequence[str], combined: Path) -> str:
    """`ssh -F` takes one file: the only one, none, or one that includes them all and is written to `combined`."""
    there = [path for path in map(os.path.expanduser, files) if os.access(path, os.R_OK)]
    if len(there) < 2:
        return there[0] if there else "none"
    combined.parent.mkdir(parents=True, exist_ok=True)
    combined.write_text("".join(f'Match all\nInclude "{path}"\n' for path in there))
    return str(combined)


def local_login(address: HostAddress) -> list[str]:
    """A shell on this machine, for a host that is this machine."""
    assert address.is_local
    return [os.environ.get("SHELL") or "/bin/sh", "-l"]


def _ssh(route: Route, config: str | None) -> list[str]:
    words = ["ssh"]
    if config is not None:
        words += ["-F", config]
    if route.address.port is not None:
        words += ["-p", str(route.address.port)]
    if route.address.user is not None:
        words += ["-l", route.address.user]
    for identity in route.wanted.identities:
        words += ["-i", _plain(os.path.expanduser(identity))]
    if route.wanted.only:
        words += ["-o", "IdentitiesOnly=yes"]
    words += ["-o", "UserKnownHostsFile=" + " ".join(map(_quoted, route.known_hosts))]
    if route.hops:
        words += ["-o", "ProxyCommand=" + _proxy(route.hops, config)]
    return words


def _proxy(hops: tuple[Route, ...], config: str | None) -> str:
    """To the last hop through those before it."""
    *before, last = hops
    words = shlex.join(_ssh(replace(last, hops=tuple(before)), config))
    return f"{_plain(words)} -W {HERE} {_plain(shlex.quote(last.address.address))}"


def _plain(text: str) -> str:
    """Where ssh expands %h and the like."""
    return text.replace("%", "%%")


def _quoted(path: str) -> str:
    """As ssh_config reads a list of files."""
    return f'"{path}"' if " " in path else path
