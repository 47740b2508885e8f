"""`opsconsole web` as a process of its own, on a cluster that its journal tells."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.told import Told, told
from tests.core.clusters import MIN, Cluster
from tests.live.commands import OPSCONSOLE

PATIENCE_S = 60.0


def small_cluster(folder: Path) -> Told:
    c = Cluster({"olmo": 3, "vision": 1}, {f"gpu{n:02}": 8 for n in range(1, 5)})
    c.running("train", "vision", 8, 30 * MIN, owner="maria")
    return told(folder, c)


@dataclass
class Served:
    """`write_url` is empty where it was not asked for."""

    process: subprocess.Popen[str]
    url: str
    write_url: str

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://").rstrip("/")

    def consoles(self) -> list[list[str]]:
        """The words of each process that it has begun and that lives."""
        return [words for pid in self.pids() if (words := words_of(pid))]

    def pids(self) -> list[str]:
        return Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


def words_of(pid: str) -> list[str]:
    """Empty where the process has gone, or is about to."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


@contextmanager
def served(cluster: Told, *words: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [*OPSCONSOLE, "web", "--port", "0", *words],
        env=cluster.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        while said[-1] and "Ctrl-C" not in said[-1]:
            said.append(process.stdout.readline())
        urls = [line.split(": ")[-1].strip() for line in said if "://" in line]
        yield Served(process, urls[0], urls[1] if len(urls) > 1 else "")
    finally:
        process.kill()
        process.wait()
