"""Units as people write and read them. Spans need a unit, instants need a zone: nothing is guessed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

SPAN_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
SIZE_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CLOCK = re.compile(r"\d+(?::\d+)+")
_LONGEST_MS = 100 * 365 * 86_400_000


def parse_span_ms(text: str) -> int:
    """`90s`, `1h30m`, `7d`, `0`. Raises ValueError with what is wrong and what to write."""
    text = text.strip()
    if text in ("0", "0s"):
        return 0
    if _CLOCK.fullmatch(text):
        first, second = text.split(":")[:2]
        raise ValueError(f"{text!r} could mean {first}h{second}m or {first}m{second}s; write one of them")
    if _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} has no unit; write for example {text}s, {text}m or {text}h")
    if not text or _PART.sub("", text):
        raise ValueError(f"{text!r} is no span of time; write for example 90s, 30m, 1h30m or 7d")
    total = sum(Decimal(number) * SPAN_MS[unit] for number, unit in _PART.findall(text))
    if total != int(total):
        raise ValueError(f"{text!r} is no whole number of milliseconds")
    if total > _LONGEST_MS:
        raise ValueError(f"{text!r} is longer than 100 years")
    return int(total)


def parse_percent_ppm(text: str) -> int:
    """`5%` in parts per million. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,4})?)\s*%", text.strip())
    if not match:
        raise ValueError(f"{text!r} is no percentage; write for example 5%")
    return int(Decimal(match[1]) * 10_000)


def parse_size_bytes(text: str) -> int:
    """`1024MiB` in bytes. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,12})\s*(B|KiB|MiB|GiB|TiB)", text.strip())
    if not match:
        raise ValueError(f"{text!r} is no size; write for example 1024MiB")
    return int(match[1]) * SIZE_BYTES[match[2]]


def parse_instant_ms(text: str) -> int:
    """ISO 8601 with a zone, in ms since 1970. Raises ValueError."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no instant; write for example 2026-11-30T12:00:00Z") from None
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write {text.strip()}Z for UTC, or an offset such as +01:00")
    delta = at - datetime(1970, 1, 1, tzinfo=UTC)
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
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, SPAN_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
