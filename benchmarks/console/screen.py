"""A console on a pseudo-terminal, read as it writes: when a key was painted, what it costs, how much it sends.

This process, the console and its servers run at real-time priority where that is allowed, in this order, so that what
else the machine does does not count.
"""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SIZE = (40, 120)
FRAME = "Availability"  # stands on the overview
PATIENCE_S = 60.0
LEAVE_S = 5.0
TAIL = 400  # bytes kept of what is over, for words that are cut in two
READ = 1 << 16
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Screen:
    """`began` is when the process was made, on `time.perf_counter`."""

    process: subprocess.Popen[bytes]
    fd: int
    began: float
    sent: int = 0  # bytes so far
    _said: bytes = b""

    def until(self, pattern: str, patience_s: float = PATIENCE_S) -> float:
        """Seconds since the process began until this was painted after the last call."""
        wanted, end = re.compile(pattern.encode()), time.perf_counter() + patience_s
        while (found := wanted.search(self._said)) is None:
            left = end - time.perf_counter()
            if left <= 0 or not self._read(left):
                raise RuntimeError(f"no {pattern!r} within {patience_s:g} s: {self._said[-300:]!r}")
        self._said = self._said[found.end() :]
        return time.perf_counter() - self.began

    def press(self, key: str) -> None:
        os.write(self.fd, key.encode())

    def key_ms(self, key: str, pattern: str) -> float:
        """From the key to the paint of what it does."""
        self._said = b""
        pressed = time.perf_counter()
        self.press(key)
        return (self.until(pattern) + self.began - pressed) * 1000

    def idle(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._read(left)
        self._said = self._said[-TAIL:]

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / TICKS

    def memory_mb(self, field: str = "VmRSS") -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{field}:")[2].split()[0]) / 1024

    def end(self) -> None:
        """It leaves, or is killed. Who leaves still writes, and waits until that is read."""
        self.process.terminate()
        end = time.perf_counter() + LEAVE_S
        while self.process.poll() is None and time.perf_counter() < end:
            self._read(0.05)
        self.process.kill()
        self.process.wait()

    def _read(self, within_s: float) -> bool:
        """False where nothing came, or it has ended."""
        if not select.select([self.fd], [], [], within_s)[0]:
            return False
        try:
            data = os.read(self.fd, READ)
        except OSError:  # so Linux tells the end of a terminal
            return False
        self.sent += len(data)
        self._said += data
        return bool(data)


@contextmanager
def on_screen(words: Sequence[str], size: tuple[int, int] = SIZE) -> Iterator[Screen]:
    """A process whose terminal is this; whatever happens, it ends."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, size)
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the second start has byte code, as an installed console has
    environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "opsconsole-bytecode")
    began = time.perf_counter()
    process = subprocess.Popen(
        words,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
        preexec_fn=console_first,
    )
    os.close(slave)
    screen = Screen(process, master, began)
    try:
        yield screen
    finally:
        screen.end()
        os.close(master)


def servers_first() -> None:
    _real_time(4)


def console_first() -> None:
    _real_time(5)


def measurer_first() -> bool:
    """False where the machine does not allow it; figures on the clock then depend on what else it does."""
    return _real_time(6)


def _real_time(priority: int) -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except (OSError, AttributeError):
        return False
    return True


def opsconsole(inventory: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "opsconsole", "--inventory", str(inventory), *words]
