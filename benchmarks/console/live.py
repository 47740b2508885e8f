"""A console that leads 1,024 hosts over SSH with 10,000 workloads in its store: to the first frame, connected, at rest,
under keys, in a storm of reconnects; then with every host down.

python -m benchmarks.console.live [HOSTS] [WAITING]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.console.cluster import Hosts, serving
from benchmarks.console.screen import FRAME, Screen, measurer_first, on_screen, opsconsole
from benchmarks.figures import say

HOSTS, WAITING = 1024, 10_000
REST_S = 30.0
SETTLE_S = 8.0
KEYS, STORM_KEYS = 300, 80
PAUSE_S = (0.03, 0.15)  # between two keys
STARTS = 5
PAGES = {"1": "overview", "2": "hosts", "3": "queue"}


def main(hosts: int = HOSTS, waiting: int = WAITING) -> None:
    if not measurer_first():
        print("not at real-time priority: figures on the clock depend on what else this machine does")
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        with serving(root, hosts) as servers:
            fill_apart(servers.inventory, waiting)
            lead(servers, hosts)
        all_down(servers.inventory, hosts)


def fill_apart(inventory: Path, waiting: int) -> None:
    """In a process of its own, so that this one stays small and awake."""
    subprocess.run([sys.executable, "-m", "benchmarks.console.cluster", str(inventory), str(waiting)], check=True)


def lead(servers: Hosts, hosts: int) -> None:
    with on_screen(opsconsole(servers.inventory, "--lead")) as screen:
        frame_s = screen.until(FRAME)
        connected_s = screen.until(rf"(?<!\d){hosts}●")
        say(f"{hosts} hosts, console that leads: first frame to all connected", connected_s - frame_s, "s", 4)
        screen.idle(SETTLE_S)
        for key, page in PAGES.items():
            screen.press(key)
            rest(screen, f"{hosts} hosts, {page} page")
        say("its memory", screen.memory_mb(), "MB", 150, f"{screen.memory_mb('VmHWM'):.0f} MB at most so far")
        screen.press("2")
        keys("key to paint", moves(screen, hosts, KEYS), 15, 50)
        servers.cut()
        keys("key to paint while all reconnect", moves(screen, hosts, STORM_KEYS), None, 100)
        began = time.perf_counter()
        screen.until(rf"(?<!\d){hosts}●")
        say("all back, after those keys", time.perf_counter() - began, "s")


def rest(screen: Screen, what: str) -> None:
    screen.idle(2.0)
    cpu, sent = screen.cpu_s(), screen.sent
    screen.idle(REST_S)
    say(f"{what}, nobody touches it", 100 * (screen.cpu_s() - cpu) / REST_S, "% of a core", 8)
    say(f"{what}: sent to the terminal", (screen.sent - sent) / REST_S / 1000, "kB/s")


def moves(screen: Screen, hosts: int, count: int) -> list[float]:
    """Down and up the list of hosts, as fast as a finger: what each took, sorted."""
    draw, took = Random(1), []
    screen.press("g")
    screen.idle(0.5)
    for key, row in walk(hosts, count):
        took.append(screen.key_ms(key, cursor_on(row)))
        screen.idle(draw.uniform(*PAUSE_S))
    return sorted(took)


def walk(hosts: int, count: int) -> Iterator[tuple[str, int]]:
    row, step = 0, 1
    for _ in range(count):
        if not 0 <= row + step < min(hosts, 100):
            step = -step
        row += step
        yield ("j" if step > 0 else "k"), row


def cursor_on(row: int) -> str:
    """As a host's row is painted when the cursor stands on it."""
    return rf"> (\x1b\[[0-9;]*m)*gpu{row:04}"


def keys(what: str, took: list[float], median: float | None, p99: float) -> None:
    say(f"{what}, {len(took)} keys: median", took[len(took) // 2], "ms", median)
    say(f"{what}: p99", took[int(len(took) * 0.99)], "ms", p99, f"worst {took[-1]:.0f} ms")


def all_down(inventory: Path, hosts: int) -> None:
    """Nobody listens there any more."""
    took = sorted(first_frame(inventory) for _ in range(STARTS + 1))  # the first writes byte code
    say(f"{hosts} hosts down, process to first frame", took[0] * 1000, "ms", 300, f"worst {took[-1] * 1000:.0f} ms")


def first_frame(inventory: Path) -> float:
    with on_screen(opsconsole(inventory, "--lead")) as screen:
        return screen.until(FRAME)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
