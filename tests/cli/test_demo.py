"""The demo as a process: it leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncssh

from opsconsole.demo.cluster import DemoCluster
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


async def test_a_login_on_a_host_of_the_demo_is_a_shell_on_a_terminal() -> None:
    demo = DemoCluster(hosts=1)
    try:
        await demo.start()
        (port,) = re.findall(r"port: (\d+)", demo.inventory.read_text())
        async with (
            asyncssh.connect(
                "127.0.0.1", int(port), client_keys=[str(demo.root / "client_key")], known_hosts=None, config=None
            ) as link,
            link.create_process(term_type="xterm", term_size=(90, 30)) as shell,
        ):
            shell.stdin.write("stty size; pwd; exit 3\n")
            assert "30 90" in await shell.stdout.read()
            assert (await shell.wait()).exit_status == 3
    finally:
        await demo.stop()
    assert not demo.root.exists()
