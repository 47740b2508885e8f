"""Cluster time: wall time once, then the head node's boot-time clock. It never goes back and knows no NTP step."""

from __future__ import annotations

import json
import time

from opsconsole.store.lease import boot_id, boot_now_ms
from opsconsole.store.store import Store


class BootClock:
    """Milliseconds. The anchor is kept in the store, so that a restart goes on where time was; `last` is the last
    journalled."""

    def __init__(self, store: Store, last_ms: int = 0) -> None:
        self._store, self._last = store, last_ms
        self._boot, self._at, self._cluster = self._anchor()

    def now(self) -> int:
        self._last = max(self._last, self._cluster + boot_now_ms() - self._at)
        return self._last

    def keep(self) -> None:
        """The leader keeps its anchor for those who come after."""
        self._store.put("clock", json.dumps([self._boot, self._at, self._cluster]))

    def _anchor(self) -> tuple[str, int, int]:
        kept = self._store.get("clock")
        if kept is not None:
            boot, at, cluster = json.loads(kept)
            if boot == boot_id():
                return boot, at, cluster
        # First use, or a reboot of the head node: its boot-time clock began anew.
        return boot_id(), boot_now_ms(), max(self._last, time.time_ns() // 1_000_000)
