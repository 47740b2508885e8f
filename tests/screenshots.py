"""Redraws screenshots/ from the screens' test world: a fixed seed, a clock that stands still."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from opsconsole.ui.app import OpsConsoleApp
from tests.ui.driving import settled
from tests.ui.worlds import busy_world

PLACE = Path(__file__).parent.parent / "screenshots"
SCREENS = {
    "overview": "1",
    "hosts": "2",
    "queue": "3",
    "budgets": "4",
    "drains": "5",
    "timeline": "7",
    "drain-plan": "2 j j D",
    "explain": "escape x",
    "help": "escape question_mark",
}


async def draw() -> None:
    """Every screen at 120×32, and a dialog of each kind."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    PLACE.mkdir(exist_ok=True)
    app = OpsConsoleApp(busy_world())
    async with app.run_test(size=(120, 32)) as pilot:
        for name, keys in SCREENS.items():
            await pilot.press(*keys.split())
            await settled(app, pilot)
            (PLACE / f"{name}.svg").write_text(app.export_screenshot(title="opsconsole"))


if __name__ == "__main__":
    asyncio.run(draw())
    print(f"wrote {', '.join(sorted(p.name for p in PLACE.glob('*.svg')))}")
