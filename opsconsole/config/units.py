"""Units as people write and read them. Spans need a unit, instants need a zone: nothing is guessed.

Parsers raise ValueError "what is wrong; what to write".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

from opsconsole.config.scalars import shown

SPAN_MS = {"w": 7 * 86_400_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}  # longest first
SIZE_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_WORDS = {"min": "m", "mins": "m", "minutes": "m", "minute": "m", "hours": "h", "hour": "h", "hr": "h", "hrs": "h"}
_WORDS |= {"days": "d", "day": "d", "sec": "s", "secs": "s", "seconds": "s", "second": "s", "weeks": "w", "week": "w"}

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_CLOCK = re.compile(r"[0-9]+(?::[0-9]+)+")
_LONGEST_MS = 100 * 365 * 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = (2000, 2200)


def parse_span_ms(text: str) -> int:
    """`90s`, `1h30m`, `7d`, `0`, in ms. Raises ValueError."""
    text = text.strip()
    if text in ("0", "0s"):
        return 0
    if len(text) > 40:
        raise ValueError(f"{shown(text)} is no span of time; write for example 90s, 30m, 1h30m or 7d")
    if _CLOCK.fullmatch(text):
        first, second = text.split(":")[:2]
        raise ValueError(f"{text!r} could mean {first}h{second}m or {first}m{second}s; write one of them")
    if _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} has no unit; write for example {text}s, {text}m or {text}h")
    parts = _PART.findall(text)
    units = [unit for _, unit in parts]
    if not text or _PART.sub("", text) or units != [unit for unit in SPAN_MS if unit in units]:
        raise ValueError(f"{shown(text)} is no span of time; {_meant(text)}")
    total = sum(Decimal(number) * SPAN_MS[unit] for number, unit in parts)
    if total != int(total):
        raise ValueError(f"{text!r} is no whole number of milliseconds")
    if total > _LONGEST_MS:
        raise ValueError(f"{text!r} is longer than 100 years")
    return int(total)


def _meant(text: str) -> str:
    """What to write instead: `5 minutes` is 5m."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)", text)
    unit = found and (_WORDS.get(found[2].lower()) or (found[2].lower() if found[2].lower() in SPAN_MS else None))
    return f"write {found[1]}{unit}" if found and unit else "write for example 90s, 30m, 1h30m or 7d"


def parse_span_between(text: str, least: int, most: int | None) -> int:
    """A span within bounds, in ms. Raises ValueError that names them."""
    value = parse_span_ms(text)
    if value < least or (most is not None and value > most):
        upper = f" to {format_span(most)}" if most is not None else " or more"
        raise ValueError(f"{text} is outside {format_span(least)}{upper}")
    return value


def parse_percent_ppm(text: str) -> int:
    """`5%` in parts per million. Raises ValueError."""
    text = text.strip()
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,4})?)\s*%", text)
    if match:
        return int(Decimal(match[1]) * 10_000)
    if len(text) <= 12 and _NUMBER.fullmatch(text):
        hundredfold = f"{(Decimal(text) * 100).normalize():f}"
        raise ValueError(f"{text!r} could mean {text}% or {hundredfold}%; write one of them")
    raise ValueError(f"{shown(text)} is no percentage; write for example 5%")


def parse_size_bytes(text: str) -> int:
    """`1024MiB` in bytes. Raises ValueError."""
    match = re.fullmatch(r"([0-9]{1,12})\s*(B|KiB|MiB|GiB|TiB)", text.strip())
    if not match:
        raise ValueError(f"{shown(text)} is no size; write for example 1024MiB")
    return int(match[1]) * SIZE_BYTES[match[2]]


def parse_instant_ms(text: str) -> int:
    """ISO 8601 with a zone, in ms since 1970. Raises ValueError."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{9,17}(\.[0-9]+)?", text):
        raise ValueError(f"{text!r} could count seconds or milliseconds; write for example 2026-11-30T12:00:00Z")
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{shown(text)} is no instant; write for example 2026-11-30T12:00:00Z") from None
    if not re.search(r"[0-9][T ][0-9]", text):
        raise ValueError(f"{shown(text)} has no time of day; write for example {at.date()}T12:00:00Z")
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write {text}Z for UTC, or an offset such as +01:00")
    if not _YEARS[0] <= at.year < _YEARS[1]:
        raise ValueError(f"{text!r} is outside the years {_YEARS[0]} to {_YEARS[1]}")
    delta = at - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def format_instant(at_ms: int) -> str:
    """ISO 8601 in UTC, to the second where it is a whole one."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC).replace(tzinfo=None)
    fraction = f".{at_ms % 1000:03}" if at_ms % 1000 else ""
    return f"{at.isoformat()}{fraction}Z"


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
