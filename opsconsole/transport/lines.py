"""Bytes to JSON objects, one per line. A bad line is counted and reported, and never ends the stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from opsconsole.transport.errors import plain

MAX_LINE_BYTES = 1 << 20  # agent-protocol.md
LEFT_AS_SENT = "probe"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode


@dataclass(slots=True)
class LineCounts:
    """What came, since the session began."""

    lines: int = 0
    overlong: int = 0
    undecodable: int = 0

    @property
    def bad(self) -> int:
        return self.overlong + self.undecodable


class LineReader:
    """Cuts a stream into lines of at most `MAX_LINE_BYTES`; holds no more than that, skips longer ones."""

    def __init__(self, on_line: Callable[[bytes], None], on_overlong: Callable[[int], None]) -> None:
        self._on_line = on_line
        self._on_overlong = on_overlong
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> None:
        """Takes any chunk; calls back once per complete line, without its newline."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            self._keep(part)
            self._finish()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > MAX_LINE_BYTES:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _finish(self) -> None:
        held, self._held = self._held, 0
        if held > MAX_LINE_BYTES:
            self._on_overlong(held)
            return
        line = b"".join(self._parts)
        self._parts.clear()
        self._on_line(line)

    @property
    def pending(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._parts)


def parse_object(line: bytes) -> dict[str, Any] | None:
    """The line's JSON object; None for anything else, bytes that are not UTF-8 included.

    A probe stays JSON, as bytes that are known to be sound: hundreds come per second, few are looked at whole. Half a
    surrogate pair, which Python writes for bytes of a name that are no UTF-8, becomes U+FFFD.
    """
    try:
        if not line.isascii():
            line.decode()
        return {name: bytes(raw) if name == LEFT_AS_SENT else _decode(raw) for name, raw in _members(line).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        mended = _SURROGATE.sub(rb"\\ufffd", line)
        return parse_object(mended) if mended != line else None


class Tail:
    """The beginning and the end of a noisy stream, for messages: `limit` bytes each."""

    def __init__(self, limit: int = 2048) -> None:
        self._limit = limit
        self._head = b""
        self._tail = b""

    def add(self, data: bytes) -> None:
        room = self._limit - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-self._limit :]

    def text(self, limit: int = 300) -> str:
        """One line of plain text."""
        return plain(self._head + (b" ... " if self._tail else b"") + self._tail, limit)
