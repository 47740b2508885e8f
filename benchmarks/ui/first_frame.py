"""The first frame in a real pseudo-terminal: from the start of the process, and from the start of the app.

python -m benchmarks.ui.first_frame [TIMES]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.console.screen import FRAME, on_screen, opsconsole

INVENTORY = 'hosts:\n  - {name: "gpu[01-64]", gpus: 8}\nbudgets:\n  - {name: olmo, weight: 3}\n'
LEAST = """
from textual.app import App
from textual.widgets import Static

class Least(App):
    def compose(self):
        yield Static("Availability")

Least().run()
"""  # what Textual alone costs, on this machine at this moment


def first_frame(words: Sequence[str]) -> tuple[float, float]:
    """Seconds until the first frame has been written: on the clock, and of CPU."""
    with on_screen(words) as screen:
        return screen.until(FRAME), screen.cpu_s()


async def app_start() -> float:
    """Seconds from making the app to its first frame, everything imported."""
    from opsconsole.ui.app import OpsConsoleApp
    from tests.ui.worlds import busy_world

    source = busy_world()
    begun = time.perf_counter()
    async with OpsConsoleApp(source).run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        return time.perf_counter() - begun


def main(times: str = "5") -> None:
    with tempfile.TemporaryDirectory() as made:
        inventory = Path(made) / "inventory.yaml"
        inventory.write_text(INVENTORY + f"state_dir: {made}/state\n")
        for what, words in (
            ("the least Textual app", [sys.executable, "-c", LEAST]),
            ("opsconsole", opsconsole(inventory)),
        ):
            first_frame(words)  # writes byte code
            took = sorted(first_frame(words) for _ in range(int(times)))
            cpu = min(cpu for _, cpu in took)
            print(f"{what}, process to first frame: best {took[0][0] * 1000:.0f} ms, ", end="")
            print(f"worst {took[-1][0] * 1000:.0f} ms, CPU {cpu * 1000:.0f} ms")
    starts = sorted(asyncio.run(app_start()) for _ in range(int(times)))
    print(f"app to first frame: best {starts[0] * 1000:.0f} ms, worst {starts[-1] * 1000:.0f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
