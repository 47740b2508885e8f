"""What a rule is: data with a source and a date (rules.toml), which a site may override."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import msgspec

DAY_S = 86_400.0
OF_CODES = ("xid", "sxid")
SOURCES = {"xid": "catalogue", "sxid": "fabric", "ecc": "memory"}  # where a row names none; else ours


class Severity(Enum):
    """In order, the worst last: nothing to do, the application's, to be watched, to be repaired, broken now."""

    INFO = "I"
    APPLICATION = "A"
    WATCH = "W"
    DEGRADED = "D"
    FATAL = "F"

    @property
    def rank(self) -> int:
        return "IAWDF".index(self.value)

    @property
    def drains(self) -> bool:
        """The host does not get new work until it is repaired."""
        return self in (Severity.DEGRADED, Severity.FATAL)


class Repeat(msgspec.Struct, frozen=True):
    """What becomes of a rule that is met so often within a span, on one GPU.

    `by`: "" counts all, `process` counts different ones, `place` different processes at one place of the chip.
    """

    times: int
    severity: Severity
    action: str
    within_s: float = DAY_S
    by: str = ""


class Recovery(msgspec.Struct, frozen=True):
    """What the driver asks for."""

    severity: Severity
    action: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`id` is `xid:79` or `ecc:remap-failed`; `action` is what to do, for people.

    `check`: (reading, op, limit): `is`, `>`, `<`, `<=`, `has` (a list holds it), `grows` (by more than the limit from
    one reading to the next); the limit may name another reading. `busy`: only while the GPU is so busy, in percent.
    `limit`: of a rule that compares GPUs. `says`: a pattern of the driver's words.
    `lasts_s`: so long it must hold before it counts, and be quiet before it ends. `fades_s`: after so long an event is
    over; None: with the boot. `if_fatal`: the severity where the line itself says fatal. `ends_wait`: a drain need not
    wait, for what runs there is broken. `others`: what other sources say. `table`: what it was before the site spoke.
    """

    id: str
    meaning: str
    severity: Severity
    action: str
    source: str
    date: str
    check: tuple[str, str, Any] | None = None
    busy: float = 0.0
    limit: float | None = None
    says: str = ""
    lasts_s: float = 0.0
    fades_s: float | None = None
    if_fatal: Severity | None = None
    ends_wait: bool = False
    repeat: Repeat | None = None
    others: tuple[tuple[str, str], ...] = ()
    table: Rule | None = None

    @property
    def threshold(self) -> float | None:
        """The number that a site may change."""
        found = self.limit if self.check is None else self.check[2]
        return None if isinstance(found, bool | str) or found is None else float(found)


@dataclass(frozen=True, slots=True)
class Override:
    """What a site says instead; None leaves what the table says. `because` is shown."""

    severity: Severity | None = None
    action: str | None = None
    limit: float | None = None
    because: str = ""


@dataclass(frozen=True)
class Rules:
    """The table with what a site says of it. `follows`: which code an error is filed under; 0: whichever caused it."""

    by_id: Mapping[str, Rule]
    follows: Mapping[int, int]
    always_fatal: frozenset[int]
    recovery: Mapping[int, Recovery]

    def __getitem__(self, name: str) -> Rule:
        """A code that nobody knows is met as unknown. Raises KeyError for what is neither known nor a code."""
        found = self.by_id.get(name)
        if found is not None:
            return found
        kind, _, code = name.partition(":")
        if kind not in OF_CODES or not code.isdigit():
            raise KeyError(name)
        return replace(self.by_id[f"{kind}:other"], id=name)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.by_id.values())

    @cached_property
    def checks(self) -> tuple[Rule, ...]:
        """Those of one reading at one moment."""
        return tuple(rule for rule in self if rule.check is not None and rule.check[1] != "grows")

    @cached_property
    def growing(self) -> tuple[Rule, ...]:
        """Those of counters between two moments."""
        return tuple(rule for rule in self if rule.check is not None and rule.check[1] == "grows")

    def overridden(self, by: Mapping[str, Override]) -> Rules:
        """Raises KeyError for a name that is no rule."""
        changed = {name: _overridden(self[name], override) for name, override in by.items()}
        return replace(self, by_id={**self.by_id, **changed})


def _overridden(rule: Rule, by: Override) -> Rule:
    check, limit = rule.check, rule.limit
    if by.limit is not None and check is not None:
        check = (check[0], check[1], by.limit)
    elif by.limit is not None:
        limit = by.limit
    return replace(
        rule,
        meaning=f"{rule.meaning} ({by.because})" if by.because else rule.meaning,
        severity=by.severity or rule.severity,
        action=by.action or rule.action,
        source="this site",
        date="",
        check=check,
        limit=limit,
        if_fatal=rule.if_fatal and (by.severity or rule.if_fatal),
        repeat=None if by.severity else rule.repeat,
        table=rule,
    )


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """As rules.toml has it: `of` is a name, or codes such as `8, 39-41`."""

    of: str
    meaning: str
    severity: Severity
    action: str
    source: str = ""
    check: tuple[str, str, Any] | None = None
    busy: float = 0.0
    limit: float | None = None
    says: str = ""
    lasts_s: float = 0.0
    fades_s: float | None = None
    if_fatal: Severity | None = None
    ends_wait: bool = False
    repeat: Repeat | None = None
    others: dict[str, str] = {}


class _Codes(msgspec.Struct, forbid_unknown_fields=True):
    follows: dict[str, int]
    always_fatal: frozenset[int]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    sources: dict[str, tuple[str, str]]
    codes: _Codes
    recovery: dict[str, Recovery]
    rules: dict[str, list[_Row]]


@cache
def builtin_rules() -> Rules:
    """The table as it comes with this version."""
    text = files("opsconsole.health").joinpath("rules.toml").read_text("utf-8")
    file = msgspec.convert(tomllib.loads(text), _File)
    rules = [rule for kind, rows in file.rules.items() for row in rows for rule in _rules_of(kind, row, file.sources)]
    return Rules(
        {rule.id: rule for rule in rules},
        {int(code): under for code, under in file.codes.follows.items()},
        file.codes.always_fatal,
        {int(number): asked for number, asked in file.recovery.items()},
    )


def _rules_of(kind: str, row: _Row, sources: Mapping[str, tuple[str, str]]) -> Iterator[Rule]:
    """What is neither D nor F is forgotten after a day, where it is an event and says nothing else."""
    given = {name: getattr(row, name) for name in row.__struct_fields__ if name not in ("of", "source", "others")}
    event = row.check is None and row.limit is None
    if event and row.fades_s is None and not (row.severity.drains or row.if_fatal):
        given["fades_s"] = DAY_S
    source, date = sources[row.source or SOURCES.get(kind, "ours")]
    others = tuple((sources[who][0], says) for who, says in row.others.items())
    for name in _names(row.of):
        yield Rule(f"{kind}:{name}", source=source, date=date, others=others, **given)


def _names(of: str) -> Iterator[str]:
    for part in of.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            yield from (str(code) for code in range(int(first), int(last or first) + 1))
        else:
            yield part
