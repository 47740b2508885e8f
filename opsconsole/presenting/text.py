"""Text for people. Foreign text (names, reasons, log lines) is data: cleaned here before anything shows it."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from datetime import datetime, timedelta

from rich.cells import cell_len, set_cell_size

from opsconsole.spans import SPAN_MS, parse_span_ms
from scheduler_core.units import GPU_HOUR
from scheduler_core.units import count as count  # for all who present
from scheduler_core.units import few as few

MOST = 300
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def clean(text: str, most: int = MOST) -> str:
    """One line without control characters, escapes or direction overrides, of limited length."""
    if len(text) <= most and text.isprintable():
        return text
    shown = "".join(" " if c in "\n\t\r" else "" if unicodedata.category(c) in _HIDDEN else c for c in text[: most * 2])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def fit(text: str, width: int, right: bool = False) -> str:
    """Exactly `width` terminal cells: padded, or cut with an ellipsis. Wide characters count as two."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else "…"
    return " " * (width - length) + text if right else text + " " * (width - length)


def span(ms: int | None) -> str:
    """At most two units, as `parse_span_ms` reads them: 41s, 12m03s, 6h12m, 3d04h, 30m; unknown is a question mark."""
    if ms is None:
        return "?"
    s = max(0, ms) // 1000
    for unit, size, below in (("d", 86_400, "h"), ("h", 3600, "m"), ("m", 60, "s")):
        if s >= size:
            rest = s % size * 1000 // SPAN_MS[below]
            return f"{s // size}{unit}" + (f"{rest:02}{below}" if rest else "")
    return f"{s}s"


def parse_until(text: str, now_ms: int) -> int | None:
    """`2h`, or a time of day `17:30` in the reader's zone, as the span (ms) from now; None for anything else."""
    with suppress(ValueError):
        return parse_span_ms(text)
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", text):
        return None
    now, (hour, minute) = datetime.fromtimestamp(now_ms / 1000), map(int, text.split(":"))
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return int((at if at > now else at + timedelta(days=1)).timestamp() * 1000) - now_ms


def clock(wall_ms: int) -> str:
    """Time of day in the reader's zone."""
    return datetime.fromtimestamp(wall_ms / 1000).strftime("%H:%M:%S")


def zone(wall_ms: int) -> str:
    """What the reader's zone is called then: UTC, CET, -03."""
    return datetime.fromtimestamp(wall_ms / 1000).astimezone().tzname() or ""


def day_clock(wall_ms: int, now_ms: int) -> str:
    """Time of day, with the day where it is not within 20 hours."""
    at = datetime.fromtimestamp(wall_ms / 1000)
    return at.strftime("%H:%M") if abs(wall_ms - now_ms) < 20 * 3_600_000 else at.strftime("%a %d %H:%M")


def day_seconds(wall_ms: int, now_ms: int) -> str:
    """Time of day to the second, with the day where it is not within 20 hours."""
    at = datetime.fromtimestamp(wall_ms / 1000)
    return at.strftime("%H:%M:%S" if abs(wall_ms - now_ms) < 20 * 3_600_000 else "%a %H:%M:%S")


def gpu_hours(amount: int) -> str:
    """GPU-thousandths x ms as GPU-hours, short."""
    hours = amount / GPU_HOUR
    if hours >= 10_000:
        return f"{hours / 1000:.0f}k"
    if hours >= 1000:
        return f"{hours / 1000:.1f}k"
    return f"{hours:.0f}" if hours >= 10 else f"{hours:.1f}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def bar(fraction: float, width: int = 8) -> str:
    """A bar of eighths; over 1 it is full."""
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width)
