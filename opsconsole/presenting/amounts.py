"""Amounts as people type them in filters. The ending of a key names the unit of its values: waited_s, power_w."""

from __future__ import annotations

import re

from opsconsole.spans import parse_span_ms

NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)([a-z%-]*)")
UNITS: dict[str, tuple[str, dict[str, float]]] = {
    "_percent": ("percent: 50 or 50%", {"%": 1}),
    "_c": ("degrees: 80 or 80C", {"c": 1}),
    "_w": ("watts: 700, 700W or 0.7kW", {"w": 1, "kw": 1000, "k": 1000}),
    "_gpu_h": ("GPU-hours: 100 or 4k", {"k": 1000}),
    "_s": ("time: 90s, 30m, 2h or 1d12h", {}),
    "": ("numbers: 8 or 4k", {"k": 1000}),
}


def read_amount(key: str, text: str) -> float:
    """In the unit of the key's values. Raises ValueError with what it counts: `percent: 50 or 50%`."""
    ending = next(ending for ending in UNITS if key.endswith(ending))
    counts, factors = UNITS[ending]
    text = text.strip().lower()
    if ending == "_s":
        return _seconds(text, counts)
    match = NUMBER.fullmatch(text)
    if match is None or match[2] not in {"", *factors}:
        raise ValueError(counts)
    return float(match[1]) * (factors[match[2]] if match[2] else 1)


def _seconds(text: str, counts: str) -> float:
    try:
        return parse_span_ms(text) / 1000
    except ValueError:
        raise ValueError(counts) from None
