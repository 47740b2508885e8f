"""Long tables: a picture of 10,000 waiting, and keys on it. CPU time, since other work disturbs the clock.

python -m benchmarks.ui.tables [WAITING]
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from opsconsole.presenting.queue import queue_table
from opsconsole.ui.app import OpsConsoleApp
from tests.ui.worlds import long_queue

TIMES = 20


def cpu_ms(work: Callable[[], object], times: int = TIMES) -> list[float]:
    """What each call took, sorted."""
    took = []
    for _ in range(times):
        begun = time.process_time()
        work()
        took.append((time.process_time() - begun) * 1000)
    return sorted(took)


async def keys_ms(press: Callable[[], Awaitable[None]], times: int = TIMES) -> list[float]:
    took = []
    for _ in range(times):
        begun = time.process_time()
        await press()
        took.append((time.process_time() - begun) * 1000)
    return sorted(took)


def line(what: str, took: list[float]) -> None:
    print(f"{what}: median {took[len(took) // 2]:.1f} ms, worst {took[-1]:.1f} ms")


async def console(waiting: int) -> None:
    source = long_queue(waiting)
    async with OpsConsoleApp(source).run_test(size=(120, 40)) as pilot:
        app = pilot.app
        assert isinstance(app, OpsConsoleApp)
        await pilot.press("3")
        await pilot.pause()
        line("a new picture of the queue page", cpu_ms(app.redraw))
        for key in ("j", "pagedown", "G", "g"):
            line(f"key {key}", await keys_ms(lambda key=key: pilot.press(key)))  # type: ignore[misc]
        table = app.table
        assert table is not None
        line("sorted by age, a new picture", cpu_ms(lambda: (table.sort_by("waited"), app.redraw()), 5))
        await pilot.press("1")
        await pilot.pause()
        line("a new picture of the overview", cpu_ms(app.redraw))


def main(waiting: str = "10000") -> None:
    source = long_queue(int(waiting))
    view = source.view()
    line(f"queue_table, {waiting} waiting, 40 rows looked at", cpu_ms(lambda: queue_table(view).rows[:40]))
    line("the same, every row looked at", cpu_ms(lambda: list(queue_table(view).rows), 5))
    asyncio.run(console(int(waiting)))


if __name__ == "__main__":
    main(*sys.argv[1:])
