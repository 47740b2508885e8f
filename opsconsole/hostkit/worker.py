"""The one process that asks the driver. When a call hangs, it hangs; the agent goes on and says which call it was.

There is never a second worker beside a stuck one: it gets SIGKILL, and until the kernel lets go of it (state D) each
probe says so instead of showing GPUs. While the driver as a whole fails, a fresh worker starts every minute.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import time
from typing import Any

from . import proc
from .files import Record
from .probe import Reader
from .readings import failed, plain
from .state import StateDir

DEADLINE_S = 15.0  # the first call into a driver without persistence mode takes seconds per GPU
FRESH_AFTER_S = 60.0  # loading pynvml costs 0.1 s of CPU: not at every probe of a host without a driver
MARK_BYTES = 256
PR_SET_PDEATHSIG = 1


class Worker:
    """The agent's handle on its worker. Nothing here waits."""

    def __init__(self, state: StateDir, deadline_s: float = DEADLINE_S) -> None:
        self.state = state
        self.deadline_s = deadline_s
        self.mark = mmap.mmap(-1, MARK_BYTES)
        self.pid = 0
        self.start = 0
        self.socket: socket.socket | None = None
        self.asked_at: float | None = None
        self.killed_at: float | None = None
        self.born_at = 0.0
        self.buffer: list[bytes] = []

    def ask(self, now: float) -> bool:
        """Have the GPUs read, unless a reading is under way or the last worker is stuck."""
        self._reap()
        if self.asked_at is not None or self.killed_at is not None:
            return False
        if not self.pid:
            self._fork()
        assert self.socket is not None
        try:
            self.socket.send(b"?")
        except OSError:
            return False
        self.asked_at = now
        return True

    def answer(self) -> Record | None:
        """The finished reading, once. Call it when `socket` is readable."""
        if self.socket is None:
            return None
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            return self._lost()
        self.buffer.append(data)
        if not data.endswith(b"\n"):
            return None
        line, self.buffer, self.asked_at = b"".join(self.buffer), [], None
        found: Record = json.loads(line)
        works = found["source"] != "none" and "failed" not in found["driver"]
        if not works and time.monotonic() - self.born_at > FRESH_AFTER_S:
            self._end()  # a driver that was reloaded needs a library that was loaded anew
        return found

    def trouble(self, now: float) -> str | None:
        """Why there is no reading: a call hangs. Gives the worker up when its time is over."""
        expired = self.asked_at is not None and self.killed_at is None and now - self.asked_at > self.deadline_s
        if expired:
            text = self._hang(now)
            self._end()
            return text  # told once in any case, also when the worker dies of the signal at once
        self._reap()
        return self._hang(now) if self.killed_at is not None else None

    def _hang(self, now: float) -> str:
        stat = proc.read_stat(self.pid)
        letter = "?" if stat is None else stat.state
        waited = now - (self.asked_at or self.killed_at or now)
        return f"driver hang: {self.call()} for {waited:.0f} s (probe process {self.pid}, state {letter})"

    def call(self) -> str:
        return plain(self.mark[:].rstrip(b"\0").decode("utf-8", "replace")) or "a driver call"

    def close(self) -> None:
        self._end()
        self._reap()

    def _lost(self) -> Record:
        """It ended by itself: a crash in the driver's library takes the worker, never the agent."""
        text = f"the probe process ended during {self.call()}"
        self._end()
        return {"source": "none", "driver": failed(text), "gpus": [], "pci_gpus": None, "errors": [text]}

    def _end(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)  # our child, not reaped: the pid is still its own
            self.killed_at = time.monotonic()
            self._reap()
        self.buffer = []

    def _reap(self) -> None:
        if not self.pid:
            return
        try:
            if os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            pass
        self.pid, self.killed_at, self.asked_at = 0, None, None

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        self.born_at = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            serve(self.state, theirs, self.mark)
        theirs.close()
        ours.setblocking(False)
        self.socket = ours


def serve(state: StateDir, channel: socket.socket, mark: mmap.mmap) -> None:
    """The worker's life. Never returns; leaves when the agent does."""
    try:
        let_go_of_everything_but(channel.fileno())
        die_with_parent()

        def note(name: str) -> None:
            mark[:] = name.encode("utf-8", "replace")[:MARK_BYTES].ljust(MARK_BYTES, b"\0")

        reader = Reader(state, note)
        while channel.recv(1):
            channel.sendall(json.dumps(reader.read()).encode("ascii") + b"\n")
    finally:
        os._exit(0)


def let_go_of_everything_but(fd: int) -> None:
    """Above all of the SSH session's pipes: a stuck worker must not keep the session open."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.closerange(3, fd)
    os.closerange(fd + 1, 1024)


def die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def gpu_memory_by_run(gpus: list[dict[str, Any]]) -> dict[str, int | None]:
    """Run → bytes in use on GPUs; None where one of its processes does not say how much."""
    sums: dict[str, int | None] = {}
    for gpu in gpus:
        for entry in gpu["processes"].get("v") or []:
            token = entry.get("run")
            if token is None:
                continue
            used, before = entry.get("gpu_memory_bytes"), sums.get(token, 0)
            sums[token] = None if used is None or before is None else before + int(used)
    return sums
