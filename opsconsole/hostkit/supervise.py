"""The process that is one run's supervisor: detached from everything, the only one, and the tree's subreaper."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys

from .state import StateDir
from .supervisor import Supervisor

PR_SET_CHILD_SUBREAPER = 36


def supervise(state: StateDir, run_dir: str, ready_fd: int, rescue: bool) -> int:
    """What the process does from its first to its last instruction. Its own mistakes end in `supervisor.err`."""
    detach()
    lock = os.open(os.path.join(run_dir, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if rescue:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0  # somebody supervises it
    else:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a reader holds it for an instant only
    try:
        become_subreaper()
        supervisor = Supervisor(state, run_dir, rescue)
        stands = supervisor.begin()
    except Exception as error:  # the door: who started us reads it, and so does the run directory
        announce(ready_fd, f"error: {error}")
        report_failure(run_dir, error)
        return 1
    announce(ready_fd, "ready")
    try:
        if stands:
            supervisor.serve()
    except Exception as error:  # the door: nobody else hears of it
        report_failure(run_dir, error)
        return 1
    return 0


def detach() -> None:
    """Leave the starter behind: fork, so that we are nobody's session leader and init's (or a user manager's) child."""
    if os.fork():
        os._exit(0)
    os.chdir("/")


def become_subreaper() -> None:
    """Orphans of the tree come to us instead of to init. Raises OSError where the kernel refuses."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def announce(ready_fd: int, text: str) -> None:
    """Tell whoever started us that the start is on disk, or why not. It may be gone; that changes nothing."""
    with contextlib.suppress(OSError):
        os.write(ready_fd, text.replace("\n", " ").encode("utf-8", "backslashreplace") + b"\n")
    os.close(ready_fd)


def report_failure(run_dir: str, error: Exception) -> None:
    """A mistake of ours, kept beside the run for whoever looks."""
    import traceback

    try:
        with open(os.path.join(run_dir, "supervisor.err"), "a", encoding="utf-8") as file:
            traceback.print_exc(file=file)
    except OSError:
        print(error, file=sys.stderr)
