"""The demo as a process: it leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.sshd import MARK, marked


def test_a_story_that_is_ended_says_so_and_cleans_up(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "opsconsole", "demo", "--script", "drain", "--hosts", "2"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), MARK: str(tmp_path)}
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("inventory.yaml")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "") and "ended by a signal" in err and "Traceback" not in err
    assert not list(tmp_path.iterdir()) and not marked(str(tmp_path))
