"""A run's output on disk, bounded: its beginning for ever, its newest part always.

Offsets count the bytes the workload has written, whatever became of them. `log` holds the first half of the allowance;
what follows goes to `log.OFFSET` files of a quarter each, of which the newest two stay. A reader that asks for dropped
bytes gets one line that says how many there were, and goes on where the kept part begins.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .files import remove, write_all

HEAD = "log"


class Segment(NamedTuple):
    start: int
    path: str
    size: int


class LogWriter:
    """The supervisor's end. A full disk loses output, never the run."""

    def __init__(self, run_dir: str, bytes_max: int) -> None:
        self.run_dir = run_dir
        self.head_max = max(1, bytes_max // 2)
        self.segment_max = max(1, bytes_max // 4)
        self.written = 0
        self._start = 0
        self._fd = self._open(HEAD)

    def _open(self, name: str) -> int:
        """-1 where the file cannot be made; what belongs into it is lost."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            return os.open(os.path.join(self.run_dir, name), flags, 0o600)
        except OSError:
            return -1

    def write(self, data: bytes) -> None:
        while data:
            room = self._start + (self.segment_max if self._start else self.head_max) - self.written
            if room <= 0:
                self._next_segment()
                continue
            part, data = data[:room], data[room:]
            self._store(part)
            self.written += len(part)

    def _store(self, part: bytes) -> None:
        if self._fd < 0:
            return
        try:
            write_all(self._fd, part)
        except OSError:
            # Offsets must stay true, so the rest of this segment is given up; the next one tries again.
            os.close(self._fd)
            self._fd = -1

    def _next_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        for old in [s for s in segments(self.run_dir) if s.start][:-1]:
            remove(old.path)
        self._start = self.written
        self._fd = self._open(f"{HEAD}.{self._start:020d}")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def segments(run_dir: str) -> list[Segment]:
    """What is kept, in order."""
    found = []
    for name in os.listdir(run_dir):
        start = name[len(HEAD) + 1 :]
        if name == HEAD or (name.startswith(HEAD + ".") and start.isdigit()):
            path = os.path.join(run_dir, name)
            try:
                found.append(Segment(int(start or 0), path, os.path.getsize(path)))
            except OSError:
                continue  # dropped just now
    return sorted(found)


def read_log(run_dir: str, offset: int, bytes_max: int) -> tuple[bytes, int, int, bool]:
    """(data, next offset, size, truncated): at most `bytes_max` bytes from `offset` on. Raises OSError."""
    kept = segments(run_dir)
    size = kept[-1].start + kept[-1].size if kept else 0
    offset = max(0, min(offset, size))
    for segment in kept:
        if offset < segment.start:
            note = f"\n… {segment.start - offset} bytes dropped …\n".encode()
            return note, segment.start, size, True
        if offset < segment.start + segment.size:
            data = read_part(segment.path, offset - segment.start, bytes_max)
            if data:
                return data, offset + len(data), size, False
    return b"", offset, size, False


def read_part(path: str, offset: int, bytes_max: int) -> bytes:
    """Nothing where the file was dropped a moment ago; the next look finds what took its place."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(max(0, bytes_max))
    except FileNotFoundError:
        return b""
