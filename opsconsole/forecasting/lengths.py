"""How long workloads run: the estimate of Kaplan and Meier (1958), from those that ended and those that still run.

To look only at what has ended would make long ones vanish: of a day, mostly short ones have ended. And what ended more
than a day ago is forgotten, so that a long run is only known because it lasted into that day: it counts from the length
that it had then (late entry).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from scheduler_core.units import DAY

LONGEST_MS = 365 * DAY


class Stay(NamedTuple):
    """Work of one workload, in ms: what had been done when we began to know of it, what is done now, is that all?"""

    entered: int
    worked: int
    ended: bool


class Lengths:
    """`times` at which work ended, in order, and the part of all work that `survives` each."""

    def __init__(self, stays: Sequence[Stay]) -> None:
        entered, left = sorted(s.entered for s in stays), sorted(s.worked for s in stays)
        ends = sorted(s.worked for s in stays if s.ended)
        self.ended = len(ends)
        self.times = sorted(set(ends))
        self.survives: list[float] = []
        part = 1.0
        for time in self.times:
            at_risk = bisect_left(entered, time) - bisect_left(left, time)
            number = bisect_right(ends, time) - bisect_left(ends, time)
            if left[-1] > time:
                at_risk = max(at_risk, number + 1)  # a late one proves that not all of them end here
            part *= 1 - number / at_risk
            self.survives.append(part)

    def after(self, worked: int) -> float:
        """The part that is longer than this."""
        at = bisect_right(self.times, worked)
        return self.survives[at - 1] if at else 1.0

    def draw(self, chance: float, worked: int, least: int) -> int:
        """A length in ms of what has `worked` so long; `chance` in (0, 1] is the part of its like that is longer.

        Beyond what is known half of all last as long again: the longer something has lasted, the longer it will. Then
        `least` stands for what has hardly begun.
        """
        known = self.after(worked) or 1.0  # it has outlasted all others
        wanted, first = chance * known, bisect_right(self.times, worked)
        at = bisect_left(self.survives, -wanted, first, key=lambda part: -part)
        if at < len(self.times):
            return self.times[at]
        last = max(worked, self.times[-1]) if self.times else max(worked, least)
        return min(round(last * (self.after(last) or known) / wanted), max(LONGEST_MS, worked + 1))
