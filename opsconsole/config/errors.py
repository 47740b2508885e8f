"""What is wrong with an input: one line each, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from opsconsole.errors import UsageError


@dataclass(frozen=True, slots=True)
class Problem:
    """`line` counts from 1, 0 where there is none; `field` is a path such as hosts[3].gpus; `fix` what to do."""

    file: str
    line: int
    field: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        field = f" {self.field}:" if self.field else ""
        return f"{place}:{field} {self.what}{'; ' + self.fix if self.fix else ''}"


class ConfigError(UsageError):
    """Everything that is wrong with one input."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line)))
        super().__init__("\n".join(map(str, self.problems)))

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))

    def as_json(self) -> list[dict[str, object]]:
        """For --json: the same, by field."""
        return [asdict(problem) for problem in self.problems]
