"""The workload's own saving before a stop: a signal or a command, and how one knows that it is done."""

from __future__ import annotations

import os
import subprocess
from typing import Callable, List

from . import proc, tree
from .files import Record
from .spec import signal_number

Spawn = Callable[[List[str]], "subprocess.Popen[bytes]"]


class Checkpoint:
    """`wish` is the spec's `checkpoint`; `mark` the file that the workload may touch."""

    def __init__(self, wish: Record, mark: str) -> None:
        self.wish = wish
        self.mark = mark
        self.before: float | None = None
        self.begun = False
        self.failed = False
        self.command: subprocess.Popen[bytes] | None = None

    def begin(self, main: proc.Identity | None, spawn: Spawn) -> None:
        """Raises OSError, ValueError or SubprocessError where its command cannot be started: it is over then."""
        self.before, self.begun = self._touched_at(), True
        if "signal" in self.wish:
            number = signal_number(self.wish["signal"])
            if main is not None and number is not None:
                tree.send(main, number)
            return
        try:
            self.command = spawn(self.wish["argv"])
        except BaseException:
            self.failed = True
            raise

    def reaped(self, pid: int, status: int) -> bool:
        """True when that child was its command."""
        if self.command is None or pid != self.command.pid:
            return False
        self.command.returncode = status
        return True

    def done(self) -> bool:
        if self.failed:
            return True
        if self.command is not None:
            return self.command.returncode is not None
        return self.begun and self._touched_at() != self.before

    def _touched_at(self) -> float | None:
        try:
            return os.stat(self.mark).st_mtime
        except OSError:
            return None
