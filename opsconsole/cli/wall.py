"""The time that screens show: it never jumps back, whatever somebody does to the clock of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from opsconsole.clock import boot_now_ms, wall_now_ms
from opsconsole.presenting.text import clock, span

STEP_MS = 2_000  # less is a time service at work
TOLD_MS = 600_000  # for so long a step forward is told; one back is told for as long as the clocks are apart


@dataclass
class ScreenClock:
    """Wall time in ms. After a step back it goes on by the time since boot, until the clock is there again."""

    boot_now: Callable[[], int] = boot_now_ms
    wall_now: Callable[[], int] = wall_now_ms
    _boot: int = field(init=False)
    _shown: int = field(init=False)
    _said: str = ""
    _until: int | None = None  # boot time; None: as long as it lasts

    def __post_init__(self) -> None:
        self._boot, self._shown = self.boot_now(), self.wall_now()

    def now(self) -> int:
        boot, wall = self.boot_now(), self.wall_now()
        due = self._shown + boot - self._boot
        if wall - due > STEP_MS:
            self._tell(f"was set forward by {span(wall - due)} at {clock(wall)}", boot + TOLD_MS)
        elif wall - due < -STEP_MS and not self._behind:
            by = span(due - wall)
            what = f"was set back by {by} at {clock(due)}"
            self._tell(f"{what}: times on this screen go on as if it had not been", None)
        elif wall >= due - STEP_MS and self._behind:
            self._tell("", None)
        self._boot, self._shown = boot, due if self._behind else max(wall, self._shown)
        return self._shown

    @property
    def alarm(self) -> str:
        """What people have to know of it; empty where the clock goes as it should."""
        over = self._until is not None and self._boot >= self._until
        return f"the clock of this machine {self._said}" if self._said and not over else ""

    @property
    def _behind(self) -> bool:
        return bool(self._said) and self._until is None

    def _tell(self, text: str, until: int | None) -> None:
        self._said, self._until = text, until
