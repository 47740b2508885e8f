"""`opsconsole serve` at a terminal: it shows what leading would do, asks, and says what it does."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

from tests.live.clusters import Live, live_cluster
from tests.live.test_reload import edited


def at_a_terminal(live: Live, answer: bytes | int) -> tuple[str, int]:
    """What it says, and its exit status. The answer to its question is typed, or a signal."""
    mine, its = pty.openpty()
    words = [sys.executable, "-m", "opsconsole", "serve"]
    leader = subprocess.Popen(
        words, env=live.environment(), stdin=its, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    os.close(its)
    assert leader.stdout is not None
    said = b""
    while b"Type yes: " not in said:
        said += os.read(leader.stdout.fileno(), 4096) or b"Type yes: but it ended"
    if isinstance(answer, bytes):
        os.write(mine, answer)
    else:
        leader.send_signal(answer)
    while answer == b"yes\n" and b"leads main" not in said:
        said += os.read(leader.stdout.fileno(), 4096) or b"leads main: but it ended"
    if answer == b"yes\n":
        leader.terminate()
    rest, _ = leader.communicate(timeout=30)
    os.close(mine)
    return (said + rest).decode(), leader.returncode


async def test_leading_is_shown_asked_for_and_told() -> None:
    async with live_cluster(2) as live:
        said, status = at_a_terminal(live, b"no\n")
        assert "2 of 2 hosts answered; 0 live runs.\nAt once: nothing.\n" in said and "main.db" in said
        assert "not confirmed; nothing was done" in said and status == 1
        said, status = at_a_terminal(live, signal.SIGINT)
        assert said.endswith("not leading; nothing was done\n") and status == 130
        said, status = at_a_terminal(live, b"yes\n")
        assert "leads main, epoch 3" in said and "no longer leading; runs go on by themselves" in said and status == 0
        edited(live.cluster.inventory, "retry_delay: 5s", "retry_delay: 6s")
        said, status = at_a_terminal(live, b"no\n")
        assert "Inventory: policy retry_delay: 5s → 6s" in said
        assert "say --yes where nobody can be asked" in live.run("serve", status=2)
