"""The standard streams as people have them: a locale without our marks, a reader that left, a full disk."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import unicodedata
from typing import TextIO

from opsconsole.errors import OpsConsoleError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
PLAIN = {
    "●": "*",
    "◐": "o",
    "○": "o",
    "✖": "x",
    "✓": "+",
    "▲": "^",
    "▼": "v",
    "↓": "v",
    "→": "->",
    "–": "-",
    "…": "...",
    "×": "x",
    "±": "+-",
}


def make_plain(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: near words for what the encoding lacks. Always ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(char: str) -> str:
    if char in PLAIN:
        return PLAIN[char]
    if "▀" <= char <= "▟":  # blocks of bars
        return "#"
    near = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
    return near or "?"


def prepare() -> None:
    """What cannot be encoded is said in near words, on both streams."""
    codecs.register_error("opsconsole.plain", make_plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the one who started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="opsconsole.plain")


def not_written(error: OSError) -> OpsConsoleError | None:
    """A write that the other side refused: a full disk, most often. None: some other error."""
    if error.errno not in FULL or error.filename is not None:
        return None
    silence(sys.stdout)
    return OpsConsoleError(f"cannot write the output: {error.strerror}", advice="free some space, or send it elsewhere")


def silence(stream: TextIO) -> None:
    """What is still buffered goes nowhere, so that the end of the process does not complain again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
