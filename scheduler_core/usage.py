"""Ledgers (rules 2 to 4): exact integrals of GPUs held, per budget, over a sliding window.

Amounts are GPU-thousandths x milliseconds, integers throughout. A ledger is a step function of the rate of use with its
running integral, so that usage in any window is a difference of two integrals: nothing is decayed, sampled or rounded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_core.ids import BudgetId
from scheduler_core.units import DAY

RETENTION_MS = 31 * DAY  # longer than any lookback that the configuration accepts
TRIM_STEPS = 4096
NEVER = 1 << 62


class Line(NamedTuple):
    """An amount: `level + slope x t` at every instant t from `since` to `until`, while nothing else changes it."""

    level: int
    slope: int
    since: int
    until: int


@dataclass(slots=True)
class StepFunction:
    """A rate over time and its integral. `rates[i]` holds from `times[i]` on; `sums[i]` is the integral until there."""

    times: list[int] = field(default_factory=list)
    rates: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    seeded: int = 0  # charged in the window before this ledger began: the snapshot file's `usage`

    @property
    def rate(self) -> int:
        return self.rates[-1] if self.rates else 0

    def change(self, at: int, delta: int) -> None:
        """The rate changes by `delta` from `at` on. An instant that has passed corrects everything since."""
        if self.times and at < self.times[-1]:
            self._correct(max(at, self.times[0]), delta)
        elif not self.times:
            self.times, self.rates, self.sums = [at], [delta], [0]
        elif at == self.times[-1]:
            self.rates[-1] += delta
        else:
            self.sums.append(self.until(at))
            self.rates.append(self.rates[-1] + delta)
            self.times.append(at)
            if len(self.times) > TRIM_STEPS:
                self._trim(at)

    def _correct(self, at: int, delta: int) -> None:
        first = bisect_left(self.times, at)
        if self.times[first] != at:
            self.sums.insert(first, self.sums[first - 1] + self.rates[first - 1] * (at - self.times[first - 1]))
            self.rates.insert(first, self.rates[first - 1])
            self.times.insert(first, at)
        for i in range(first, len(self.times)):
            self.rates[i] += delta
            self.sums[i] += delta * (self.times[i] - at)

    def until(self, at: int) -> int:
        """The integral from the beginning to `at`, which is no earlier than the last change."""
        return self.sums[-1] + self.rates[-1] * (at - self.times[-1]) if self.times else 0

    def line(self, now: int, span: int) -> Line:
        """The integral over (t - span, t], what was seeded included, for all t from `now` on."""
        times, rates, sums = self.times, self.rates, self.sums
        if not times:
            return Line(self.seeded, 0, now, NEVER)
        level, slope = sums[-1] - rates[-1] * times[-1] + self.seeded, rates[-1]
        if times[0] >= now - span:
            return Line(level, slope, now, times[0] + span)
        i = bisect_right(times, now - span) - 1
        until = times[i + 1] + span if i + 1 < len(times) else NEVER
        return Line(level - sums[i] + rates[i] * (span + times[i]), slope - rates[i], now, until)

    def within(self, now: int, span: int) -> int:
        """The integral over (now - span, now], what was seeded included."""
        line = self.line(now, span)
        return line.level + line.slope * now

    def _trim(self, now: int) -> None:
        """Forget steps that no window can reach; the integral keeps its origin."""
        keep = bisect_right(self.times, now - RETENTION_MS) - 1
        if keep > TRIM_STEPS // 2:
            del self.times[:keep], self.rates[:keep], self.sums[:keep]


_NOTHING = StepFunction()


@dataclass(slots=True)
class Ledgers:
    """What each budget has used, allocated and unallocated, and what the cluster had in service."""

    allocated: dict[BudgetId, StepFunction] = field(default_factory=dict)
    unallocated: dict[BudgetId, StepFunction] = field(default_factory=dict)
    service: StepFunction = field(default_factory=StepFunction)

    def charge(self, chain: Iterable[BudgetId], at: int, delta: int, allocated: bool) -> None:
        """The leaf and all its ancestors hold `delta` more GPU-thousandths from `at` on (rule 2)."""
        ledger = self.allocated if allocated else self.unallocated
        for budget in chain:
            step = ledger.get(budget)
            if step is None:
                step = ledger[budget] = StepFunction()
            step.change(at, delta)

    def seed(self, chain: Iterable[BudgetId], amount: int, allocated: bool = True) -> None:
        """Usage from before the ledger began, for the leaf and its ancestors."""
        ledger = self.allocated if allocated else self.unallocated
        for budget in chain:
            ledger.setdefault(budget, StepFunction()).seeded += amount

    def used(self, budget: BudgetId, now: int, lookback: int, allocated: bool = True) -> int:
        step = (self.allocated if allocated else self.unallocated).get(budget)
        return step.within(now, lookback) if step is not None else 0

    def line(self, budget: BudgetId, now: int, lookback: int) -> Line:
        """What the budget has used, allocated, as it will move by time alone."""
        return self.allocated.get(budget, _NOTHING).line(now, lookback)

    def in_service(self, now: int, lookback: int) -> int:
        """GPU time in service in the window. Time before the first service counts with today's GPUs (rule 4)."""
        service = self.service
        if service.seeded or not service.times:
            return service.within(now, lookback)
        before_first = max(0, service.times[0] - (now - lookback))
        return service.within(now, lookback) + service.rate * before_first
