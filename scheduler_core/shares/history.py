"""Past use as one number: normalised to what there was, and decayed with age."""

from __future__ import annotations

from fractions import Fraction
from math import exp2

from scheduler_core.shares.amounts import Exact


def normalised_usage(used: Exact, capacity: Exact, window: Exact) -> Fraction:
    """GPU time used ÷ GPU time that there was: GPUs × window, in the unit of `used`. 0 where there was none."""
    return Fraction(used) / (capacity * window) if capacity and window else Fraction(0)


def decayed(amount: Exact, age: Exact, half_life: Exact) -> float:
    """What an amount of that age still counts: half of it for each half-life. Exact, but for parts of a half-life."""
    whole, rest = divmod(Fraction(age), half_life)
    return float(Fraction(amount) / (1 << whole)) * exp2(-float(rest / half_life))
