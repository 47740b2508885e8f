"""What a case expects and what we got, and when the two agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

Case = Mapping[str, Any]  # as read: numbers are int or Decimal, so that nothing is lost
EXACT = Fraction(0)
ROUNDED = Fraction(-1)  # to the digits that the file gives, four at least
ASIDES = ("note", "tolerance", "tolerance_percent", "skip_order_between")  # in `expected`, and no expectations


@dataclass(frozen=True, slots=True)
class Answer:
    """`got` holds everything that `expected` names. `slack` is how far numbers may differ."""

    expected: Any
    got: Any
    slack: Fraction = EXACT

    @property
    def right(self) -> bool:
        return agrees(self.expected, self.got, self.slack)

    @property
    def line(self) -> str:
        expected, got = differing(self.expected, self.got, self.slack)
        return f"expected {shown(expected)}, got {shown(got)}"


def exact(number: Any) -> Fraction:
    """A number of a file as it stands there."""
    return Fraction(number)


def agrees(expected: Any, got: Any, slack: Fraction) -> bool:
    """Whether everything that is expected was got; a set of answers agrees with any of its members."""
    match expected:
        case dict():
            return all(key in got and agrees(expected[key], got[key], slack) for key in _named(expected))
        case list():
            return len(expected) == len(got) and all(agrees(e, g, slack) for e, g in zip(expected, got, strict=True))
        case set():
            return any(agrees(one, got, slack) for one in expected)
        case bool() | None:
            return expected is got
        case str() if not isinstance(got, str):
            return float(got) == float(expected) if expected == "inf" else Fraction(expected) == got
        case int() | Decimal():
            return not isinstance(got, bool) and got is not None and _near(expected, got, slack)
    return bool(expected == got)


def differing(expected: Any, got: Any, slack: Fraction) -> tuple[Any, Any]:
    """Both without the named parts that agree."""
    if not isinstance(expected, dict):
        return expected, got
    wrong = [k for k in _named(expected) if k not in got or not agrees(expected[k], got[k], slack)]
    pairs = {k: differing(expected[k], got.get(k), slack) for k in wrong}
    return {k: pair[0] for k, pair in pairs.items()}, {k: pair[1] for k, pair in pairs.items()}


def _named(expected: dict[str, Any]) -> list[str]:
    return [key for key in expected if not key.endswith(ASIDES)]


def _near(expected: int | Decimal, got: Any, slack: Fraction) -> bool:
    if got == float("inf"):
        return False
    if slack == ROUNDED:
        digits = -int(Decimal(expected).as_tuple().exponent)
        slack = Fraction(1, 2 * 10 ** max(4, digits))
    return abs(Fraction(expected) - Fraction(got)) <= slack


def shown(value: Any) -> str:
    """On one line, fractions as `4/3`."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {shown(v)}" for key, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(shown(v) for v in value) + "]"
        case set():
            return " or ".join(sorted(shown(v) for v in value))
    return str(value)
