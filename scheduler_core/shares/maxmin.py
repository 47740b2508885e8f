"""Weighted max-min fairness with minimum and maximum shares (YARN's fair shares), alone and down a tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scheduler_core.shares.amounts import Exact
from scheduler_core.shares.trees import TOP, by_id, children, path


@dataclass(frozen=True, slots=True)
class Claim:
    """What one member may get: by weight, no less than the minimum, no more than the maximum (None: no end)."""

    weight: Exact = 1
    minimum: Exact = 0
    maximum: Exact | None = None

    def at(self, level: Fraction | None) -> Fraction:
        """Its share where a weight of 1 gets `level`; None is a level above every maximum. The maximum counts last."""
        wanted = self.minimum if level is None else max(self.weight * level, self.minimum)
        if self.maximum is None:
            return Fraction(wanted)
        return Fraction(self.maximum if level is None and self.weight else min(wanted, self.maximum))


def weighted_max_min(total: Exact, claims: Sequence[Claim]) -> list[Fraction]:
    """The shares of `total`: in the ratio of the weights wherever minimum and maximum allow it.

    Minima are kept also where together they exceed the total; what nobody may take is left over.
    """
    level = water_level(total, claims)
    return [claim.at(level) for claim in claims]


def water_level(total: Exact, claims: Sequence[Claim]) -> Fraction | None:
    """What a weight of 1 gets so that together they use the total; None where all have their maximum before that."""
    used, slope, level = sum((claim.at(Fraction(0)) for claim in claims), Fraction(0)), Fraction(0), Fraction(0)
    if used >= total:
        return Fraction(0)
    for turn, change in sorted(_turns(claims)):
        if (reached := used + slope * (turn - level)) >= total:
            break
        used, slope, level = reached, slope + change, turn
    return level + (total - used) / slope if slope else None


def _turns(claims: Iterable[Claim]) -> Iterable[tuple[Fraction, Fraction]]:
    """The levels at which shares begin and cease to grow, each with the change of their speed."""
    for claim in claims:
        if weight := Fraction(claim.weight):
            yield claim.at(Fraction(0)) / weight, weight
            if claim.maximum is not None:
                yield claim.maximum / weight, -weight


@dataclass(frozen=True, slots=True)
class Queue:
    """A node of a tree of claims."""

    id: str
    parent: str = TOP
    claim: Claim = Claim()


def steady_shares(total: Exact, queues: Iterable[Queue]) -> dict[str, Fraction]:
    """Each node's share of its parent's, whoever is active: by weight where nothing has a minimum or maximum."""
    tree = by_id(queues)
    return _down(total, tree, set(tree))


def instantaneous_shares(total: Exact, queues: Iterable[Queue], active: Collection[str]) -> dict[str, Fraction]:
    """The same among those that are active or have somebody active below them; the others get nothing."""
    tree = by_id(queues)
    return _down(total, tree, {above for name in active for above in path(tree, name)})


def _down(total: Exact, tree: dict[str, Queue], counted: set[str]) -> dict[str, Fraction]:
    shares, below = dict.fromkeys(tree, Fraction(0)), children(tree)

    def divide(parent: str, amount: Exact) -> None:
        members = [name for name in below[parent] if name in counted]
        for name, share in zip(members, weighted_max_min(amount, [tree[n].claim for n in members]), strict=True):
            shares[name] = share
            divide(name, share)

    divide(TOP, total)
    return shares
