"""The lines of a log: from a file or the standard input, packed or not, whatever bytes it holds."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from opsconsole.config.errors import ConfigError, Problem
from opsconsole.simulating.oddities import Oddities

GZIP = b"\x1f\x8b"
BOM = "\ufeff"


def lines_of(path: str, oddities: Oddities) -> Iterator[tuple[int, str]]:
    """Numbered from 1, without their ends. `-` is the standard input.

    Bytes that are no UTF-8 become escapes such as \\xff, and are counted, as is the end of packed data in the middle.
    Raises ConfigError where nothing can be read.
    """
    number = 0
    try:
        with _opened(path) as file:
            for number, raw in enumerate(file, start=1):
                try:
                    text = raw.decode()
                except UnicodeDecodeError:
                    text = raw.decode(errors="backslashreplace")
                    oddities.add("bad_bytes", number, text.strip()[:80])
                yield number, (text.removeprefix(BOM) if number == 1 else text).rstrip("\r\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if not number:
            raise refusal(path, f"is no whole gzip file: {error}", "write or copy it again") from None
        oddities.add("cut_off", number, str(error))
    except OSError as error:
        raise refusal(path, f"cannot be read: {error.strerror}", "check the path and its permissions") from None


def _opened(path: str) -> IO[bytes]:
    raw = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115
    packed = cast("BufferedReader", raw).peek(2)[:2] == GZIP
    return cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw


def refusal(path: str, what: str, fix: str, line: int = 0) -> ConfigError:
    """One sentence about a log that cannot be read at all."""
    return ConfigError([Problem(file_name(path), line, "", what, fix)])


def file_name(path: str) -> str:
    return "<stdin>" if path == "-" else path
