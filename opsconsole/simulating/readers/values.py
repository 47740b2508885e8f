"""Texts of log fields to amounts: GPUs, instants, spans, as the formats in use write them. Raise Odd."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from opsconsole.config.scalars import shown
from opsconsole.simulating.oddities import Odd
from opsconsole.spans import parse_span_ms

MISSING = frozenset({"", "unknown", "none", "null", "nan", "n/a", "na", "-", "none assigned"})
NO_LIMIT = frozenset({"unlimited", "partition_limit", "infinite", "invalid"})
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d{1,2}))?(?::(\d{1,2}))?(?:\.(\d+))?")
_TRES = re.compile(r"(?:^|,)gres/gpu(?::([^=,]+))?=([^,]*)")
_GRES = re.compile(r"(?:gres[:/])?gpu(?::[^:,(]*[A-Za-z][^:,(]*)?(?::(\d+))?(?:\([^)]*\))?")
_BETWEEN = re.compile(r",(?![^(]*\))")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2}(?::?\d{2})?)$", re.IGNORECASE)
LATEST_MS = 7_258_118_400_000  # the year 2200
LONGEST_MS = 20 * 366 * 86_400_000
_LEAST_MS = 100_000_000_000  # a larger number of seconds would be the year 5138: milliseconds
_LEAST_US = 100_000_000_000_000


def is_missing(text: str) -> bool:
    return not text or (not text.isdigit() and text.strip().lower() in MISSING)


def number(text: str) -> float:
    """Finite. Raises Odd."""
    try:
        value = float(text)
    except ValueError:
        raise Odd("bad_number", shown(text)) from None
    if not math.isfinite(value) or "_" in text:
        raise Odd("bad_number", shown(text))
    return value


def whole(text: str) -> int:
    """`8`, `8.0`. Raises Odd."""
    value = number(text)
    if value != int(value):
        raise Odd("bad_number", shown(text))
    return int(value)


class Instant(NamedTuple):
    """`zone` as it was written; "" where the text names none and is taken as UTC."""

    at_ms: int
    zone: str = ""


@lru_cache(maxsize=4096)
def instant(text: str, per_second: int = 1) -> Instant:
    """A date and time, or a number that counts from 1970 or from the log's own beginning. Raises Odd.

    Numbers are in `per_second` parts of a second; with 1, such as only ms and µs reach since 1980 are taken as those.
    """
    text = text.strip()
    if text[:1].isdigit() and text.replace(".", "", 1).isdigit():
        return Instant(_sane(_counted(text, per_second), LATEST_MS, text))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        if text.startswith("-"):
            raise Odd("negative_time", shown(text)) from None
        raise Odd("bad_time", shown(text)) from None
    zone = _ZONE.search(text)
    past = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH
    at_ms = (past.days * 86_400 + past.seconds) * 1000 + past.microseconds // 1000
    return Instant(_sane(at_ms, LATEST_MS, text), zone[1].upper() if zone is not None and at.tzinfo is not None else "")


def _sane(ms: int, most: int, text: str) -> int:
    """Raises Odd."""
    if ms > most:
        raise Odd("bad_time", f"{shown(text)} is beyond all reason")
    return ms


def _counted(text: str, per_second: int) -> int:
    value = number(text)
    if per_second == 1 and value >= _LEAST_US:
        per_second = 1_000_000
    elif per_second == 1 and value >= _LEAST_MS:
        per_second = 1000
    return round(value * 1000 / per_second)


@lru_cache(maxsize=4096)
def span_ms(text: str, lone_unit_s: int = 1) -> int:
    """`3600`, `1-02:03:04`, `10:00` (minutes and seconds), `1-12` (days and hours), `1h30m`. Raises Odd.

    `lone_unit_s`: what a number alone counts, in seconds: Slurm's time limits are minutes.
    """
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        return _sane(_written(text), LONGEST_MS, text)
    if not math.isfinite(value) or "_" in text:
        raise Odd("bad_time", shown(text))
    if value < 0:
        raise Odd("negative_time", shown(text))
    return _sane(round(value * lone_unit_s * 1000), LONGEST_MS, text)


def _written(text: str) -> int:
    found = _CLOCK.fullmatch(text)
    if found is not None:
        days, a, b, c, fraction = found.groups()
        if days is not None or c is not None:  # days-hours[:minutes[:seconds]]
            hours, minutes, seconds = a, b, c
        else:
            hours, minutes, seconds = None, a, b
        total = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
        return total * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    try:
        return parse_span_ms(text)
    except ValueError:
        raise Odd("negative_time" if text.startswith("-") else "bad_time", shown(text)) from None


def limit_ms(text: str) -> int | None:
    """A time limit; None where there is none. A lone number is in minutes, as Slurm writes it. Raises Odd."""
    return None if text.strip().lower() in NO_LIMIT else span_ms(text, 60)


@lru_cache(maxsize=4096)
def gpus_of(text: str, per_node: int = 1) -> float:
    """`8`, `0.5`; `billing=96,gres/gpu:h100=8,gres/gpu=8`, which counts the whole job; `gpu:h100:4`, which counts each
    of `per_node` nodes. 0 where a list of resources names no GPU. Raises Odd.
    """
    text = text.strip()
    if "=" in text:
        return _tres(text)
    if "gpu" in text.lower():
        return float(per_node * sum(_gres(part.strip()) for part in _BETWEEN.split(text) if "gpu" in part.lower()))
    return number(text)


def _gres(text: str) -> int:
    found = _GRES.fullmatch(text)
    if found is None:
        raise Odd("bad_number", shown(text))
    return int(found[1] or 1)


def _tres(text: str) -> float:
    """The count of all GPUs where it is given, else the sum of those by type: 22.05 and later may give both."""
    counts = [(kind, number(count)) for kind, count in _TRES.findall(text)]
    plain = [count for kind, count in counts if not kind]
    return plain[0] if plain else sum(count for _, count in counts)


def truth(text: str) -> bool:
    """Raises Odd."""
    word = text.strip().lower()
    if word in ("true", "yes", "1", "y"):
        return True
    if word in ("false", "no", "0", "n"):
        return False
    raise Odd("bad_number", f"{shown(text)} is neither true nor false")
