"""Cases of YARN, Kueue and the paper on dominant resource fairness: shares by weight, down trees, of many resources."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from scheduler_core.shares.amounts import Exact, Vector
from scheduler_core.shares.dominant import (
    Grant,
    asset_fair_allocation,
    dominant_share,
    drf_allocation,
    fractional_drf_allocation,
    progressive_filling,
)
from scheduler_core.shares.drf_order import Use, compare_drf
from scheduler_core.shares.maxmin import Claim, Queue, instantaneous_shares, steady_shares, weighted_max_min
from tests.reference_cases.answers import Answer, Case, exact


def claim(row: Case) -> Claim:
    most = row.get("max")
    return Claim(exact(row.get("weight", 1)), exact(row.get("min", 0)), None if most is None else exact(most))


def weighted_max_min_with_min_max(case: Case) -> Answer:
    """YARN gives whole units: what is beyond them is not handed out."""
    shares = weighted_max_min(exact(case["total"]), [claim(row) for row in case["schedulables"]])
    return Answer(case["expected"], {"shares": [int(share) for share in shares]})


def queues(tree: Any, parent: str = "") -> Iterator[Queue]:
    """Names alone weigh 1; a name may come with its weight, or with its weight and children."""
    for name in tree:
        row = tree[name] if isinstance(tree, dict) else 1
        row = row if isinstance(row, dict) else {"weight": row}
        yield Queue(name, parent, claim(row))
        yield from queues(row.get("children", ()), name)


def _percent(case: Case, shares: dict[str, Fraction]) -> Answer:
    return Answer(case["expected"], {"percent": shares}, exact(case["expected"]["tolerance_percent"]))


def hierarchical_instantaneous_share_percent(case: Case) -> Answer:
    return _percent(case, instantaneous_shares(100, queues(case["tree"]), case["active"]))


def hierarchical_steady_share_percent(case: Case) -> Answer:
    return _percent(case, steady_shares(100, queues(case["tree"])))


def hierarchical_weighted_share(case: Case) -> Answer:
    return Answer(case["expected"], {"shares": steady_shares(exact(case["total"]), queues(case["tree"]))})


def vector(amounts: Any) -> Vector:
    return [exact(amount) for amount in (amounts.values() if isinstance(amounts, dict) else amounts)]


def _asked(case: Case) -> tuple[Vector, dict[str, Vector], dict[str, Exact]]:
    demands = {user: vector(need) for user, need in case["demands"].items()}
    return vector(case["capacity"]), demands, {u: exact(w) for u, w in case.get("weights", {}).items()}


def drf_allocation_case(case: Case) -> Answer:
    capacity, demands, weights = _asked(case)
    tasks = drf_allocation(capacity, demands, weights)
    used = {user: [tasks[user] * amount for amount in need] for user, need in demands.items()}
    shares = {user: dominant_share(amounts, capacity) for user, amounts in used.items()}
    said = [f"{share} each" for share in set(shares.values())]
    return Answer(
        case["expected"],
        {
            "tasks": tasks,
            "used": used,
            "dominant_share": said[0] if len(said) == 1 else ", ".join(f"{user} {s}" for user, s in shares.items()),
            "total_used": [sum(column) for column in zip(*used.values(), strict=True)],
        },
    )


def drf_order_of_grants(case: Case) -> Answer:
    """Who goes first in a tie is free: we take the order in which the case first grants anything."""
    capacity, demands, weights = _asked(case)
    grants = progressive_filling(capacity, demands, weights, ties=list(dict.fromkeys(case["expected"]["order"])))
    return Answer(
        case["expected"],
        {
            "order": [grant.user for grant in grants],
            "dominant_after": [f"{grant.user} {grant.share}" for grant in grants],
            **{f"{name}_used": _of(grants, n, whole) for n, (name, whole) in enumerate(case["capacity"].items())},
        },
    )


def _of(grants: list[Grant], resource: int, capacity: Any) -> list[str]:
    return [f"{grant.used[resource]}/{capacity}" for grant in grants]


def drf_vs_asset_fairness(case: Case) -> Answer:
    capacity, demands, weights = _asked(case)
    return Answer(
        case["expected"],
        {
            "asset_fairness_tasks": asset_fair_allocation(capacity, demands),
            "drf_tasks": drf_allocation(capacity, demands, weights),
        },
    )


def weighted_drf_allocation(case: Case) -> Answer:
    return Answer(
        case["expected"],
        {
            "fractional_tasks": fractional_drf_allocation(*_asked(case)),
            "whole_tasks_progressive_filling": drf_allocation(*_asked(case)),
        },
    )


def _use(row: Case) -> Use:
    return Use(vector(row["used"]), exact(row.get("weight", 1)), vector(row.get("min", ())))


def drf_order(case: Case) -> Answer:
    order = compare_drf(_use(case["first"]), _use(case["second"]), vector(case["cluster"]))
    return Answer(case["expected"], {"next": ("first", "either", "second")[order + 1]})
