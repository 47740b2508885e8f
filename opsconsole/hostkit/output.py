"""What a workload writes, on its way into the log: a pipe that only its supervisor reads."""

from __future__ import annotations

import os

from .logfile import LogWriter

READ_BYTES = 65536
BITES = 16


class RunOutput:
    """`feed` is the workload's standard output and error."""

    def __init__(self, run_dir: str, bytes_max: int) -> None:
        self.log = LogWriter(run_dir, bytes_max)
        self.pipe, self.feed = os.pipe()
        os.set_blocking(self.pipe, False)

    def read(self) -> None:
        """A bounded bite, so that a chatty workload never delays its own stop."""
        for _ in range(BITES):
            try:
                self.log.write(os.read(self.pipe, READ_BYTES))
            except (BlockingIOError, InterruptedError):
                return

    def line(self, text: str) -> None:
        """A word of ours among the workload's."""
        self.log.write(f"opsconsole: {text}\n".encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        self.read()
        self.log.close()
