"""Who gets the next container by dominant resource fairness among queues with weights and minimum shares (YARN)."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.shares.amounts import INFINITY, Exact, Ratio, Vector, ratio


@dataclass(frozen=True, slots=True)
class Use:
    """What somebody uses of each resource, its weight, and the minimum share of each resource (none: never needy)."""

    used: Vector
    weight: Exact = 1
    minimum: Vector = ()


def compare_drf(first: Use, second: Use, cluster: Vector) -> int:
    """Below 0 where `first` goes first, above 0 where `second` does, 0 where fairness does not tell them apart.

    Who is needy (below its minimum of its dominant resource) goes before who is not. Then the shares decide, each one's
    dominant resource first, the next largest after it: shares of the minimum between two needy, else of the cluster.
    """
    orders = [_by_dominance(use, cluster) for use in (first, second)]
    least = [[_of_minimum(use, r) for r in order] for use, order in zip((first, second), orders, strict=True)]
    needy = [shares[0] < 1 for shares in least]
    if needy[0] != needy[1]:
        return -1 if needy[0] else 1
    if needy[0]:
        return (least[0] > least[1]) - (least[0] < least[1])
    one, other = ([_share(use, cluster, r) for r in order] for use, order in zip((first, second), orders, strict=True))
    return (one > other) - (one < other)


def _share(use: Use, cluster: Vector, resource: int) -> Ratio:
    share = ratio(use.used[resource], cluster[resource])
    return share / use.weight if use.weight else (INFINITY if share else share)


def _of_minimum(use: Use, resource: int) -> Ratio:
    least = use.minimum[resource] if use.minimum else 0
    return ratio(use.used[resource], least) if least else INFINITY


def _by_dominance(use: Use, cluster: Vector) -> list[int]:
    """The resources, the one of which it has the largest share first; among equals the later one."""
    return sorted(range(len(cluster)), key=lambda r: (_share(use, cluster, r), r), reverse=True)
