"""Hosts at the far end of slow lines: they are connected to, stay fresh, and are not starved by a log that is read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core.observations import HostStale, HostUnreachable
from tests.live.commands import OPSCONSOLE
from tests.live.trio import Trio, make_trio
from tests.slowlink import SlowLink
from tests.sshd import Sshd, SshdFactory

pytestmark = pytest.mark.sshd
LOG_BYTES = 250_000  # five seconds of a line at its whole rate, more as base64


@pytest.fixture
def far_trio(sshd_factory: SshdFactory, tmp_path: Path) -> Iterator[Trio]:
    """300 ms there and back, 50 kB/s."""
    lines: list[SlowLink] = []

    def through(host: Sshd) -> SlowLink:
        lines.append(SlowLink(host.address, host.port).start())
        return lines[-1]

    made = make_trio(sshd_factory, tmp_path, through, interval="2s")  # as it is where nobody says otherwise
    try:
        made.lead()
        yield made
    finally:
        made.close()
        for line in lines:
            line.stop()


def test_a_log_that_is_followed_over_a_slow_line_starves_nobody(far_trio: Trio) -> None:
    trio = far_trio
    writer = f"head -c {LOG_BYTES} /dev/zero | tr '\\0' x; exec sleep 600"
    words = ("--name", "chatty", "--budget", "a", "--gpus", "2", "--min-runtime", "1s")
    chatty = trio.run("submit", "--yes", *words, "--", "sh", "-c", writer).strip()
    trio.wait(lambda: trio.started(chatty), "it to start")
    since = trio.store.last_seq()
    said = trio.inventory.with_name("said")
    with said.open("wb") as out:
        logs = subprocess.Popen([*OPSCONSOLE, "logs", "-f", chatty], env=trio.environment(), stdout=out)
    try:
        trio.wait(lambda: said.stat().st_size == LOG_BYTES, "the whole log")
        bad = [e for e in trio.store.tail(since) if isinstance(e.value, HostStale | HostUnreachable)]
        assert not bad, "a busy line is no dead line"
        trio.run("cancel", chatty, "--yes", "--wait")
        assert logs.wait(20) == 0
    finally:
        logs.kill()
        logs.wait()
