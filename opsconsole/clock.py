"""Cluster time: wall time once, then the head node's boot-time clock. It never goes back and knows no NTP step."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

STEP_MS = 1000  # less than this is a time service at work
LONGEST_OFF_MS = 90 * 86_400_000  # a wall clock further ahead than this after a reboot is not believed


def boot_now_ms() -> int:
    """Milliseconds since this machine booted, suspended time included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def wall_now_ms() -> int:
    """For people, and as the first anchor; nothing that was promised depends on it."""
    return time.time_ns() // 1_000_000


class Facts(Protocol):
    """Where the anchor is kept: small facts of a store."""

    def get(self, key: str) -> str | None: ...
    def put(self, key: str, value: str) -> None: ...


class BootClock:
    """Milliseconds. The anchor is kept in the store, so that a restart goes on where time was.

    `last_ms` is the last instant journalled: time never runs behind it. After a reboot of the head node at least its
    uptime has passed since then; the wall clock says how much more, where it is plausible.
    """

    def __init__(
        self,
        store: Facts,
        last_ms: int = 0,
        boot: str | None = None,
        boot_now: Callable[[], int] = boot_now_ms,
        wall_now: Callable[[], int] = wall_now_ms,
    ) -> None:
        self._store, self._last, self._boot_now, self._wall_now = store, last_ms, boot_now, wall_now
        self.boot_id = boot if boot is not None else boot_id()
        self._at, self._cluster = self._anchor()

    def now(self) -> int:
        self._last = max(self._last, self._cluster + self._boot_now() - self._at)
        return self._last

    def keep(self) -> None:
        """The leader keeps its anchor for those who come after."""
        self._store.put("clock", json.dumps([self.boot_id, self._at, self._cluster]))

    def _anchor(self) -> tuple[int, int]:
        kept, at = self._store.get("clock"), self._boot_now()
        if kept is not None:
            boot, kept_at, cluster = json.loads(kept)
            if boot == self.boot_id and kept_at <= at:  # a boot id may be unknown, before and after
                return int(kept_at), int(cluster)
        wall = self._wall_now()
        if not self._last:
            return at, wall
        least = self._last + at
        return at, wall if least <= wall <= least + LONGEST_OFF_MS else least


class WallWatch:
    """Notices when somebody sets the wall clock. What a time service slews meanwhile is no step."""

    def __init__(self, boot_now: Callable[[], int] = boot_now_ms, wall_now: Callable[[], int] = wall_now_ms) -> None:
        self._boot_now, self._wall_now = boot_now, wall_now
        self._apart = self._look() or 0

    def stepped_ms(self) -> int:
        """Since the last call: forward, back where negative, 0 where it went as it should."""
        apart = self._look()
        if apart is None:
            return 0
        by, self._apart = apart - self._apart, apart
        return by if abs(by) >= STEP_MS else 0

    def _look(self) -> int | None:
        """Wall time less time since boot; None where this process was stopped between the two looks."""
        before, wall, after = self._boot_now(), self._wall_now(), self._boot_now()
        return wall - before if after - before < STEP_MS // 10 else None
