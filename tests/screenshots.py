"""Redraws screenshots/ from the demo: a fixed seed, and a clock that stands still two minutes into it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.source import OutputPiece
from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import By, DrainRequested
from scheduler_core.units import SECOND
from tests.demo_on_a_clock import DemoOnAClock
from tests.ui.driving import settled
from tests.ui.worlds import FakeSource, happenings, probe

PLACE = Path(__file__).parent.parent / "screenshots"
SCREENS = {
    "overview": "1",
    "hosts": "2",
    "queue": "3",
    "budgets": "4",
    "drains": "5",
    "timeline": "7",
    "log": "8",
    "host": "colon g o space g p u 0 6 enter",
    "workload": "3 tab enter",
    "drain-plan": "2 j j D",
    "explain": "escape x",
    "help": "escape question_mark",
    "sort": "escape 3 S space space",
    "columns": "escape c j space",
}


def demo_world() -> FakeSource:
    """Two minutes into the demo: a full cluster, a queue, a GPU that fell off the bus, a drain for it."""
    demo = DemoOnAClock(seed=1)
    source = FakeSource(demo, leader="this console")
    demo.run(118)
    by = By("kim", "XID 79 on GPU 3, ticket 118")
    demo.later(2 * SECOND, DrainRequested(DrainId("d1"), HostName("gpu06"), by))
    demo.run(4)
    source.probes = {name: probe(8, 60 + 5 * n) for n, name in enumerate(demo.hosts)}
    source.probes["gpu06"] = probe(8, 80, failed=3) | {"uptime_s": 86_400.0}
    text = "NVRM: Xid (PCI:0000:13:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    source.kernels["gpu06"] = [{"monotonic_s": 86_350.0, "text": text, "xid": {"code": 79, "pci": "0000:13:00"}}]
    lines = "".join(f"step {n:4}  loss {4 / (1 + n / 20):.3f}  14.2k tokens/s\n" for n in range(1, 90))
    source.outputs = {run: [OutputPiece(lines.encode())] for run in source.state.runs}
    source.happenings = happenings(demo.steps, demo.now)
    return source


async def draw() -> None:
    """Every screen at 120×32, and a dialog of each kind."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    PLACE.mkdir(exist_ok=True)
    app = OpsConsoleApp(demo_world())
    async with app.run_test(size=(120, 32)) as pilot:
        for name, keys in SCREENS.items():
            await pilot.press(*keys.split())
            await settled(app, pilot)
            (PLACE / f"{name}.svg").write_text(app.export_screenshot(title="opsconsole"))


if __name__ == "__main__":
    asyncio.run(draw())
    print(f"wrote {', '.join(sorted(p.name for p in PLACE.glob('*.svg')))}")
