"""The shell's own exceptions: what a person reads when something could not be done.

No traceback reaches a user: the command line prints the text of these and leaves with their exit code.
"""

from __future__ import annotations


class OpsConsoleError(Exception):
    """Something outside failed.

    `advice` is the one thing to do next, as a sentence; each field is None where it does not apply.
    """

    exit_code = 1
    speaker = "opsconsole: "  # what the command line puts before it

    def __init__(
        self,
        message: str,
        *,
        host: str | None = None,
        command: str | None = None,
        exit_status: int | None = None,
        stderr: str | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.host = host
        self.command = command
        self.exit_status = exit_status
        self.stderr = stderr
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message}\n  {self.advice}" if self.advice else self.message


class UsageError(OpsConsoleError):
    """The words or the file given are wrong; nothing was tried."""

    exit_code = 2


class StoreError(OpsConsoleError):
    """The store cannot be used at all: wrong place, newer version, damaged."""


class StoreUnavailable(StoreError):
    """It cannot be written now: full, locked, gone. The leader stops acting and tries again."""


class LostLease(StoreError):
    """Another leader has a higher epoch: this process may not act any more."""
