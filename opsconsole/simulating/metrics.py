"""The figures of rule 31, of a whole replay and of each budget. Amounts are exact until they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opsconsole.simulating.meter import ALLOCATED, DEMAND, UNALLOCATED, Account
from opsconsole.simulating.replay import Outcome
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId
from scheduler_core.shares.owed import delivered_toward_owed, owed_hourly
from scheduler_core.units import HOUR, MINUTE
from scheduler_core.workload import Workload

CLASSES = ("debug", "small", "large")
DEBUG_GPUS, DEBUG_MS, LARGE_GPUS = 2, 15 * MINUTE, 64
QUANTILES = (("p50", Fraction(1, 2)), ("p90", Fraction(9, 10)), ("p99", Fraction(99, 100)), ("max", Fraction(1)))
DIGITS = 6
PARTS = 24  # of a period, for how things went over time


def class_of(w: Workload) -> str:
    """Rule 31."""
    if w.gpus <= DEBUG_GPUS and 0 < w.min_runtime_ms <= DEBUG_MS:
        return "debug"
    return "large" if w.gpus >= LARGE_GPUS else "small"


def quantile(ordered: Sequence[int], part: Fraction) -> int | None:
    """The smallest value that at least this part of all values does not exceed; None of nothing."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else None


@dataclass(frozen=True, slots=True)
class Delivery:
    """GPU x ms of one budget in the period. `toward` is what was delivered of the owed, `hourly` hour by hour."""

    owed: Fraction
    allocated: int
    unallocated: int
    toward: Fraction
    hourly: Fraction
    over_time: tuple[tuple[Fraction, Fraction], ...]  # owed, and delivered of it, in each of PARTS of the period

    @classmethod
    def of(cls, account: Account, fraction: Fraction, service: Account, length: int) -> Delivery:
        """Of a period of so many ms. All of it times the denominator, so that hours are compared as integers."""
        part, whole = fraction.numerator, fraction.denominator
        served = [service.hours[hour][ALLOCATED] if hour in service.hours else 0 for hour in account.hours]
        demand, got = ([hour[which] * whole for hour in account.hours.values()] for which in (DEMAND, ALLOCATED))
        owed = owed_hourly([part * amount for amount in served], demand)
        total, allocated = Fraction(sum(owed), whole), account.total(ALLOCATED)
        hourly = Fraction(delivered_toward_owed(owed, got), whole)
        parts: list[list[int]] = [[0, 0] for _ in range(PARTS)]
        for hour, most, amount in zip(account.hours, owed, got, strict=True):
            at = parts[hour * HOUR * PARTS // length]
            at[0] += int(most)
            at[1] += min(int(most), amount)
        over_time = tuple((Fraction(most, whole), Fraction(toward, whole)) for most, toward in parts)
        return cls(total, allocated, account.total(UNALLOCATED), min(total, Fraction(allocated)), hourly, over_time)

    def __add__(self, other: Delivery) -> Delivery:
        """Of budgets side by side: what one got too much makes up for nothing that another is owed."""
        return Delivery(
            self.owed + other.owed,
            self.allocated + other.allocated,
            self.unallocated + other.unallocated,
            self.toward + other.toward,
            self.hourly + other.hourly,
            tuple((a + c, b + d) for (a, b), (c, d) in zip(self.over_time, other.over_time, strict=True)),
        )


NOTHING = Delivery(Fraction(0), 0, 0, Fraction(0), Fraction(0), ((Fraction(0), Fraction(0)),) * PARTS)


def figures(outcome: Outcome, hosts: Sequence[Host], skipped: int) -> dict[str, Any]:
    """Of the whole, and under `budgets` of each budget, those below after those above. `skipped`: rows of the log."""
    tree, meter, length = outcome.stream.tree, outcome.meter, outcome.end - outcome.begin
    deliveries = {
        budget: Delivery.of(account, tree.fractions[budget], meter.service, length)
        for budget, account in meter.accounts.items()
    }
    whole = sum((deliveries[leaf] for leaf in tree.leaves), NOTHING)
    service = (meter.service.total(ALLOCATED), sum(host.gpus for host in hosts) * length)
    everybody = range(len(outcome.stream.workloads))
    found = _figures(outcome, everybody, whole, service, skipped)
    numbers: dict[BudgetId, list[int]] = {budget: [] for budget in tree.by_id}
    for number in everybody:
        for budget in tree.chains[outcome.stream.workloads[number].budget]:
            numbers[budget].append(number)
    found["budgets"] = []
    for budget in sorted(tree.by_id, key=lambda b: tree.paths[b]):
        left_out = sum(outcome.stream.skipped.get(leaf, 0) for leaf in tree.leaves_below[budget])
        own = _figures(outcome, numbers[budget], deliveries[budget], service, left_out)
        found["budgets"].append({"path": tree.paths[budget], **own})
    return found


def _figures(
    outcome: Outcome, numbers: Sequence[int], got: Delivery, service: tuple[int, int], skipped: int
) -> dict[str, Any]:
    """`service`: GPUs x ms in service, and installed."""
    workloads, (served, installed) = outcome.stream.workloads, service
    held = got.allocated + got.unallocated
    by_class = {name: [n for n in numbers if class_of(workloads[n]) == name] for name in CLASSES}
    return {
        "workloads": len(numbers),
        "skipped": skipped,
        "never_started": sum(1 for n in numbers if outcome.started_at[n] is None),
        "occupancy": ratio(held, served),
        "availability": ratio(served, installed),
        "delivered_over_owed": ratio(got.toward, got.owed),
        "delivered_over_owed_hourly": ratio(got.hourly, got.owed),
        "owed_gpu_h": hours(got.owed),
        "delivered_gpu_h": hours(got.allocated),
        "unallocated_gpu_h": hours(got.unallocated),
        "unallocated_share": ratio(got.unallocated, held),
        "preemptions": sum(outcome.preempted[n] for n in numbers),
        "lost_gpu_h": hours(sum(outcome.lost_gpu_ms[n] for n in numbers)),
        "interrupted": sum(outcome.interrupted[n] for n in numbers),
        "lost_to_faults_gpu_h": hours(sum(outcome.lost_to_faults_gpu_ms[n] for n in numbers)),
        "wait_s": waits(outcome, numbers),
        "wait_s_by_class": {name: waits(outcome, of_class) for name, of_class in by_class.items()},
        "largest": _largest(outcome, numbers),
        "delivered_over_owed_over_time": [ratio(toward, owed) for owed, toward in got.over_time],
    }


def _largest(outcome: Outcome, numbers: Sequence[int]) -> dict[str, Any]:
    """The workloads with most GPUs."""
    workloads = outcome.stream.workloads
    gpus = max((workloads[n].gpus for n in numbers), default=0)
    found = [n for n in numbers if workloads[n].gpus == gpus]
    return {"gpus": gpus, "workloads": len(found), "wait_s": waits(outcome, found)}


def waits(outcome: Outcome, numbers: Iterable[int]) -> dict[str, float | None]:
    """From submission to the first start, in s."""
    ordered = waits_ms(outcome, numbers)
    found = {name: quantile(ordered, part) for name, part in QUANTILES}
    return {name: None if wait is None else wait / 1000 for name, wait in found.items()}


def waits_ms(outcome: Outcome, numbers: Iterable[int]) -> list[int]:
    """In order. Who never started counts with the wait so far."""
    started, workloads = outcome.started_at, outcome.stream.workloads
    return sorted(_or(started[n], outcome.end) - workloads[n].submitted_at for n in numbers)


def waits_by_class(outcome: Outcome) -> dict[str, list[int]]:
    """Of all workloads, ms in order."""
    workloads = outcome.stream.workloads
    return {name: waits_ms(outcome, (n for n, w in enumerate(workloads) if class_of(w) == name)) for name in CLASSES}


def _or(at: int | None, otherwise: int) -> int:
    return otherwise if at is None else at


def ratio(part: Fraction | int, whole: Fraction | int) -> float | None:
    """None of nothing."""
    return round(float(Fraction(part) / Fraction(whole)), DIGITS) if whole else None


def hours(gpu_ms: Fraction | int) -> float:
    """GPU-hours."""
    return round(float(Fraction(gpu_ms) / HOUR), DIGITS)


def pooled(runs: Sequence[dict[str, Any]], pick: Callable[[list[float]], float]) -> dict[str, Any]:
    """The same figures over several seeds, each picked from those of all; None where any is not known."""
    first = runs[0]
    found: dict[str, Any] = {}
    for key, value in first.items():
        values = [run[key] for run in runs]
        if isinstance(value, dict):
            found[key] = pooled(values, pick)
        elif isinstance(value, list) and key == "budgets":
            found[key] = [pooled([entry[i] for entry in values], pick) for i in range(len(value))]
        elif isinstance(value, list):
            found[key] = [_picked([entry[i] for entry in values], pick) for i in range(len(value))]
        elif isinstance(value, str):
            found[key] = value
        else:
            found[key] = _picked(values, pick)
    return found


def _picked(values: Sequence[float | None], pick: Callable[[list[float]], float]) -> float | None:
    known = [value for value in values if value is not None]
    return pick(known) if len(known) == len(values) else None
