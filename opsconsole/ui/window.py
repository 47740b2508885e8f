"""The write window: read-only is the start, and what was opened closes by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from opsconsole.presenting.rows import Cell
from opsconsole.spans import parse_span_ms

SPANS = ("15m", "30m", "1h", "2h", "8h")  # of those that people choose
LONGEST_S = 8 * 3600.0


@dataclass
class WriteWindow:
    """`now` is a monotonic clock: a step of the wall clock neither closes nor opens it."""

    now: Callable[[], float] = field(default=time.monotonic)
    reason: str = ""
    until: float = 0.0

    @property
    def left_s(self) -> float:
        return max(0.0, self.until - self.now())

    @property
    def open(self) -> bool:
        return self.left_s > 0

    def begin(self, span_s: float, reason: str) -> None:
        self.until, self.reason = self.now() + min(span_s, LONGEST_S), reason

    def end(self) -> None:
        self.until = 0.0

    def cell(self) -> Cell:
        if not self.open:
            return Cell("READ-ONLY", "dim")
        left = int(self.left_s + 0.999)
        clock = (
            f"{left // 3600}:{left % 3600 // 60:02}:{left % 60:02}"
            if left >= 3600
            else f"{left // 60:02}:{left % 60:02}"
        )
        return Cell(f"WRITE {clock}", "warn")


def parse_window(text: str) -> tuple[float, str]:
    """`15m reason` to seconds and reason. Raises ValueError with what is missing."""
    word, _, reason = text.strip().partition(" ")
    if not word:
        raise ValueError("say for how long and why, for example: write 15m change of gpu022")
    span_s = parse_span_ms(word) / 1000
    if not reason.strip():
        raise ValueError("say why: the reason is kept with what you do")
    if not 0 < span_s <= LONGEST_S:
        raise ValueError("a write window is longer than nothing and at most 8h")
    return span_s, reason.strip()
