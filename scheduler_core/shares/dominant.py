"""Dominant resource fairness and asset fairness: several resources, tasks of one shape for each user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scheduler_core.errors import SchedulerCoreError
from scheduler_core.shares.amounts import Exact, Ratio, Vector, ratio

Measure = Callable[[Vector, Vector], Ratio]  # how much of a capacity somebody uses, as one number
Demands = Mapping[str, Vector]  # what one task of each user needs


def dominant_share(used: Vector, capacity: Vector) -> Ratio:
    """The largest of the shares of the single resources."""
    return max(ratio(part, whole) for part, whole in zip(used, capacity, strict=True))


def asset_share(used: Vector, capacity: Vector) -> Ratio:
    """The shares of the single resources together, as if all were worth the same."""
    return sum((ratio(part, whole) for part, whole in zip(used, capacity, strict=True)), Fraction(0))


@dataclass(frozen=True, slots=True)
class Grant:
    """One task granted: to whom, the user's share (unweighted) and everybody's use after it."""

    user: str
    share: Ratio
    used: tuple[Exact, ...]


def progressive_filling(
    capacity: Vector,
    demands: Demands,
    weights: Mapping[str, Exact] | None = None,
    measure: Measure = dominant_share,
    ties: Sequence[str] = (),
) -> list[Grant]:
    """Whole tasks one at a time, always to the user with the least share ÷ weight whose next task fits.

    Among equals who stands first in `ties`, then in `demands`. Who no longer fits drops out. Weight 0 comes last.
    """
    order = [*ties, *(user for user in demands if user not in ties)]
    of: dict[str, tuple[Exact, ...]] = {user: (0,) * len(capacity) for user in order}
    used: tuple[Exact, ...] = (0,) * len(capacity)
    grants: list[Grant] = []
    waiting = [user for user in order if _needs_something(user, demands)]
    while waiting := [user for user in waiting if _fits(_plus(used, demands[user]), capacity)]:
        user = min(waiting, key=lambda u: _weighed(measure(of[u], capacity), (weights or {}).get(u, 1)))
        of[user], used = _plus(of[user], demands[user]), _plus(used, demands[user])
        grants.append(Grant(user, measure(of[user], capacity), used))
    return grants


def drf_allocation(capacity: Vector, demands: Demands, weights: Mapping[str, Exact] | None = None) -> dict[str, int]:
    """How many whole tasks each user gets by (weighted) dominant resource fairness."""
    return _tasks(demands, progressive_filling(capacity, demands, weights))


def asset_fair_allocation(capacity: Vector, demands: Demands) -> dict[str, int]:
    """How many whole tasks each user gets where the sums of the shares are kept equal."""
    return _tasks(demands, progressive_filling(capacity, demands, measure=asset_share))


def fractional_drf_allocation(
    capacity: Vector, demands: Demands, weights: Mapping[str, Exact] | None = None
) -> dict[str, Fraction]:
    """Tasks in fractions: dominant shares grow as the weights say; who needs a resource that is full stops."""
    tasks = dict.fromkeys(demands, Fraction(0))
    left = [Fraction(amount) for amount in capacity]
    speed = {  # tasks for each 1 of dominant share ÷ weight
        user: Fraction((weights or {}).get(user, 1)) / Fraction(dominant_share(need, capacity))
        for user, need in demands.items()
        if _needs_something(user, demands) and not any(a and not b for a, b in zip(need, capacity, strict=True))
    }
    while True:
        drain = [sum((v * demands[user][r] for user, v in speed.items()), Fraction(0)) for r in range(len(left))]
        if not any(drain):
            return tasks
        step = min(rest / rate for rest, rate in zip(left, drain, strict=True) if rate)
        tasks |= {user: tasks[user] + v * step for user, v in speed.items()}
        left = [rest - rate * step for rest, rate in zip(left, drain, strict=True)]
        full = [r for r, rest in enumerate(left) if not rest]
        speed = {user: v for user, v in speed.items() if not any(demands[user][r] for r in full)}


def _tasks(demands: Demands, grants: Sequence[Grant]) -> dict[str, int]:
    found = Counter(grant.user for grant in grants)
    return {user: found[user] for user in demands}


def _needs_something(user: str, demands: Demands) -> bool:
    if not any(demands[user]):
        raise SchedulerCoreError(f"a task of {user!r} needs nothing: it would get tasks without end")
    return True


def _weighed(share: Ratio, weight: Exact) -> tuple[bool, Ratio]:
    return (not weight, share / weight if weight else share)


def _plus(one: Vector, other: Vector) -> tuple[Exact, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _fits(used: Vector, capacity: Vector) -> bool:
    return all(part <= whole for part, whole in zip(used, capacity, strict=True))
