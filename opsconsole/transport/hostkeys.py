"""Which host keys are trusted: known_hosts files, indexed once and off the loop. Verification is always strict.

Decides as OpenSSH does for the same files: by name and port, then by name alone where that one's key matches; hashed
names, wildcards, @cert-authority and @revoked count. It never learns a key by itself.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

DEFAULT_FILES = (
    "~/.ssh/known_hosts",
    "~/.ssh/known_hosts2",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssh/ssh_known_hosts2",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a known_hosts file. `marker` is "", "cert-authority" or "revoked"."""

    where: str  # file:line
    marker: str
    key: str  # "type base64"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.key)


@dataclass(frozen=True, slots=True)
class Trust:
    """What the files say of one host: its entries, and those of its bare name where the port is unusual."""

    entries: tuple[Entry, ...] = ()
    fallback: tuple[Entry, ...] = ()

    def keys(self, marker: str = "") -> list[str]:
        """Key texts with this marker. The bare name's keys count too: they are accepted when they match."""
        return [entry.key for entry in (*self.entries, *self.fallback) if entry.marker == marker]

    @property
    def known(self) -> tuple[Entry, ...]:
        """The entries that a different key contradicts."""
        return tuple(entry for entry in self.entries if entry.marker == "")

    def algorithms(self) -> tuple[str, ...]:
        """Key types in the order to ask for: known ones first, so that a right key of theirs is found."""
        types = list(dict.fromkeys(key.split()[0] for key in self.keys()))
        known = [name for kind in types for name in SIGNATURES.get(kind, (kind,))]
        plain = tuple(dict.fromkeys([*known, *PLAIN_ALGORITHMS]))
        return (*CERTIFICATE_ALGORITHMS, *plain) if self.keys("cert-authority") else plain


SIGNATURES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
PLAIN_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
CERTIFICATE_ALGORITHMS = (
    "ssh-ed25519-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "rsa-sha2-512-cert-v01@openssh.com",
    "rsa-sha2-256-cert-v01@openssh.com",
)


def fingerprint(key: str) -> str:
    """SHA256:… as ssh prints it, of "type base64"."""
    try:
        digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    except (ValueError, IndexError):
        return "unreadable"
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


@dataclass(slots=True)
class KnownHosts:
    """The index of some files. A plain name costs a dictionary look-up, hashed ones an HMAC each, patterns a match."""

    exact: dict[str, list[Entry]] = field(default_factory=dict)
    hashed: list[tuple[bytes, bytes, Entry]] = field(default_factory=list)
    patterns: list[tuple[list[str], Entry]] = field(default_factory=list)
    bad_lines: list[str] = field(default_factory=list)
    cache: dict[tuple[str, int], Trust] = field(default_factory=dict)

    def trust(self, host: str, port: int) -> Trust:
        """What is known of `host`, remembered."""
        found = self.cache.get((host, port))
        if found is None:
            bare = tuple(self._find(host))
            named = tuple(self._find(f"[{host}]:{port}"))
            found = Trust(bare) if port == 22 else Trust(named, bare)
            self.cache[host, port] = found
        return found

    def _find(self, name: str) -> Iterable[Entry]:
        name = name.lower()
        yield from self.exact.get(name, ())
        for salt, digest, entry in self.hashed:
            if hmac.digest(salt, name.encode(), "sha1") == digest:
                yield entry
        for patterns, entry in self.patterns:
            if _matches(name, patterns):
                yield entry

    def add_line(self, where: str, line: str) -> None:
        """Takes one line; what it cannot read is noted in `bad_lines` and trusted for nothing."""
        words = line.split()
        if not words or words[0].startswith("#"):
            return
        marker = words.pop(0)[1:] if words[0].startswith("@") else ""
        if marker not in ("", "cert-authority", "revoked") or len(words) < 3:
            self.bad_lines.append(where)
            return
        self._add(words[0], Entry(where, marker, f"{words[1]} {words[2]}"))

    def _add(self, names: str, entry: Entry) -> None:
        if names.startswith("|1|"):
            try:
                _, _, salt, digest = names.split("|")
                self.hashed.append((base64.b64decode(salt), base64.b64decode(digest), entry))
            except ValueError:
                self.bad_lines.append(entry.where)
            return
        words = names.lower().split(",")
        if any(mark in names for mark in "*?!"):
            self.patterns.append((words, entry))
            return
        for word in words:
            self.exact.setdefault(word, []).append(entry)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """One pattern list: a negated match wins. Brackets stand for themselves, as in [host]:port."""
    hit = False
    for pattern in patterns:
        negated = pattern.startswith("!")
        if fnmatchcase(name, pattern.removeprefix("!").replace("[", "[[]")):
            if negated:
                return False
            hit = True
    return hit


def read_known_hosts(files: Sequence[str]) -> KnownHosts:
    """Reads and indexes; missing files are empty. Blocking: call it off the loop."""
    index = KnownHosts()
    for name in files:
        path = Path(name).expanduser()
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            index.add_line(f"{path}:{number}", line)
    return index


def _stamp(files: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
    stamps: list[tuple[int, int] | None] = []
    for name in files:
        try:
            found = os.stat(os.path.expanduser(name))
            stamps.append((found.st_mtime_ns, found.st_size))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


class KnownHostsStore:
    """Indexes by list of files. A file that changed is read again at the next connection that needs it."""

    def __init__(self) -> None:
        self._indexes: dict[tuple[str, ...], tuple[object, KnownHosts]] = {}
        self._lock = asyncio.Lock()

    async def index(self, files: tuple[str, ...]) -> KnownHosts:
        """The index of `files` as they are now; read in a thread, once for all who wait."""
        async with self._lock:
            stamp = _stamp(files)
            held = self._indexes.get(files)
            if held is None or held[0] != stamp:
                held = (stamp, await asyncio.to_thread(read_known_hosts, files))
                self._indexes[files] = held
            return held[1]
