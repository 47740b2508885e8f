"""What an ssh configuration says and opsconsole does not do, with the place and what to do instead.

Only keywords that make OpenSSH reach or trust a host in another way. Those that change nothing for a session without
a terminal (ControlMaster, SendEnv, LogLevel, …) are passed over.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_AGENT = "load the key into ssh-agent"
_NO_VERIFY = ("no", "off", "accept-new")
_SWITCHED_ON = ("yes", "ask", "always", "true")

# keyword → values that matter (none: all), what happens here, what to do
_NOT_DONE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "stricthostkeychecking": (_NO_VERIFY, "host keys are always verified", "log in once with ssh to learn the key"),
    "knownhostscommand": ((), "the command is not run", "write the keys to a known_hosts file"),
    "revokedhostkeys": ((), "the list is not read", "mark the keys @revoked in known_hosts"),
    "verifyhostkeydns": (_SWITCHED_ON, "DNS is not asked for keys", "write the keys to a known_hosts file"),
    "hostbasedauthentication": (_SWITCHED_ON, "only keys and agents log in", "give the account a key"),
    "pkcs11provider": ((), "the provider is not loaded", _AGENT),
    "securitykeyprovider": ((), "the provider is not loaded", _AGENT),
    "pubkeyacceptedalgorithms": ((), "the list is not followed", "name the key with IdentityFile"),
    "pubkeyacceptedkeytypes": ((), "the list is not followed", "name the key with IdentityFile"),
    "ciphers": ((), "the list is not followed", "let sshd offer aes-gcm, aes-ctr or chacha20-poly1305"),
    "canonicalizehostname": (_SWITCHED_ON, "names are not canonicalized", "give the whole name as address"),
    "bindinterface": ((), "no interface is bound", "use BindAddress"),
    "proxyusefdpass": (_SWITCHED_ON, "no descriptor is passed", "use ProxyJump"),
    "match": (("final", "canonical"), "the block never matches", "use Match host, or Host"),
}
_WORDS = re.compile(r'"([^"]*)"|([^\s"=]+)')
MOST_FILES = 100


class Unsupported(NamedTuple):
    """`line` counts from 1. `keyword` as it was typed."""

    file: str
    line: int
    keyword: str
    what: str
    fix: str


def unsupported(config_files: Sequence[str]) -> list[Unsupported]:
    """Of these files and all that they include, in order. Files that cannot be read are passed over, as ssh does."""
    found: list[Unsupported] = []
    seen: set[Path] = set()
    for name in config_files:
        path = Path(name).expanduser()
        found += _of_file(path, path.parent, seen)
    return found


def _of_file(path: Path, base: Path, seen: set[Path]) -> Iterator[Unsupported]:
    """`base`: where relative includes begin."""
    if path in seen or len(seen) >= MOST_FILES:
        return
    seen.add(path)
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        words = [quoted or plain for quoted, plain in _WORDS.findall(line)]
        if not words or line.lstrip().startswith("#"):
            continue
        keyword, values = words[0], [word.lower() for word in words[1:]]
        if keyword.lower() == "include":
            for included in words[1:]:
                for inner in sorted(glob.glob(os.path.join(base, os.path.expanduser(included)))):
                    yield from _of_file(Path(inner), base, seen)
        elif (known := _NOT_DONE.get(keyword.lower())) is not None:
            matter, what, fix = known
            if not matter or any(value.lstrip("!") in matter for value in values):
                yield Unsupported(str(path), number, keyword, what, fix)
