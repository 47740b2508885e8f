"""Texts to plain values: numbers, words, yes and no, names. Parsers raise ValueError "what is wrong; what to write".

YAML 1.1 reads 010 as eight, 1:30 as ninety and `no` as false, YAML 1.2 does not. Where the two differ the text is
refused with both readings, unless a name or a free text is expected: then it is what was typed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from decimal import Decimal

MOST_TEXT = 1000
MOST_NAME = 100
MOST_SHOWN = 60
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_CLOCK = re.compile(r"[0-9]+(:[0-9]+)+")
_YAML_BOOLEANS = {
    "y": True,
    "yes": True,
    "on": True,
    "true": True,
    "n": False,
    "no": False,
    "off": False,
    "false": False,
}


def shown(text: str) -> str:
    """A foreign text in a message: quoted, escaped, of bounded length."""
    return repr(text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…")


def suggestion(word: str, known: Iterable[str]) -> str:
    """What may have been meant; else what there is."""
    names = list(known)
    close = difflib.get_close_matches(word[:MOST_NAME], names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f", … {len(names) - 30} more" if len(names) > 30 else ""
    return f"known: {', '.join(names[:30])}{more}" if names else "there are none"


def parse_text(text: str) -> str:
    """One line that a person may read in a table."""
    if len(text) > MOST_TEXT:
        raise ValueError(f"is longer than {MOST_TEXT} characters; shorten it")
    if CONTROL.search(text):
        raise ValueError(f"{shown(text)} holds control characters; remove them")
    return text


def parse_name(text: str, most: int = MOST_NAME) -> str:
    """A name that fits into paths, shells and columns."""
    text = parse_text(text)
    if not text.strip() or text != text.strip() or "/" in text or text.startswith("-") or len(text) > most:
        raise ValueError(f"{shown(text)} is no name; use up to {most} characters, no slash, no leading dash or space")
    return text


def parse_boolean(text: str) -> bool:
    if text in ("true", "false"):
        return text == "true"
    meant = _YAML_BOOLEANS.get(text.lower())
    fix = "" if meant is None else f"; write {str(meant).lower()}"
    raise ValueError(f"expected true or false, got {shown(text)}{fix}")


def parse_integer(text: str, least: int, most: int) -> int:
    """A plain decimal number between the bounds, which fit into 64 bits. Raises ValueError that names them."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(_no_integer(text))
    value = int(text) if len(text) < 40 else None
    if value is None or not least <= value <= most:
        raise ValueError(f"{text if len(text) < 40 else shown(text)} is outside {least} to {most}")
    return value


def _no_integer(text: str) -> str:
    """Why a text is no number, with what other readers would make of it."""
    digits = text.lstrip("+-").replace("_", "")
    if len(text) <= 20 and re.fullmatch(r"0[0-9]+", digits):
        octal = f"{int(digits, 8)} in YAML 1.1" if re.fullmatch(r"[0-7]+", digits) else "no number in YAML 1.1"
        return f"{text!r} is {octal} and {int(digits)} elsewhere; write it without the leading 0"
    if len(text) <= 20 and re.fullmatch(r"0([xX][0-9a-fA-F]+|o[0-7]+|b[01]+)", digits):
        return f"{text!r} is written in another base; write {int(digits, 0)}"
    if len(text) <= 20 and re.fullmatch(r"[0-9]+", digits) and digits != text:
        return f"expected a whole number, got {text!r}; write {int(digits)}"
    if len(text) <= 20 and _CLOCK.fullmatch(text):
        return f"{text!r} is {sexagesimal(text)} in YAML 1.1 and a word elsewhere; write a plain number"
    return f"expected a whole number, got {shown(text)}; write digits, such as 8"


def sexagesimal(text: str) -> int:
    """What YAML 1.1 makes of 1:30."""
    value = 0
    for part in text.split(":"):
        value = value * 60 + int(part)
    return value


def parse_decimal(text: str, digits: int, most: int) -> Decimal:
    """A number from 0 to `most` with at most so many digits behind the point. Raises ValueError."""
    if not re.fullmatch(rf"[0-9]{{1,18}}(\.[0-9]{{1,{digits}}})?", text) or re.match(r"0[0-9]", text):
        what = f"expected a number from 0 to {most} with at most {digits} digits behind the point"
        raise ValueError(f"{what}, got {shown(text)}")
    value = Decimal(text)
    if value > most:
        raise ValueError(f"{text} is more than {most}")
    return value


def parse_choice(text: str, options: Iterable[str]) -> str:
    names = list(options)
    if text in names:
        return text
    raise ValueError(f"{shown(text)} is none of {', '.join(names)}; {suggestion(text, names)}".removesuffix("; "))
