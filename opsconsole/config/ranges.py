"""Host ranges: gpu[001-064], rack[a,b]-gpu[1-4]. Counted before anything is expanded, so no pattern can grow.

Raises ValueError "what is wrong; what to write".
"""

from __future__ import annotations

import re
from itertools import product

from opsconsole.config.scalars import MOST_NAME, parse_name, parse_text, shown

MOST_NAMES = 4096
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_WORD = re.compile(r"[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*")
_BOUNDS = re.compile(r"([0-9]+)-([0-9]+)")


def expand(pattern: str) -> list[str]:
    """The names of a pattern, in order, each once. Reversed, empty, nested and overlapping ranges are refused."""
    pieces = _BRACKET.split(parse_text(pattern))
    if any("[" in text or "]" in text for text in pieces[::2]):
        raise ValueError(f"{shown(pattern)} has brackets that do not match or nest; write for example gpu[01-08]")
    total = 1
    for piece in pieces[1::2]:
        total *= _count(piece, pattern)
        if total > MOST_NAMES:
            raise ValueError(_too_many(pattern))
    choices = [_options(piece) if i % 2 else [piece] for i, piece in enumerate(pieces)]
    names = ["".join(parts) for parts in product(*choices)]
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{shown(pattern)} names {twice!r} twice; let the ranges not overlap")
    return names


def expand_names(pattern: str) -> list[str]:
    """As `expand`, for what becomes host names."""
    return [parse_name(name, MOST_NAME) for name in expand(pattern)]


def _too_many(pattern: str) -> str:
    return f"{shown(pattern)} names more than {MOST_NAMES} hosts; split it, or check the range"


def _parts(piece: str) -> list[str]:
    return [part.strip() for part in piece.split(",")]


def _count(piece: str, pattern: str) -> int:
    """How many names a bracket stands for, found without making them."""
    if not piece.strip():
        raise ValueError(f"{shown(pattern)} has an empty range; write for example [01-08] or [a,b]")
    total = 0
    for part in _parts(piece):
        bounds = _BOUNDS.fullmatch(part)
        if bounds is not None:
            total += _length(bounds[1], bounds[2], pattern)
        elif _WORD.fullmatch(part):
            total += 1
        else:
            raise ValueError(f"{shown(pattern)}: {shown(part)} is no range; write for example 01-08, or a,b")
    return total


def _length(low: str, high: str, pattern: str) -> int:
    if len(low) > 12 or len(high) > 12:
        raise ValueError(_too_many(pattern))
    if int(low) > int(high):
        raise ValueError(f"{shown(pattern)}: the range {low}-{high} runs backwards; write {high}-{low}")
    if low.startswith("0") and len(low) != len(high) and low != "0":
        raise ValueError(f"{shown(pattern)}: {low}-{high} has two widths; write {int(low):0{len(high)}}-{high}")
    return int(high) - int(low) + 1


def _options(piece: str) -> list[str]:
    options: list[str] = []
    for part in _parts(piece):
        bounds = _BOUNDS.fullmatch(part)
        if bounds is None:
            options.append(part)
        else:
            width = len(bounds[1]) if bounds[1].startswith("0") else 0
            options.extend(f"{n:0{width}}" for n in range(int(bounds[1]), int(bounds[2]) + 1))
    return options
