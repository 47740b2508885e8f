"""The figures of rule 31 from a list of events alone, interval by interval: slow, and written apart from the meter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from opsconsole.simulating.replay import Event
from scheduler_core.budget import BudgetTree
from scheduler_core.ids import BudgetId
from scheduler_core.workload import Workload

HOUR = 3_600_000
Interval = tuple[int, int, int]  # from, to, GPUs


def overlap(intervals: Iterable[Interval], begin: int, end: int) -> int:
    """GPUs x ms within."""
    return sum(gpus * max(0, min(to, end) - max(since, begin)) for since, to, gpus in intervals)


class Brute:
    """Of one replay, from `begin` to `end`."""

    def __init__(
        self, events: Sequence[Event], workloads: Sequence[Workload], tree: BudgetTree, gpus: int, begin: int, end: int
    ) -> None:
        self.tree, self.gpus, self.begin, self.end = tree, gpus, begin, end
        self.workloads = {str(w.id): w for w in workloads}
        at = {(e.kind, e.run or e.workload): e.at for e in events}
        self.submitted = {e.workload: e.at for e in events if e.kind == "submit"}
        self.ended = {e.workload: e.at for e in events if e.kind == "end"}
        self.runs = [(e.workload, e.at, at.get(("release", e.run), end)) for e in events if e.kind == "place"]
        self.started: dict[str, int] = {}
        for e in events:
            if e.kind == "start":
                self.started.setdefault(e.workload, e.at)
        self.preempted = [e.workload for e in events if e.kind == "preempt"]

    def below(self, budget: BudgetId | None) -> set[str]:
        """Workloads of a subtree, or all."""
        chains = self.tree.chains
        return {name for name, w in self.workloads.items() if budget is None or budget in chains[w.budget]}

    def held(self, budget: BudgetId | None, allocated: bool) -> list[Interval]:
        names = self.below(budget)
        kind = [(name, a, b) for name, a, b in self.runs if self.workloads[name].allocated == allocated]
        return [(a, b, self.workloads[name].gpus) for name, a, b in kind if name in names]

    def owed(self, budget: BudgetId) -> list[tuple[Fraction, Fraction]]:
        """By hour: owed and delivered, GPU x ms."""
        names = [name for name in self.below(budget) if self.workloads[name].allocated and name in self.submitted]
        wants = [(self.submitted[n], self.ended.get(n, self.end), self.workloads[n].gpus) for n in names]
        hours = []
        for begin in range(self.begin, self.end, HOUR):
            end = min(self.end, begin + HOUR)
            entitled = self.tree.fractions[budget] * self.gpus * (end - begin)
            got = Fraction(overlap(self.held(budget, True), begin, end))
            hours.append((min(entitled, Fraction(overlap(wants, begin, end))), got))
        return hours

    def figures(self, budget: BudgetId | None) -> dict[str, Any]:
        leaves = self.tree.leaves if budget is None else (budget,)
        owed = {leaf: self.owed(leaf) for leaf in leaves}
        total = sum(o for hours in owed.values() for o, _ in hours)
        toward = sum(min(sum(o for o, _ in hours), sum(g for _, g in hours)) for hours in owed.values())
        hourly = sum(min(o, g) for hours in owed.values() for o, g in hours)
        parts = [(Fraction(0), Fraction(0))] * 24
        for hours in owed.values():
            for hour, (o, g) in enumerate(hours):
                at = hour * HOUR * 24 // (self.end - self.begin)
                parts[at] = (parts[at][0] + o, parts[at][1] + min(o, g))
        allocated, free = (overlap(self.held(budget, kind), self.begin, self.end) for kind in (True, False))
        names = self.below(budget)
        most = max((self.workloads[n].gpus for n in names), default=0)
        largest = {n for n in names if self.workloads[n].gpus == most}
        classes = {kind: {n for n in names if self.kind(n) == kind} for kind in ("debug", "small", "large")}
        return {
            "workloads": len(names),
            "never_started": sum(1 for n in names if n not in self.started),
            "occupancy": part(allocated + free, self.gpus * (self.end - self.begin)),
            "owed_gpu_h": round(float(Fraction(total) / HOUR), 6),
            "delivered_gpu_h": round(allocated / HOUR, 6),
            "unallocated_gpu_h": round(free / HOUR, 6),
            "unallocated_share": part(free, allocated + free),
            "delivered_over_owed": part(toward, total),
            "delivered_over_owed_hourly": part(hourly, total),
            "delivered_over_owed_over_time": [part(g, o) for o, g in parts],
            "largest": {"gpus": most, "workloads": len(largest), "wait_s": self.waits(largest)},
            "preemptions": sum(1 for n in self.preempted if n in names),
            "wait_s": self.waits(names),
            "wait_s_by_class": {kind: self.waits(below) for kind, below in classes.items()},
        }

    def kind(self, name: str) -> str:
        w = self.workloads[name]
        if w.gpus <= 2 and 0 < w.min_runtime_ms <= HOUR // 4:
            return "debug"
        return "small" if w.gpus < 64 else "large"

    def waits(self, names: Iterable[str]) -> dict[str, float | None]:
        waits = sorted(self.started.get(n, self.end) - self.workloads[n].submitted_at for n in names)
        return {name: nearest(waits, q) for name, q in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100))}


def part(some: Fraction | int, whole: Fraction | int) -> float | None:
    return round(float(Fraction(some) / Fraction(whole)), 6) if whole else None


def nearest(ordered: Sequence[int], percent: int) -> float | None:
    """The nearest rank."""
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1] / 1000 if ordered else None
