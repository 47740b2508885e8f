"""What a log does not say of its workloads: rules of the policy file, drawn from one seed (docs/simulate.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random
from typing import Generic, TypeVar

from yaml.nodes import MappingNode, Node, SequenceNode

from opsconsole.config.scalars import parse_text, shown
from opsconsole.config.units import parse_percent_ppm
from opsconsole.config.yamlio import Source
from opsconsole.simulating.job import Job
from opsconsole.spans import parse_span_ms
from scheduler_core.units import DAY, HOUR, MINUTE, PPM, SECOND

T = TypeVar("T")
FIELDS = (
    "seed",
    "min_runtime",
    "resumable",
    "on_preempt",
    "budget",
    "hosts",
    "start_delay",
    "stop_delay",
    "checkpoint_every",
    "repair",
)
WHEN = ("gpus", "user", "project")
SIZES = re.compile(r"([0-9]{1,7})(?:(-)([0-9]{1,7})?)?")
MOST_SEED = 1 << 53


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """The values of the jobs that it fits, each with its share in parts per million; they make a whole.

    `users` and `projects` are patterns of a shell, any of which must fit; empty fits all.
    """

    shares: tuple[tuple[int, T], ...]
    least_gpus: int = 0
    most_gpus: int | None = None
    users: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    def fits(self, job: Job) -> bool:
        if job.gpus < self.least_gpus or (self.most_gpus is not None and job.gpus > self.most_gpus):
            return False
        return _any(self.users, job.user) and _any(self.projects, job.project)

    def value(self, drawn: float) -> T:
        """`drawn` in [0, 1)."""
        reached = 0
        for share, value in self.shares:
            reached += share
            if drawn * PPM < reached:
                return value
        return self.shares[-1][1]

    @property
    def is_drawn(self) -> bool:
        return len(self.shares) > 1


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def one(value: T, **when: int) -> Rule[T]:
    """The same for all that it fits."""
    return Rule(((PPM, value),), **when)  # type: ignore[arg-type]


DEFAULT_MIN_RUNTIMES = (one(15 * MINUTE, most_gpus=2), one(4 * HOUR, least_gpus=64), one(HOUR))


@dataclass(frozen=True, slots=True)
class Rules:
    """Of each attribute the first rule that fits counts. `budget`: `project`, `user` or `all`, or rules."""

    seed: int = 1
    min_runtime: tuple[Rule[int], ...] = DEFAULT_MIN_RUNTIMES
    resumable: tuple[Rule[bool], ...] = (one(True),)
    restarts: bool = True  # what is not resumable begins again when it was preempted; else it ends
    budget: str | tuple[Rule[str], ...] = ""  # "": project where the log has one, else user, else all
    trusts_hosts: bool = True  # on so many hosts as the log says
    start_delay_ms: int = 2 * SECOND
    stop_delay_ms: int = 30 * SECOND
    checkpoint_every_ms: int = 15 * MINUTE  # 0: at the stop, so that nothing is lost
    repair_ms: int = 4 * HOUR  # of a host that failed

    @property
    def are_drawn(self) -> bool:
        """Does anything depend on the seed?"""
        named = () if isinstance(self.budget, str) else self.budget
        drawn = [rule.is_drawn for rules in (self.min_runtime, self.resumable, named) for rule in rules]
        return any(drawn)


class Drawn(Generic[T]):
    """The values of one attribute, job after job. One draw for each, so that no rule shifts what others draw."""

    def __init__(self, rules: tuple[Rule[T], ...], seed: int, attribute: str, default: T) -> None:
        self.rules, self.default = rules, default
        self.draw = Random(f"{seed} {attribute}").random

    def of(self, job: Job) -> T:
        drawn = self.draw()
        for rule in self.rules:
            if rule.fits(job):
                return rule.value(drawn)
        return self.default


# -- reading ------------------------------------------------------------------------------------------------------


def read_rules(source: Source, node: Node | None, field: str = "workloads") -> Rules:
    """Defaults where the file says nothing. Problems are kept by the source."""
    entries = source.mapping(node, field, FIELDS)
    default = Rules()

    def span(name: str, otherwise: int, most: int) -> int:
        value = source.span_ms(entries.get(name), f"{field}.{name}", 0, most)
        return otherwise if value is None else value

    runtimes = _Reader(source, parse_span_ms).rules(entries.get("min_runtime"), f"{field}.min_runtime")
    seed = source.integer(entries.get("seed"), f"{field}.seed", 0, MOST_SEED)
    on_preempt = source.choice(entries.get("on_preempt"), f"{field}.on_preempt", ("restart", "end"))
    hosts = source.choice(entries.get("hosts"), f"{field}.hosts", ("log", "any"))
    return Rules(
        default.seed if seed is None else seed,
        runtimes or default.min_runtime,
        _read_resumable(source, entries.get("resumable"), f"{field}.resumable") or default.resumable,
        on_preempt != "end",
        _read_budget(source, entries.get("budget"), f"{field}.budget"),
        hosts != "any",
        span("start_delay", default.start_delay_ms, HOUR),
        span("stop_delay", default.stop_delay_ms, HOUR),
        span("checkpoint_every", default.checkpoint_every_ms, 30 * DAY),
        span("repair", default.repair_ms, 365 * DAY),
    )


def _read_resumable(source: Source, node: Node | None, field: str) -> tuple[Rule[bool], ...]:
    """A share, or rules with shares."""
    found = _Reader(source, parse_percent_ppm).rules(node, field)
    for rule in found:
        if rule.shares[0][1] > PPM:
            source.fail(node, field, "is more than 100%")
    return tuple(_split(rule) for rule in found)


def _split(rule: Rule[int]) -> Rule[bool]:
    """A share that is drawn: so many are, the others are not."""
    part = min(PPM, rule.shares[0][1])
    shares = tuple((size, value) for size, value in ((part, True), (PPM - part, False)) if size)
    return Rule(shares, rule.least_gpus, rule.most_gpus, rule.users, rule.projects)


def _read_budget(source: Source, node: Node | None, field: str) -> str | tuple[Rule[str], ...]:
    if isinstance(node, SequenceNode):
        return _Reader(source, parse_text).rules(node, field)
    return source.choice(node, field, ("project", "user", "all")) or ""


@dataclass
class _Reader(Generic[T]):
    """Reads the rules of one attribute: a value, or a list of `{gpus, user, project, value}`."""

    source: Source
    parse: Callable[[str], T]

    def rules(self, node: Node | None, field: str) -> tuple[Rule[T], ...]:
        if isinstance(node, SequenceNode):
            found = [self._rule(child, f"{field}[{i}]") for i, child in enumerate(node.value)]
        else:
            found = [] if node is None else [Rule(self._shares(node, field))]
        return tuple(rule for rule in found if rule.shares)

    def _rule(self, node: Node, field: str) -> Rule[T]:
        source = self.source
        entries = source.mapping(node, field, (*WHEN, "value"))
        if "value" not in entries:
            source.fail(node, f"{field}.value", "is missing", "say what those that fit get")
        least, most = source.parsed(entries.get("gpus"), f"{field}.gpus", _parse_sizes) or (0, None)
        return Rule(
            self._shares(entries.get("value"), f"{field}.value"),
            least,
            most,
            self._patterns(entries.get("user"), f"{field}.user"),
            self._patterns(entries.get("project"), f"{field}.project"),
        )

    def _patterns(self, node: Node | None, field: str) -> tuple[str, ...]:
        nodes = self.source.sequence(node, field) if isinstance(node, SequenceNode) else [node]
        return tuple(text for child in nodes if (text := self.source.text(child, field)) is not None)

    def _shares(self, node: Node | None, field: str) -> tuple[tuple[int, T], ...]:
        """One value, or several by their shares: `{15m: 80%, 0: 20%}`."""
        if not isinstance(node, MappingNode):
            value = self.source.parsed(node, field, self.parse)
            return () if value is None else ((PPM, value),)
        shares: list[tuple[int, T]] = []
        for key, share in self.source.mapping(node, field).items():
            part = self.source.percent_ppm(share, f"{field}.{key}")
            try:
                shares.append((part or 0, self.parse(key)))
            except ValueError as error:
                what, _, fix = str(error).partition("; ")
                self.source.fail(node, f"{field}.{key}", what, fix)
        total = sum(part for part, _ in shares)
        if total != PPM and not self.source.problems:
            self.source.fail(node, field, f"makes {total * 100 / PPM:g}%", "let the shares make 100%")
        return tuple(shares)


def _parse_sizes(text: str) -> tuple[int, int | None]:
    """`8`, `1-2`, `64-`. Raises ValueError."""
    found = SIZES.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{shown(text)} is no number of GPUs; write for example 8, 1-2 or 64-")
    least = int(found[1])
    most = least if found[2] is None else int(found[3]) if found[3] else None
    if most is not None and most < least:
        raise ValueError(f"{text} runs backwards; write {most}-{least}")
    return least, most
