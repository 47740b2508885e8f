"""Long tables: a picture of 10,000 waiting, of 1,024 hosts, and keys on it. CPU time, since other work disturbs the
clock.

python -m benchmarks.ui.tables [WAITING] [HOSTS]
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from opsconsole.presenting.filtering import parse_filter
from opsconsole.presenting.host_rows import hosts_table
from opsconsole.presenting.queue import queue_table
from opsconsole.ui.app import OpsConsoleApp
from tests.ui.worlds import FakeSource, long_queue, wide_world

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


ARRANGED = {
    "sorted by -waited": ("", ("-waited",)),
    "sorted by why, -gpus": ("", ("why", "-gpus")),
    "filtered by gpus>=8 waited>0": ("gpus>=8 waited>0", ()),
    "filtered by a word": ("first", ()),
    "filtered by a pattern": ("workload~q0+[1-9]$", ()),
}


async def console(source: FakeSource, page: str) -> None:
    async with OpsConsoleApp(source).run_test(size=(120, 40)) as pilot:
        app = pilot.app
        assert isinstance(app, OpsConsoleApp)
        await pilot.press(page)
        await pilot.pause()
        table = app.table
        assert table is not None
        line("a new picture of the page", cpu_ms(app.redraw))
        for key in ("j", "pagedown", "G", "g"):
            line(f"key {key}", await keys_ms(lambda key=key: pilot.press(key)))  # type: ignore[misc]
        if page == "3":
            for what, (text, order) in ARRANGED.items():
                table.show_as(parse_filter(text, table.rowset.view.columns), order, ())
                line(f"a new picture, {what}", cpu_ms(app.redraw, 5))
        await pilot.press("1")
        await pilot.pause()
        line("a new picture of the overview", cpu_ms(app.redraw))


def main(waiting: str = "10000", hosts: str = "1024") -> None:
    print(f"{waiting} waiting")
    queue, cluster = long_queue(int(waiting)), wide_world(int(hosts), 8)
    line("its rows, 40 of them looked at", cpu_ms(lambda: queue_table(queue.view()).rows[:40]))
    line("the same, every row looked at", cpu_ms(lambda: list(queue_table(queue.view()).rows), 5))
    asyncio.run(console(queue, "3"))
    print(f"{hosts} hosts of 8 GPUs")
    line("their rows, 40 of them looked at", cpu_ms(lambda: hosts_table(cluster.view()).rows[:40]))
    line("the same, every row looked at", cpu_ms(lambda: list(hosts_table(cluster.view()).rows), 5))
    asyncio.run(console(cluster, "2"))


if __name__ == "__main__":
    main(*sys.argv[1:])
