"""A reading is one of four: a value, absent (no such thing here), denied (no permission), failed (why).

Nothing here turns one of the last three into a number.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable

Reading = Dict[str, Any]
TEXT_MAX = 300


def value(found: Any) -> Reading:
    return {"v": found}


def absent() -> Reading:
    return {"absent": True}


def denied(why: str) -> Reading:
    return {"denied": plain(why)}


def failed(why: str) -> Reading:
    return {"failed": plain(why)}


def is_known(reading: Reading) -> bool:
    return "v" in reading


def plain(text: str, limit: int = TEXT_MAX) -> str:
    """Foreign text as one bounded line without control characters."""
    kept = "".join(c if c.isprintable() else " " for c in text[: limit * 4])
    line = " ".join(kept.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def all_of(keys: Iterable[str], reading: Reading) -> dict[str, Reading]:
    """The same answer for several questions: one call failed that would have told them all."""
    return {key: dict(reading) for key in keys}


# What every GPU has an answer for, so that a lost one shows failures where others show numbers.
CORE_KEYS = (
    "memory_total_bytes",
    "memory_used_bytes",
    "utilization_percent",
    "temperature_c",
    "power_w",
    "power_limit_w",
    "sm_clock_mhz",
    "ecc_volatile_uncorrected",
)


def unreadable_gpu(pci: str, reading: Reading) -> dict[str, Any]:
    """A GPU of which only the address is known."""
    return {
        "pci": pci,
        "uuid": dict(reading),
        "name": dict(reading),
        "readings": all_of(CORE_KEYS, reading),
        "processes": dict(reading),
    }
