"""Owed against delivered (rule 31): what a budget should have got of its entitlement, hour by hour, and did."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from scheduler_core.shares.amounts import Exact


def owed_hourly(entitlement: Sequence[Exact], demand: Sequence[Exact]) -> list[Exact]:
    """The entitlement of each hour, as far as there was demand for it. GPU-hours."""
    return [min(most, wanted) for most, wanted in zip(entitlement, demand, strict=True)]


def delivered_toward_owed(owed: Sequence[Exact], delivered: Sequence[Exact]) -> Exact:
    """What was delivered of what was owed, each hour for itself: more in one hour makes up for nothing in another."""
    return sum(min(most, got) for most, got in zip(owed, delivered, strict=True))


def delivered_over_owed_hourly(owed: Sequence[Exact], delivered: Sequence[Exact]) -> Fraction | None:
    """The part of the owed that was delivered, hour by hour; None where nothing was owed."""
    total = sum(owed)
    return Fraction(delivered_toward_owed(owed, delivered)) / total if total else None


def delivered_over_owed(owed: Sequence[Exact], delivered: Sequence[Exact]) -> Fraction | None:
    """The same for the period as a whole, at most 1; None where nothing was owed."""
    total = sum(owed)
    return min(Fraction(1), Fraction(sum(delivered)) / total) if total else None
