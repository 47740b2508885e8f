"""Exact amounts: any unit, as long as all amounts of one call are in the same."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Exact = int | Fraction
Vector = Sequence[Exact]  # one amount for each resource, always in the same order
Ratio = Fraction | float  # the only float is INFINITY
INFINITY = float("inf")


def ratio(part: Exact, whole: Exact) -> Ratio:
    """`part / whole`; nothing of nothing is 0, something of nothing infinitely much."""
    if whole:
        return Fraction(part) / whole
    return INFINITY if part else Fraction(0)


def within(amount: Exact, most: Exact | None) -> bool:
    """Is it no more than the limit? None is no limit."""
    return most is None or amount <= most
