"""Waiting for what another task or process brings about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60.0  # on a machine that does much else
LOOK_S = 0.01


async def until(
    true: Callable[[], Any], what: str, task: asyncio.Task[None] | None = None, patience_s: float = PATIENCE_S
) -> None:
    """Until it is so. Fails with what was waited for, or as `task` did, which should bring it about."""
    end = time.monotonic() + patience_s
    while not true():
        if task is not None and task.done():
            task.result()
        assert time.monotonic() < end, f"waited {patience_s:.0f} s for {what}"
        await asyncio.sleep(LOOK_S)
