"""Background work of the console: every failure is shown, counted and tried again; none ends the app."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from opsconsole.errors import OpsConsoleError
from opsconsole.presenting.text import clean

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
GOOD_AFTER_S = 10.0


@dataclass
class Alerts:
    """What stands against the console itself, by name. An alert stays until it is over."""

    texts: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def failed(self, name: str, error: BaseException) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        times = f" ({self.counts[name]} times)" if self.counts[name] > 1 else ""
        words = clean(str(error), 160) or "no message"
        kind = "" if isinstance(error, OpsConsoleError) else f"{type(error).__name__}: "  # ours are said in full
        self.texts[name] = f"{name} failed{times}: {kind}{words}"

    def say(self, name: str, text: str) -> None:
        self.texts[name] = clean(text)

    def over(self, name: str) -> None:
        self.texts.pop(name, None)


@dataclass
class Supervisor:
    """Runs named coroutines until they end or `close`. One that raises is shown and begun again, later each time."""

    alerts: Alerts
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """A second one of a name is refused while the first runs: it is skipped, not queued."""
        running = self.tasks.get(name)
        if running is None or running.done():
            self.tasks[name] = asyncio.create_task(self._again(name, work), name=name)

    def once(self, name: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Runs it one time; its failure is shown. False where one of that name still runs."""
        running = self.tasks.get(name)
        if running is not None and not running.done():
            return False
        self.tasks[name] = asyncio.create_task(self._one(name, work), name=name)
        return True

    async def _again(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        delay_s = FIRST_DELAY_S
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            recovery = loop.call_later(GOOD_AFTER_S, self.alerts.over, name)
            try:
                await work()
                return
            except asyncio.CancelledError:
                raise
            except Exception as error:
                self.alerts.failed(name, error)
            finally:
                recovery.cancel()
            delay_s = FIRST_DELAY_S if loop.time() - begun > GOOD_AFTER_S else min(delay_s * 2, LONGEST_DELAY_S)
            await asyncio.sleep(delay_s)

    async def _one(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
            self.alerts.over(name)
        except Exception as error:
            self.alerts.failed(name, error)

    async def close(self, within_s: float = 1.0) -> None:
        """Cancels all; what does not end in time is left behind, so that leaving never hangs."""
        pending = [task for task in self.tasks.values() if not task.done()]
        for task in pending:
            task.cancel()
        if pending:
            with contextlib.suppress(Exception):
                await asyncio.wait(pending, timeout=within_s)

    async def finish(self, within_s: float) -> None:
        """Lets all end by themselves; what does not in time is cancelled."""
        pending = [task for task in self.tasks.values() if not task.done()]
        if pending:
            await asyncio.wait(pending, timeout=within_s)
        await self.close(0.2)
