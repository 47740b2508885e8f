"""Workloads that testify: each writes down, on its host, when it started, that it lives, and when it was told to stop.

What these files say is independent of agents, transport, engine and journal. As a program (`testimony.py DIR`) it is
such a workload: it counts on its output, ten lines a second, until DIR/WORKLOAD.finish is there. All hosts of a test
share this machine's boot-time clock, so that stamps of different hosts can be compared.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

BEAT_S = 0.1
HOST = "OPSCONSOLE_TEST_HOST"  # in the environment of a test host's sessions: its name


@dataclass(frozen=True)
class Life:
    """One process of a run. Instants are boot-time seconds: `started` is the kernel's word, `last` is right to within a
    beat, however it ended.
    """

    token: str
    host: str
    gpus: tuple[str, ...]
    started: float
    last: float
    told: float | None  # SIGTERM came
    finished: bool  # it ended by itself
    alive: bool  # when it was looked at
    beats: int  # and as many lines of output

    @property
    def workload(self) -> str:
        return self.token.rpartition("~")[0]

    @property
    def attempt(self) -> int:
        return int(self.token.rpartition("~")[2])


def lives(directory: Path) -> list[Life]:
    """All that ever started, in order. A process that has not yet written its first line is not there yet."""
    found = [_life(path) for path in directory.glob("*~*.life")]
    return sorted((life for life in found if life is not None), key=lambda life: life.started)


def _life(path: Path) -> Life | None:
    token, host, pid, _ = path.name.rsplit(".", 3)
    alive = lives_now(int(pid))
    stamps = [line.split() for line in path.read_text().splitlines() if line.endswith(".")]
    if not stamps:
        return None
    kinds = {stamp[0]: float(stamp[1]) for stamp in stamps}
    gpus = tuple(stamps[0][2].split(",")) if stamps[0][2] != "none" else ()
    last = float(stamps[-1][1])
    return Life(
        token,
        host,
        gpus,
        kinds["start"],
        last,
        kinds.get("told"),
        "finish" in kinds,
        alive,
        sum(stamp[0] == "beat" for stamp in stamps),
    )


def lives_now(pid: int) -> bool:
    """A zombie that nobody reaps is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def twice(found: list[Life]) -> Iterator[str]:
    """Tokens that started twice on a host, attempts that lived at once, GPUs that two processes held at once."""
    for one, other in combinations(found, 2):
        if (one.token, one.host) == (other.token, other.host):
            yield f"{one.token} started twice on {one.host}"
        if other.started >= one.last:
            continue
        if one.workload == other.workload and one.attempt != other.attempt:
            yield f"{other.token} started while {one.token} lived"
        if one.host == other.host and set(one.gpus) & set(other.gpus):
            yield f"{other.token} had GPUs of {one.token} on {one.host}"


def early(found: list[Life], min_s: dict[str, float]) -> Iterator[str]:
    """Processes that were told to stop, or ended unfinished, before the min runtime of their run had passed (rule 11).

    `min_s`: of each workload; those that are not in it were ended by their owners or by their hosts.
    """
    begun: dict[str, float] = {}
    for life in found:
        begun[life.token] = max(life.started, begun.get(life.token, 0.0))
    for life in found:
        if life.finished or life.alive or life.workload not in min_s:
            continue
        ran = (life.last if life.told is None else life.told) - begun[life.token]
        if ran < min_s[life.workload] - (BEAT_S if life.told is None else 0.0):
            yield f"{life.token} on {life.host} was stopped after {ran:.2f} s of {min_s[life.workload]:g} s"


def testify(directory: Path) -> None:
    token, host = os.environ["OPSCONSOLE_RUN"], os.environ[HOST]
    path = directory / f"{token}.{host}.{os.getpid()}.life"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)

    def stamp(kind: str, more: str = "", at: float | None = None) -> None:
        at = time.clock_gettime(time.CLOCK_BOOTTIME) if at is None else at
        os.write(file, f"{kind} {at:.3f} {more} .\n".encode())

    def leave(signum: int, frame: object) -> None:
        stamp("told")
        os._exit(143)

    signal.signal(signal.SIGTERM, leave)
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])  # since boot, when we were forked
    stamp("start", os.environ["CUDA_VISIBLE_DEVICES"] or "none", ticks / os.sysconf("SC_CLK_TCK"))
    finish, count = directory / f"{os.environ['OPSCONSOLE_WORKLOAD']}.finish", 0
    while directory.exists() and not finish.exists():  # a test that was killed leaves nobody behind
        print(count, flush=True)
        count += 1
        stamp("beat")
        time.sleep(BEAT_S)
    stamp("finish")


if __name__ == "__main__":
    testify(Path(sys.argv[1]))
