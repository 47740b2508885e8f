"""Host ranges: gpu[001-064], rack[a,b]-gpu[1-4]. Bounded before anything is expanded."""

from __future__ import annotations

import re
from itertools import product

MOST_NAMES = 4096
_BRACKET = re.compile(r"\[([^\[\]]*)\]")


def expand(pattern: str) -> list[str]:
    """The names of a pattern, in order. Raises ValueError with what is wrong."""
    pieces = _BRACKET.split(pattern)
    if any("[" in text or "]" in text for text in pieces[::2]):
        raise ValueError(f"{pattern!r} has brackets that do not match; write for example gpu[01-08]")
    choices: list[list[str]] = []
    total = 1
    for i, piece in enumerate(pieces):
        options = [piece] if i % 2 == 0 else None
        count = 1 if options is not None else _count(piece, pattern)
        total *= count
        if total > MOST_NAMES:
            raise ValueError(f"{pattern!r} names more than {MOST_NAMES} hosts; split it, or check the range")
        choices.append(options if options is not None else _options(piece))
    return ["".join(parts) for parts in product(*choices)]


def _bounds(part: str) -> tuple[str, str] | None:
    match = re.fullmatch(r"(\d+)-(\d+)", part)
    return (match[1], match[2]) if match else None


def _count(piece: str, pattern: str) -> int:
    """How many names a bracket stands for, found without making them."""
    if not piece.strip():
        raise ValueError(f"{pattern!r} has an empty range; write for example [01-08] or [a,b]")
    total = 0
    for part in piece.split(","):
        bounds = _bounds(part.strip())
        if bounds is None:
            if not re.fullmatch(r"[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*", part.strip()):
                raise ValueError(f"{pattern!r}: {part.strip()!r} is no range; write for example 01-08, or a,b")
            total += 1
            continue
        low, high = bounds
        if len(low) > 12 or len(high) > 12:
            raise ValueError(f"{pattern!r} names more than {MOST_NAMES} hosts; split it, or check the range")
        if int(low) > int(high):
            raise ValueError(f"{pattern!r}: the range {low}-{high} runs backwards; write {high}-{low}")
        total += int(high) - int(low) + 1
    return total


def _options(piece: str) -> list[str]:
    options: list[str] = []
    for part in piece.split(","):
        bounds = _bounds(part.strip())
        if bounds is None:
            options.append(part.strip())
        else:
            width = len(bounds[0]) if bounds[0].startswith("0") else 0
            options.extend(f"{n:0{width}}" for n in range(int(bounds[0]), int(bounds[1]) + 1))
    return options
