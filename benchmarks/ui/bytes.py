"""What the console writes to its terminal for each poll, at rest, at 120x40 in a real pseudo-terminal.

python -m benchmarks.ui.bytes [SECONDS]

64 hosts with 8 GPUs are polled every two seconds, each at a moment of its own, as a leader polls them: every reading is
news, so something differs in every frame.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field, replace

from benchmarks.console.screen import FRAME, on_screen
from benchmarks.figures import say

HOSTS, POLL_S = 64, 2.0
PAGES = {"overview": "1", "hosts": "2"}
SLOW_GOAL = 4000  # bytes: 2 kB/s is what a bad line still carries
SETTLE_S = 4.0


def polled_app(slow_link: bool) -> None:
    """The console on hosts whose readings change. It is a process of its own."""
    from opsconsole.cli.console import present
    from opsconsole.presenting.view import ClusterView
    from opsconsole.settings import Settings
    from opsconsole.ui.app import OpsConsoleApp
    from opsconsole.ui.desk import Desk
    from tests.ui.worlds import FakeSource, probe, wide_world

    @dataclass
    class Polled(FakeSource):
        heard: dict[str, float] = field(default_factory=dict)

        def view(self) -> ClusterView:
            return replace(super().view(), wall_ms=time.time_ns() // 1_000_000)

        async def run(self) -> None:
            names = sorted(self.cluster.hosts)
            turn = 0
            while True:
                name = names[turn % len(names)]
                self.heard[name] = time.monotonic()
                self.probes[name] = probe(8, busy=turn * 7 % 100)
                self.ages = {host: time.monotonic() - at for host, at in self.heard.items()}
                self.changed()
                turn += 1
                await asyncio.sleep(POLL_S / len(names))

    world = wide_world(HOSTS, 8)
    source = Polled(world.cluster, probes=world.probes)
    asyncio.run(present(OpsConsoleApp(source, desk=Desk(Settings(slow_link=slow_link)))))


def main(seconds: str = "20") -> None:
    for words, what, goal in (((), "at ease", None), (("slow",), "over a slow link", SLOW_GOAL)):
        with on_screen([sys.executable, "-m", "benchmarks.ui.bytes", "app", *words]) as screen:
            screen.until(FRAME)
            for page, key in PAGES.items():
                screen.press(key)
                screen.idle(SETTLE_S)
                before = screen.sent
                screen.idle(float(seconds))
                found = (screen.sent - before) * POLL_S / float(seconds)
                say(f"{page}, {what}, for each poll of {HOSTS} hosts", found, "bytes", goal)


if __name__ == "__main__":
    if sys.argv[1:2] == ["app"]:
        polled_app("slow" in sys.argv)
    else:
        main(*sys.argv[1:])
