"""What is replayed on: the cluster, the policy files, the budgets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from yaml.nodes import Node

from opsconsole.config import inventory
from opsconsole.config.budgets import read_budgets
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.knobs import read_policy
from opsconsole.config.scalars import shown
from opsconsole.config.yamlio import Source
from opsconsole.errors import UsageError
from opsconsole.simulating.job import Log
from opsconsole.simulating.rules import Rules, read_rules
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, HostName
from scheduler_core.policy import Policy
from scheduler_core.units import WEIGHT

KNOWN = (*inventory.TOP, "workloads")  # an inventory will do
MOST_HOSTS, MOST_GPUS = 20_000, 64
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Variant:
    """One policy to replay under, with the rules for what the log lacks. No tree: the log's own names make one."""

    name: str
    policy: Policy = field(default_factory=Policy)
    tree: BudgetTree | None = None
    rules: Rules = field(default_factory=Rules)


def parse_cluster(text: str, option: str = "--cluster") -> tuple[Host, ...]:
    """`128x8`, or several kinds: `16x8,4x4`. Raises UsageError."""
    hosts: list[Host] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*([1-9][0-9]{0,4})\s*[x×*]\s*([1-9][0-9]{0,1})\s*", part)
        if found is None or int(found[2]) > MOST_GPUS or len(hosts) + int(found[1]) > MOST_HOSTS:
            what = f"{option}: {shown(text)} is no cluster of at most {MOST_HOSTS} hosts of 1 to {MOST_GPUS} GPUs"
            raise UsageError(what, advice="write hosts x GPUs, for example 128x8")
        number, gpus = int(found[1]), int(found[2])
        hosts += [Host(HostName(f"gpu{len(hosts) + n:05}"), gpus) for n in range(1, number + 1)]
    return tuple(hosts)


def read_variant(path: str) -> Variant:
    """A policy file; an inventory is one too. Raises ConfigError with everything that is wrong in it."""
    source = Source.open(path)
    top = _top(source)
    policy = read_policy(source, top.get("policy"))
    tree = read_budgets(source, top["budgets"], policy=policy) if "budgets" in top else None
    rules = read_rules(source, top.get("workloads"))
    source.check()
    return Variant(path, policy, tree, rules)


def _top(source: Source) -> dict[str, Node]:
    top = source.mapping(source.root(), "", KNOWN)
    if "clusters" in top:
        source.fail(
            top["clusters"], "clusters", "are not read here", "write the policy and budgets of one of them at the top"
        )
    return top


def read_budget_file(path: str, log: Log) -> tuple[BudgetTree, str]:
    """A tree, and what to say about it. A YAML file with `budgets` (an inventory will do), or a table of GPUs by day.

    Raises ConfigError.
    """
    source = Source.open(path)
    first = source.content.lstrip().partition("\n")[0].strip().lower()
    if first.startswith("date,"):
        return _table_tree(source, log)
    top = _top(source)
    if "budgets" not in top:
        source.fail(None, "budgets", "is missing", "name at least one budget")
    tree = read_budgets(source, top.get("budgets"))
    source.check()
    return tree, ""


def _table_tree(source: Source, log: Log) -> tuple[BudgetTree, str]:
    """Weights are the GPUs of each budget on the day on which the log begins, else on the last day of the table."""
    lines = [line.split(",") for line in source.content.splitlines() if line.strip()]
    names, days = [name.strip() for name in lines[0][1:]], {row[0]: row[1:] for row in lines[1:]}
    wrong = [(at, row) for at, row in enumerate(lines[1:], start=2) if not _is_day(row, len(names) + 1)]
    if wrong or not days:
        line, row = wrong[0] if wrong else (1, [])
        what = f"{shown(','.join(row))} is no day with {len(names)} numbers" if wrong else "holds no day"
        raise ConfigError([Problem(source.file, line, "", what, "write it as the others")])
    begins = log.first_day
    day = begins if begins in days else max(days)
    weights = {name: int(gpus) for name, gpus in zip(names, days[day], strict=True) if name.lower() != "total"}
    budgets = [Budget(BudgetId(name), name, ROOT, gpus * WEIGHT) for name, gpus in weights.items() if gpus]
    why = "the log's first day" if day == begins else "the table's last day; the log begins on none of its days"
    return BudgetTree.of(budgets), f"weights are the GPUs of {day}, {why}"


def _is_day(row: list[str], wanted: int) -> bool:
    return len(row) == wanted and DAY.fullmatch(row[0]) is not None and all(cell.strip().isdigit() for cell in row[1:])
