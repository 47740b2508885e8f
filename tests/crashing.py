"""A process that kills itself at one of its store's write points."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count


def dies_at(stop_at: int) -> Callable[[str], None]:
    """A store's `before_write`: kill -9 at the write point of that number, counted from 1."""
    points = count(1)

    def before_write(point: str) -> None:
        if next(points) == stop_at:
            os.kill(os.getpid(), signal.SIGKILL)

    return before_write
