"""Division of a resource among queues by deserved quota, priority, weight and past use (KAI's fair share)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from scheduler_core.shares.amounts import Exact
from scheduler_core.shares.trees import TOP, by_id, children


@dataclass(frozen=True, slots=True)
class Queue:
    """What a queue deserves and asks for. Amounts of one resource; None for `deserved` and `limit`: no end.

    `usage` is its past use as a share of the cluster's capacity (from 0), `created` is smaller for the older.
    """

    id: str
    deserved: Exact | None = 0
    over_quota_weight: Exact = 1
    request: Exact = 0
    limit: Exact | None = None
    priority: int = 0
    usage: Exact = 0
    created: int = 0
    parent: str = TOP

    @property
    def requestable(self) -> Exact:
        """What it asks for and may have."""
        return self.request if self.limit is None else min(self.limit, self.request)


@dataclass(frozen=True, slots=True)
class Division:
    """The share of each queue, and what nobody got."""

    shares: Mapping[str, Fraction]
    remaining: Fraction


def divide(total: Exact, queues: Iterable[Queue], k: Exact = 0) -> Division:
    """Each queue gets what it deserves and asks for, also where that is more than there is; the surplus is divided.

    `k` is how much past use bends the weights of the surplus: 0 not at all.
    """
    siblings = by_id(queues)
    first = {
        name: Fraction(min(total if queue.deserved is None else queue.deserved, queue.requestable))
        for name, queue in siblings.items()
    }
    return divide_over_quota(max(Fraction(0), total - sum(first.values())), siblings.values(), first, k)


def divide_over_quota(surplus: Exact, queues: Iterable[Queue], initial: Mapping[str, Exact], k: Exact = 0) -> Division:
    """The surplus on top of `initial` shares, to the highest priority first: by weight, in whole units while they last.

    What rounding leaves is offered to the next priority in the same way. What is left at the end goes, by priority
    again, in units (the last may be a part of one) to those that lost most by it.
    """
    siblings = by_id(queues)
    buckets = [
        _Bucket([q for q in siblings.values() if q.priority == priority], k, initial)
        for priority in sorted({q.priority for q in siblings.values()}, reverse=True)
    ]
    left = Fraction(surplus)
    for bucket in buckets:
        left = bucket.by_weight(left)
    for bucket in buckets:
        left = bucket.remainders(left)
    shares = {name: share for bucket in buckets for name, share in bucket.shares.items()}
    return Division({name: shares[name] for name in siblings}, left)


def divide_tree(total: Exact, queues: Iterable[Queue], k: Exact = 0) -> dict[str, Fraction]:
    """Down a tree of queues: the share of each is what its children divide."""
    tree, shares = by_id(queues), dict[str, Fraction]()
    below = children(tree)

    def down(parent: str, amount: Exact) -> None:
        division = divide(amount, [tree[name] for name in below[parent]], k)
        for name, share in division.shares.items():
            shares[name] = share
            down(name, share)

    down(TOP, total)
    return {name: shares[name] for name in tree}


class _Bucket:
    """The queues of one priority while they divide a surplus."""

    def __init__(self, queues: list[Queue], k: Exact, initial: Mapping[str, Exact]) -> None:
        self._queues, self._k = queues, k
        self.shares = {queue.id: Fraction(initial[queue.id]) for queue in queues}
        self._lost: dict[str, Fraction] = {}  # by rounding, in the last round that rounded

    def by_weight(self, surplus: Fraction) -> Fraction:
        """Rounds until one satisfies nobody; gives back what is left."""
        while surplus and (parts := self._parts()):
            given, satisfied = Fraction(0), False
            for queue, part in parts:
                fair, lacks = surplus * part, queue.requestable - self.shares[queue.id]
                amount = lacks if lacks <= fair else Fraction(floor(fair))
                self.shares[queue.id] += amount
                given += amount
                satisfied |= lacks < fair
                if lacks <= fair:
                    self._lost.pop(queue.id, None)
                elif fair > amount:
                    self._lost[queue.id] = fair - amount
            surplus -= given
            if not satisfied:
                break
        return surplus

    def remainders(self, surplus: Fraction) -> Fraction:
        """A unit to each that lost by rounding, who lost most first, the older and the lower id among equals."""
        losers = [queue for queue in self._queues if queue.id in self._lost]
        for queue in sorted(losers, key=lambda q: (-self._lost[q.id], q.created, q.id)):
            unit = min(Fraction(1), surplus)
            self.shares[queue.id] += unit
            surplus -= unit
        return surplus

    def _parts(self) -> list[tuple[Queue, Fraction]]:
        """Who lacks something, with its part of the surplus: by weight, less for past use, never below 0."""
        lacking = [queue for queue in self._queues if queue.requestable > self.shares[queue.id]]
        if not (weights := sum((Fraction(queue.over_quota_weight) for queue in lacking), Fraction(0))):
            return []
        bent = {queue.id: self._bent(queue.over_quota_weight / weights, queue) for queue in lacking}
        if not (together := sum(bent.values())):
            return []
        return [(queue, bent[queue.id] / together) for queue in lacking if queue.over_quota_weight]

    def _bent(self, weight: Fraction, queue: Queue) -> Fraction:
        return max(Fraction(0), weight + self._k * (weight - queue.usage))
