"""Spans of time as people write and read them: 90s, 1h30m, 7d. A unit is needed: nothing is guessed."""

from __future__ import annotations

import re
from decimal import Decimal

SPAN_MS = {"w": 7 * 86_400_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}  # longest first
LONGEST_MS = 100 * 365 * 86_400_000
MOST = 40
_WORDS = {"min": "m", "mins": "m", "minutes": "m", "minute": "m", "hours": "h", "hour": "h", "hr": "h", "hrs": "h"}
_WORDS |= {"days": "d", "day": "d", "sec": "s", "secs": "s", "seconds": "s", "second": "s", "weeks": "w", "week": "w"}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_CLOCK = re.compile(r"[0-9]+(?::[0-9]+)+")
EXAMPLES = "write for example 90s, 30m, 1h30m or 7d"


def parse_span_ms(text: str) -> int:
    """`90s`, `1h30m`, `7d`, `0`, in ms. Raises ValueError "what is wrong; what to write"."""
    text = text.strip()
    if text in ("0", "0s"):
        return 0
    if len(text) > MOST:
        raise ValueError(f"{text[:MOST] + '…'!r} is no span of time; {EXAMPLES}")
    if _CLOCK.fullmatch(text):
        first, second = text.split(":")[:2]
        raise ValueError(f"{text!r} could mean {first}h{second}m or {first}m{second}s; write one of them")
    if _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} has no unit; write for example {text}s, {text}m or {text}h")
    parts = _PART.findall(text)
    units = [unit for _, unit in parts]
    if not text or _PART.sub("", text) or units != [unit for unit in SPAN_MS if unit in units]:
        raise ValueError(f"{text!r} is no span of time; {_meant(text)}")
    total = sum(Decimal(number) * SPAN_MS[unit] for number, unit in parts)
    if total != int(total):
        raise ValueError(f"{text!r} is no whole number of milliseconds")
    if total > LONGEST_MS:
        raise ValueError(f"{text!r} is longer than 100 years")
    return int(total)


def _meant(text: str) -> str:
    """What to write instead: `5 minutes` is 5m."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)", text)
    unit = found and (_WORDS.get(found[2].lower()) or (found[2].lower() if found[2].lower() in SPAN_MS else None))
    return f"write {found[1]}{unit}" if found and unit else EXAMPLES


def format_span(ms: int) -> str:
    """The shortest exact form that `parse_span_ms` reads back: 1h30m, 90s as 1m30s, 0."""
    if ms == 0:
        return "0"
    parts = []
    for unit, size in SPAN_MS.items():
        if unit == "w":
            continue  # 7d says it to everybody
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
