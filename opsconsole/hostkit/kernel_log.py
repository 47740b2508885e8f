"""Where the kernel log can be read on this host, and how far it has been read in this boot.

/dev/kmsg where it is allowed; else the journal as JSON; else dmesg; each without root where the host permits. The
cursor (boot id, source, position) lies in the state directory, so that a reconnect repeats nothing; a client that lost
lines may name an older cursor. After a reboot it starts again.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
from typing import IO, NamedTuple, Optional, Tuple

from . import fake_nvml, proc
from .files import Damaged, read_json, write_json
from .kernel import Line, Reader, parse_kmsg, parse_short
from .readings import Reading, denied, failed, value
from .state import StateDir

KMSG = "/dev/kmsg"
POLL_S = 10.0  # for sources that have to be asked by starting a program
COMMAND_TIMEOUT_S = 5.0
RECORDS_PER_READ = 2000

Record = Tuple[int, Optional[float], str]  # position, seconds since boot, text


class KernelLog:
    """`read` gives what is new. `status` says which source it is, or why there is none."""

    def __init__(self, state: StateDir, cursor: str | None = None) -> None:
        self.state = state
        self.boot = proc.boot_id()
        self.reader = Reader()
        self.fd = -1
        self.source, self.status = self._choose()
        self.position = self._position(cursor)
        self._due = 0.0
        self._command: Command | None = None

    @property
    def cursor(self) -> str:
        return f"{self.boot} {self.source} {self.position}"

    def _choose(self) -> tuple[str, Reading]:
        if fake_nvml.path():
            return "fake", value("fake")
        try:
            self.fd = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return "kmsg", value("kmsg")
        except OSError as error:
            reason = f"{KMSG}: {error.strerror}"
            refused = error.errno in (errno.EACCES, errno.EPERM)
        for source in ("journal", "dmesg"):
            if command_works(command_for(source)):
                return source, value(source)
        return "none", denied(reason) if refused else failed(reason)

    def _position(self, cursor: str | None) -> int:
        """-1 reads from the start of this boot."""
        if cursor is None:
            try:
                cursor = str((read_json(self.state.kernel) or {}).get("cursor", ""))
            except (Damaged, OSError):
                cursor = ""
        parts = cursor.split(" ")
        same = len(parts) == 3 and parts[:2] == [self.boot, self.source]
        return int(parts[2]) if same and parts[2].lstrip("-").isdigit() else -1

    def read(self, now: float) -> list[Line]:
        """New lines that matter. Never waits. `now`: monotonic seconds."""
        records = self._records(now)
        found = []
        for position, at, text in records:
            if position <= self.position:
                continue
            self.position = position
            line = self.reader.feed(text)
            if line is not None:
                found.append({"monotonic_s": at, **line})
        return found

    def commit(self) -> None:
        """What was read so far was handed over. Best effort on a full disk: then lines may come twice."""
        try:
            write_json(self.state.kernel, {"cursor": self.cursor}, durable=False)
        except OSError:
            return

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._command is not None:
            self._command.end()
            self._command = None

    def _records(self, now: float) -> list[Record]:
        if self.source == "kmsg":
            return read_kmsg(self.fd)
        if self.source == "fake":
            return self._fake_records()
        return self._command_records(now) if self.source != "none" else []

    def _fake_records(self) -> list[Record]:
        try:
            lines = fake_nvml.load().get("kernel") or []
        except (OSError, ValueError):
            return []
        if len(lines) <= self.position:
            self.position = -1  # another table took the old one's place
        return [(i, line.get("monotonic_s"), str(line.get("text", ""))) for i, line in enumerate(lines)]

    def _command_records(self, now: float) -> list[Record]:
        """Start the program when due; take its output when it has ended."""
        if self._command is None:
            if now >= self._due:
                self._due = now + POLL_S
                self._command = start_command(command_for(self.source))
            return []
        if self._command.popen.poll() is None:
            if now > self._due + COMMAND_TIMEOUT_S:
                self._command.popen.kill()
            return []
        output = self._command.end()
        self._command = None
        return journal_records(output) if self.source == "journal" else dmesg_records(output)


def command_for(source: str) -> list[str]:
    if source == "journal":
        return ["journalctl", "--dmesg", "--boot", "--output=json", "--no-pager", "--quiet"]
    return ["dmesg", "--raw"]


def command_works(command: list[str]) -> bool:
    """It is there and this user may see kernel lines with it."""
    check = [*command, "--lines=1"] if command[0] == "journalctl" else command
    try:
        done = subprocess.run(
            check,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


class Command(NamedTuple):
    """A running program and the nameless file that takes its output: a pipe could fill while nobody reads."""

    popen: subprocess.Popen[bytes]
    output: IO[bytes]

    def end(self) -> bytes:
        """Its whole output; it is gone afterwards."""
        self.popen.kill()
        self.popen.wait()
        with self.output:
            self.output.seek(0)
            return self.output.read()


def start_command(command: list[str]) -> Command | None:
    import tempfile

    output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the program
    try:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError:
        output.close()
        return None
    return Command(started, output)


def read_kmsg(fd: int) -> list[Record]:
    """All records that are there now. A record that was overwritten under us (EPIPE) is skipped."""
    found: list[Record] = []
    while len(found) < RECORDS_PER_READ:
        try:
            data = os.read(fd, 8192)
        except BlockingIOError:
            break
        except OSError as error:
            if error.errno == errno.EPIPE:
                continue
            break
        parsed = parse_kmsg(data.decode("utf-8", "replace"))
        if parsed is not None:
            found.append(parsed)
    return found


def journal_records(output: bytes) -> list[Record]:
    """Positions are microseconds since boot; lines of one instant share it and are read together."""
    found: list[Record] = []
    for line in output.splitlines():
        try:
            entry = json.loads(line)
            stamp = entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry["__MONOTONIC_TIMESTAMP"]
            message = entry.get("MESSAGE")
        except (ValueError, KeyError, AttributeError):
            continue
        if isinstance(message, list):  # bytes that are no UTF-8
            message = bytes(message).decode("utf-8", "replace")
        found.append((int(stamp), int(stamp) / 1e6, str(message)))
    return spread(found)


def dmesg_records(output: bytes) -> list[Record]:
    found: list[Record] = []
    for line in output.decode("utf-8", "replace").splitlines():
        parsed = parse_short(line)
        if parsed is not None and parsed[0] is not None:
            found.append((int(parsed[0] * 1e6), parsed[0], parsed[1]))
    return spread(found)


def spread(records: list[Record]) -> list[Record]:
    """Give lines of the same microsecond positions of their own (a thousand fit into one)."""
    found: list[Record] = []
    last, repeat = -1, 0
    for position, at, text in records:
        repeat = repeat + 1 if position == last else 0
        last = position
        found.append((position * 1000 + min(repeat, 999), at, text))
    return found
