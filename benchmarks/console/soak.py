"""A console that stays open for 10,000 polls of a cluster that goes on: memory and the time that keys take stay flat.

python -m benchmarks.console.soak [POLLS]
"""

from __future__ import annotations

import asyncio
import sys
import time
from statistics import median

from benchmarks.figures import say
from benchmarks.ssh.leading import memory_mb
from opsconsole.ui.app import OpsConsoleApp
from tests.ui.living import LivingWorld
from tests.ui.test_soak import KEYS

POLLS = 10_000
PARTS = 10
KEY_EVERY = 5
GROWTH_PERCENT = 10.0


async def soak(polls: int) -> None:
    """The first tenth warms up; the last is compared with the second."""
    world, parts = LivingWorld(), []
    async with OpsConsoleApp(world.source).run_test(size=(120, 40)) as pilot:
        app = pilot.app
        assert isinstance(app, OpsConsoleApp)
        for part in range(PARTS):
            took = []
            for number in range(polls // PARTS):
                world.poll()
                app.redraw()
                if number % KEY_EVERY == 0:
                    begun = time.process_time()
                    await pilot.press(KEYS[number // KEY_EVERY % len(KEYS)])
                    took.append((time.process_time() - begun) * 1000)
            parts.append((memory_mb(), median(took)))
            memory, key = parts[-1]
            print(f"after {(part + 1) * polls // PARTS} polls: {memory:.1f} MB, a key {key:.1f} ms", flush=True)
    for what, at in (("memory", 0), ("a key", 1)):
        grown = 100 * (parts[-1][at] / parts[1][at] - 1)
        say(f"{polls} polls, {what}: last tenth against the second", grown, "% more", GROWTH_PERCENT)


if __name__ == "__main__":
    asyncio.run(soak(int(sys.argv[1]) if len(sys.argv) > 1 else POLLS))
