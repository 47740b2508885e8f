"""Units as people write and read them; spans of time: opsconsole.spans. Instants need a zone: nothing is guessed.

Parsers raise ValueError "what is wrong; what to write".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

from opsconsole.config.scalars import shown
from opsconsole.spans import format_span, parse_span_ms

SIZE_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = (2000, 2200)


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
