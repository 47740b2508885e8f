"""Start a supervisor that nothing here can take down with it: own session, no inherited pipes, re-parented."""

from __future__ import annotations

import os
import subprocess
import sys

from .state import StateDir


def self_command() -> list[str]:
    """How to run this very code again: the zipapp, or the package it was imported from."""
    loader = globals().get("__loader__")
    archive = getattr(loader, "archive", None)
    if archive:
        return [sys.executable, "-I", str(archive)]
    return [sys.executable, "-m", "opsconsole.hostkit"]


def spawn_supervisor(state: StateDir, run_dir: str, rescue: bool = False) -> tuple[subprocess.Popen[bytes], int]:
    """(the short-lived starter, a pipe). The pipe says one line when the supervisor stands, and closes with it."""
    reading, writing = os.pipe()
    command = [*self_command(), "supervise", "--state-dir", state.root, "--ready-fd", str(writing)]
    command += ["--rescue"] if rescue else []
    try:
        starter = subprocess.Popen(
            [*command, "--", run_dir],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(writing,),
        )
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    os.set_blocking(reading, False)
    return starter, reading
