"""A flat TOML file with the line of every key, every error of it collected."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.scalars import MOST_SHOWN, shown
from opsconsole.config.yamlio import Source

MOST_BYTES = 1 << 20
MOST_PROBLEMS = 100


class TomlFile:
    """`entries` by key, as typed. `fail` keeps a problem, `check` raises them all."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.problems: list[Problem] = []
        try:
            self.entries: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError([_malformed(file, text, error)]) from None
        except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
            what, fix = "holds a value that no setting takes", "is this one of opsconsole's files?"
            raise ConfigError([Problem(file, 0, "", what, fix)]) from None

    @classmethod
    def open(cls, path: str) -> TomlFile:
        """Raises ConfigError where it cannot be read or is not well-formed."""
        return cls(path, Source.open(path, MOST_BYTES).content)

    def line(self, key: str) -> int:
        """Where it stands; 0 where it is not written as it reads."""
        written = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[]=.]""")
        lines = self.text.splitlines()
        return next((number for number, line in enumerate(lines, 1) if written.match(line)), 0)

    def fail(self, key: str, what: str, fix: str = "") -> None:
        """Keys are foreign text, too."""
        if len(self.problems) < MOST_PROBLEMS:
            field = key if key.isprintable() and len(key) <= MOST_SHOWN else shown(key)
            self.problems.append(Problem(self.file, self.line(key), field, what, fix))

    def check(self) -> None:
        """Raises ConfigError with all problems, if there are any."""
        if self.problems:
            raise ConfigError(self.problems)


def _malformed(file: str, text: str, error: tomllib.TOMLDecodeError) -> Problem:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
    what, line, column = found.groups() if found is not None else (str(error), None, None)
    fix = 'write for example theme = "light", with words in quotes'
    at = int(line) if line else max(1, len(text.splitlines()))
    return Problem(file, at, "", what[0].lower() + what[1:], fix, int(column or 0))
