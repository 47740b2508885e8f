"""What the command line says when the words are wrong: one message, with what was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from opsconsole.config.scalars import suggestion
from opsconsole.errors import UsageError
from opsconsole.spans import parse_span_ms

CHOICE = re.compile(r"(?:argument (?P<name>\S+): )?invalid choice: (?P<word>.+?) \(choose from (?P<known>.*)\)", re.S)
BEHIND = "the command to run stands behind `--`"


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of printing the usage of everything."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(_clearer(message), advice=f"{self.prog} --help tells more")


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """As `parse_args`; but a workload's own options are never taken for ours. Raises UsageError."""
    words = list(sys.argv[1:] if argv is None else argv)
    if strange := [word for word in words if not _is_text(word)]:  # the store and the hosts take text alone
        raise UsageError(f"{strange[0]!a} is not UTF-8", advice="write it in UTF-8")
    found, extra = parser.parse_known_args(words)
    if found.command == "submit" and "--" not in words:
        raise UsageError(BEHIND, advice=f"opsconsole submit … -- {' '.join([*found.argv, *extra])}")
    if extra:
        command = f"opsconsole {found.command}" if found.command else "opsconsole"
        raise UsageError(f"{command} does not take {' '.join(extra)}", advice=f"{command} --help lists its options")
    return found


def span_ms(option: str, text: str) -> int:
    """What was given with an option that takes a span of time. Raises UsageError."""
    try:
        return parse_span_ms(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def lasting_ms(option: str, text: str) -> int:
    """The same of what something is to last. Raises UsageError for nothing too."""
    if (found := span_ms(option, text)) == 0:
        raise UsageError(f"{option} {text} is over at once", advice="say for how long, for example 2h")
    return found


def whole(option: str, number: int | None, most: int) -> int:
    """A count from 1 on; 0 where it is not given. Raises UsageError."""
    if number is not None and not 1 <= number <= most:
        raise UsageError(f"{option}: {number} is outside 1 to {most}")
    return number or 0


def _is_text(word: str) -> bool:
    """Bytes that are none come from the shell as lone surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _clearer(message: str) -> str:
    if (found := CHOICE.fullmatch(message)) is not None:
        word, known = found["word"].strip("'\""), re.findall(r"[^\s',]+", found["known"])
        what = "command" if found["name"] == "COMMAND" else f"value of {found['name']}"
        return f"{word!r} is no {what}; {suggestion(word, known)}"
    if (name := re.fullmatch(r"argument (\S+): expected one argument", message)) is not None:
        return f"{name[1]} needs a value; one that begins with a dash is written {name[1].split('/')[-1]}=VALUE"
    return message.replace("the following arguments are required:", "missing:").removeprefix("argument ")
