"""Redraws screenshots/ from the screens' test world: a fixed seed, a clock that stands still."""

from __future__ import annotations

import asyncio
from pathlib import Path

from opsconsole.ui.app import OpsConsoleApp
from tests.ui.worlds import busy_world

PLACE = Path(__file__).parent.parent / "screenshots"
SCREENS = {"overview": "1", "hosts": "2", "queue": "3", "budgets": "4", "drains": "5", "timeline": "7"}


async def draw() -> None:
    """Every screen at 120×40, and the plan of a drain."""
    PLACE.mkdir(exist_ok=True)
    app = OpsConsoleApp(busy_world())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.5)
        for name, key in SCREENS.items():
            await pilot.press(key)
            await pilot.pause(0.3)
            (PLACE / f"{name}.svg").write_text(app.export_screenshot(title="opsconsole"))
        await pilot.press("2", "D")
        await pilot.pause(0.5)
        (PLACE / "drain-plan.svg").write_text(app.export_screenshot(title="opsconsole"))


if __name__ == "__main__":
    asyncio.run(draw())
    print(f"wrote {', '.join(sorted(p.name for p in PLACE.glob('*.svg')))}")
