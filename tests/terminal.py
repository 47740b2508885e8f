"""The command line on a terminal of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.live.commands import OPSCONSOLE, CommandLine

PATIENCE_S = 60.0  # on a machine that does much else


@contextmanager
def on_terminal(command_line: CommandLine, *words: str, columns: int = 80) -> Iterator[Terminal]:
    """One command; whatever happens, it ends."""
    environment = {**command_line.environment(), "TERM": "xterm", "COLUMNS": str(columns)}
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(OPSCONSOLE[0], [*OPSCONSOLE, *words], environment)
    terminal = Terminal(pid, fd)
    try:
        yield terminal
    finally:
        terminal.close()


@dataclass
class Terminal:
    """A process on a pseudo terminal."""

    pid: int
    fd: int
    status: int | None = None
    _heard: bytes = b""

    @property
    def said(self) -> str:
        """So far; a character that has only half come is left out."""
        return self._heard.decode(errors="ignore").replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, words: str) -> None:
        """Until it has said this. Fails with all that it said."""
        end = time.monotonic() + PATIENCE_S
        while words not in self.said:
            assert self._read(end) or words in self.said, f"waited for {words!r}; it said:\n{self.said}"

    def ended(self) -> int:
        """Its exit status, once it has ended by itself."""
        end = time.monotonic() + PATIENCE_S
        while self._read(end):
            pass
        assert time.monotonic() < end, f"it does not end; it said:\n{self.said}"
        _, how = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(how)
        return self.status

    def _read(self, end: float) -> bool:
        """False at its end, or when it is late."""
        readable, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
        if not readable:
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # so Linux tells the end of a terminal
            return False
        self._heard += data
        return bool(data)

    def close(self) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        os.close(self.fd)
