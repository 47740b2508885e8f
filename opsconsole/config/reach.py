"""How hosts are reached, as the inventory says it: addresses, users, ports, jump hosts, keys. Resolves nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from yaml.nodes import Node, SequenceNode

from opsconsole.config.ranges import expand
from opsconsole.config.scalars import parse_text, shown
from opsconsole.config.yamlio import Source

SSH_FIELDS = (
    "user",
    "port",
    "identity",
    "jump",
    "known_hosts",
    "config",
    "connect_timeout",
    "connecting",
    "probe_interval",
)
KEY_ELSEWHERE = "check the path; an agent may hold the key"
_ADDRESS = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]{0,252}")
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@\\-]{0,99}\$?")
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:@\[\]]+))(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class SshSettings:
    """Defaults of all hosts. None and (): as ~/.ssh/config says."""

    user: str | None = None
    port: int | None = None
    identity: tuple[str, ...] = ()
    jump: tuple[str, ...] = ()
    known_hosts: tuple[str, ...] = ()
    config: tuple[str, ...] | None = None
    connect_timeout_ms: int = 10_000
    connecting: int = 32
    probe_interval_ms: int = 2_000


@dataclass(frozen=True, slots=True)
class Folder:
    """Where relative paths of a file begin: its own directory, wherever the console is started."""

    source: Source
    base: Path

    def paths(self, node: Node | None, field: str) -> tuple[str, ...]:
        """Absolute paths; `~` is the home directory."""
        return words(self.source, node, field, self._path)

    def path(self, node: Node | None, field: str) -> Path | None:
        found = self.source.parsed(node, field, self._path)
        return None if found is None else Path(found)

    def files(self, node: Node | None, field: str, fix: str = "check the path") -> tuple[str, ...]:
        """A missing one is a warning: it may be there when the console runs."""
        found = self.paths(node, field)
        for path in found:
            if not Path(path).is_file():
                self.source.warn(node, field, f"there is no file {path}", fix)
        return found

    def command(self, node: Node | None, field: str) -> tuple[str, ...]:
        """A program with its arguments; one with a slash is a path. A missing one is a warning, as for keys."""
        found = words(self.source, node, field)
        if not found:
            return ()
        program = self._path(found[0]) if "/" in found[0] else found[0]
        if shutil.which(program) is None:
            fix = "check the path and its permissions"
            self.source.warn(node, field, f"there is no program {program}", fix)
        return (program, *found[1:])

    def _path(self, text: str) -> str:
        text = parse_text(text)
        if not text:
            raise ValueError("is empty; write a path")
        try:
            return str(self.base / Path(text).expanduser())
        except RuntimeError:
            raise ValueError(f"{shown(text)} names a home directory that is not known; write the whole path") from None


def words(source: Source, node: Node | None, field: str, parse: Callable[[str], str] = parse_text) -> tuple[str, ...]:
    """One word, or a list of them."""
    if node is None:
        return ()
    nodes = source.sequence(node, field) if isinstance(node, SequenceNode) else [node]
    found = [source.parsed(n, field, parse) for n in nodes]
    return tuple(word for word in found if word is not None)


def read_ssh(folder: Folder, node: Node | None) -> SshSettings:
    source, default = folder.source, SshSettings()
    entries = source.mapping(node, "ssh", SSH_FIELDS)
    timeout = source.span_ms(entries.get("connect_timeout"), "ssh.connect_timeout", 1000, 600_000)
    interval = source.span_ms(entries.get("probe_interval"), "ssh.probe_interval", 500, 600_000)
    return SshSettings(
        source.parsed(entries.get("user"), "ssh.user", parse_user),
        source.integer(entries.get("port"), "ssh.port", 1, 65535),
        folder.files(entries.get("identity"), "ssh.identity", KEY_ELSEWHERE),
        words(source, entries.get("jump"), "ssh.jump", parse_jump),
        folder.files(entries.get("known_hosts"), "ssh.known_hosts"),
        folder.files(entries["config"], "ssh.config") if "config" in entries else None,
        timeout or default.connect_timeout_ms,
        source.integer(entries.get("connecting"), "ssh.connecting", 1, 1024) or default.connecting,
        interval or default.probe_interval_ms,
    )


def parse_addresses(text: str) -> list[str]:
    """What one would type after `ssh`, as a range or not; or `local`. Raises ValueError."""
    addresses = expand(text)
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            user, at, host = address.rpartition("@")
            fix = f"write address: {host} and user: {user}" if at else "write a name or an IP address"
            raise ValueError(f"{shown(address)} is no address; {fix}")
    return addresses


def parse_user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise ValueError(f"{shown(text)} is no user name; write for example ops")
    return text


def parse_jump(text: str) -> str:
    """One hop, `[user@]host[:port]`. Raises ValueError."""
    found = _JUMP.fullmatch(text)
    host = found and (found["v6"] or found["host"])
    if not found or not host or not _ADDRESS.fullmatch(host) or not 0 < int(found["port"] or 22) < 65536:
        raise ValueError(f"{shown(text)} is no jump host; write [user@]host[:port]")
    if found["user"]:
        parse_user(found["user"])
    if host == "local":
        raise ValueError("'local' is this machine; remove it")
    return text


def jump_host(text: str) -> str:
    """The address within a hop that `parse_jump` took."""
    found = _JUMP.fullmatch(text)
    return str(found["v6"] or found["host"]) if found else text
