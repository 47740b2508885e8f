"""All processes of a run, however they forked, changed group or session, or lost their parent.

While its supervisor lives it is the subreaper of the whole tree, so every member is below it. Members are told from the
supervisor's own helpers by their session: a helper stays in the supervisor's, a workload never does. When the
supervisor is dead, members are found by the session they were started in and by OPSCONSOLE_RUN_DIR in their
environment.
"""

from __future__ import annotations

import os
import signal

from . import proc
from .runs import Run

MARK = "OPSCONSOLE_RUN_DIR"


def below(processes: proc.Scan, supervisor: int) -> set[int]:
    """Members of the tree of a living supervisor; zombies wait for their parent only and do not count."""
    own = processes.get(supervisor)
    if own is None:
        return set()
    found = proc.descendants(processes, {supervisor})
    return {pid for pid in found if processes[pid].session != own.session and processes[pid].state not in "ZX"}


def orphans(processes: proc.Scan, run_dir: str, main: proc.Identity | None, look_inside: bool) -> set[int]:
    """Members without a supervisor. `look_inside` reads environments too: complete, but may hang beside a hung one."""
    roots: set[int] = set()
    if main is not None:
        roots |= {pid for pid, stat in processes.items() if stat.session == main.pid and stat.start >= main.start}
    if look_inside:
        roots |= set(proc.with_environment(processes, MARK, run_dir))
    found = roots | proc.descendants(processes, roots)
    return {pid for pid in found if processes[pid].state not in "ZX" and pid != os.getpid()}


def members(run: Run, processes: proc.Scan, look_inside: bool = False) -> set[int]:
    """Every process of `run`. Empty after another boot."""
    if run.state is None or run.other_boot():
        return set()
    supervisor = run.identity("supervisor")
    if supervisor is not None and run.supervised() and not run.state.get("rescued"):
        return below(processes, supervisor.pid)
    return orphans(processes, run.dir, run.identity("main"), look_inside)


def send(identity: proc.Identity, number: int) -> bool:
    """A signal to exactly this process. False when it is gone; a recycled pid is never hit."""
    try:
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            return send_by_handle(identity, number)
        if not proc.is_alive(identity):
            return False
        os.kill(identity.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def send_by_handle(identity: proc.Identity, number: int) -> bool:
    """The check and the signal go through one handle, so that nothing can come in between."""
    try:
        handle = os.pidfd_open(identity.pid)  # type: ignore[attr-defined,unused-ignore]
    except OSError as error:
        if isinstance(error, ProcessLookupError):
            raise
        os.kill(identity.pid, number) if proc.is_alive(identity) else None  # a kernel or sandbox without handles
        return True
    try:
        if not proc.is_alive(identity):
            return False
        signal.pidfd_send_signal(handle, number)  # type: ignore[attr-defined,unused-ignore]
        return True
    finally:
        os.close(handle)
