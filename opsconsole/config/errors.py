"""What is wrong with an input: one line each, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from opsconsole.errors import UsageError

MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """`line` and `column` count from 1, 0 where there is none; `field` is a path such as hosts[3].gpus.

    `what` is wrong, `fix` is what to do. A `warning` refuses nothing: the input works, but probably not as meant.
    """

    file: str
    line: int
    field: str
    what: str
    fix: str = ""
    column: int = 0
    warning: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        field = f" {self.field}:" if self.field else ""
        return f"{place}:{field} {self.what}{'; ' + self.fix if self.fix else ''}"


class ConfigError(UsageError):
    """Everything that is wrong with one input, by line. Each line says of which file, as compilers do."""

    speaker = ""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line, p.column)))
        super().__init__("\n".join(map(str, self.problems[:MOST_SHOWN])))

    def __str__(self) -> str:
        more = len(self.problems) - MOST_SHOWN
        return f"{self.message}\n… and {more} more" if more > 0 else self.message

    def as_json(self) -> list[dict[str, object]]:
        """For --json: the same, by field, none left out."""
        return problems_json(self.problems)


def problems_json(problems: Sequence[Problem]) -> list[dict[str, object]]:
    """Stable, documented in docs/cli.md: file, line, field, what, fix, column, warning."""
    return [asdict(problem) for problem in problems]
