"""Budget trees in a file: nested names with weights."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from yaml.nodes import Node

from opsconsole.config.scalars import parse_name, parse_text
from opsconsole.config.yamlio import Source, is_empty
from opsconsole.spans import format_span
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.policy import Policy
from scheduler_core.units import DAY, WEIGHT

FIELDS = (
    "name",
    "id",
    "weight",
    "children",
    "max_gpus",
    "min_runtime_default",
    "over_budget_priority",
    "over_budget_weight",
)
MOST_WEIGHT = 1_000_000
MOST_BUDGETS = 20_000
MOST_GPUS = 1_000_000
Level = tuple[Node | None, BudgetId, str, str]  # its nodes, their parent, the path so far, the field


def read_budgets(source: Source, node: Node | None, field: str = "budgets", policy: Policy | None = None) -> BudgetTree:
    """The tree. A budget's id is its path unless the file gives one, which keeps its usage through renames and moves.

    With a policy, a `min_runtime_default` that no submission may use is refused.
    """
    reader = _TreeReader(source, policy)
    pending = [(node, ROOT, "", field)]
    while pending:
        pending += reader.level(*pending.pop())
    if node is not None and not is_empty(node) and not reader.seen:
        source.fail(node, field, "holds no budget", "name at least one")
    if reader.seen > MOST_BUDGETS:
        source.fail(node, field, f"holds more than {MOST_BUDGETS} budgets", "split the cluster")
    return BudgetTree.of(reader.budgets.values())


@dataclass
class _TreeReader:
    source: Source
    policy: Policy | None
    budgets: dict[BudgetId, Budget] = dataclass_field(default_factory=dict)
    lines: dict[BudgetId, int] = dataclass_field(default_factory=dict)
    seen: int = 0

    def level(self, node: Node | None, parent: BudgetId, prefix: str, field: str) -> list[Level]:
        """Reads siblings; returns the levels below them. What is below a wrong budget is read too, for its errors."""
        source, names, below = self.source, dict[str, int](), list[Level]()
        for i, child in enumerate(source.sequence(node, field)):
            self.seen += 1
            place = f"{field}[{i}]"
            entries = source.mapping(child, place, FIELDS)
            name = read_name(source, entries.get("name"), f"{place}.name", child)
            if name in names:
                fix = f"first in line {names[name]}; rename one"
                source.fail(entries["name"], f"{place}.name", f"{name!r} stands twice among its siblings", fix)
                name = None
            elif name is not None:
                names[name] = child.start_mark.line + 1
            budget = _budget(source, entries, place, name or f"?{self.seen}", parent, prefix)
            self._default_in_bounds(entries.get("min_runtime_default"), f"{place}.min_runtime_default", budget)
            if name is not None:
                self._keep(budget, child, entries.get("id", child), place)
            if "children" in entries:
                below.append((entries["children"], budget.id, f"{prefix}{budget.name}/", f"{place}.children"))
        return below

    def _default_in_bounds(self, node: Node | None, field: str, budget: Budget) -> None:
        """0 is always allowed: unallocated."""
        default, policy = budget.min_runtime_default_ms, self.policy
        if node is None or policy is None or not default:
            return
        low, high = policy.min_runtime_min_ms, policy.min_runtime_max_ms
        if not low <= default <= high:
            bounds = f"{format_span(low)} to {format_span(high)}"
            what = f"{self.source.text(node, field)} is outside min_runtime_bounds, {bounds}"
            self.source.fail(node, field, what, "change one of the two")

    def _keep(self, budget: Budget, child: Node, at: Node, place: str) -> None:
        """Keeps it, unless another has its id. Below an unknown parent it only counts for its errors."""
        if budget.id in self.budgets:
            fix = f"line {self.lines[budget.id]} has it; give one of them another id"
            self.source.fail(at, f"{place}.id", f"the id {budget.id!r} is taken", fix)
        elif budget.parent in self.budgets or budget.parent == ROOT:
            self.budgets[budget.id], self.lines[budget.id] = budget, child.start_mark.line + 1


def _budget(source: Source, entries: dict[str, Node], place: str, name: str, parent: BudgetId, prefix: str) -> Budget:
    return Budget(
        BudgetId(source.parsed(entries.get("id"), f"{place}.id", _parse_id) or prefix + name),
        name,
        parent,
        _weight(source, entries.get("weight"), f"{place}.weight"),
        source.integer(entries.get("max_gpus"), f"{place}.max_gpus", 0, MOST_GPUS),
        source.span_ms(entries.get("min_runtime_default"), f"{place}.min_runtime_default", 0, 30 * DAY),
        source.integer(entries.get("over_budget_priority"), f"{place}.over_budget_priority", -1000, 1000) or 0,
        _weight(source, entries.get("over_budget_weight"), f"{place}.over_budget_weight", zero=False),
    )


def _parse_id(text: str) -> str:
    """An id may be a path: that is what a budget without one is known by."""
    for part in text.split("/"):
        parse_name(part)
    return parse_text(text)


def _weight(source: Source, node: Node | None, field: str, zero: bool = True) -> int:
    """Millionths. Absent is 1."""
    value = source.decimal(node, field, 6, MOST_WEIGHT)
    if value is None:
        return WEIGHT
    if not value and not zero:
        source.fail(node, field, "may not be 0")
        return WEIGHT
    return int(value * WEIGHT)


def read_name(source: Source, node: Node | None, field: str, owner: Node) -> str | None:
    """A name that fits into paths, shells and columns; required."""
    if node is None:
        source.fail(owner, field, "is missing", "give it a name")
        return None
    return source.parsed(node, field, parse_name)


def write_budgets(tree: BudgetTree) -> list[dict[str, Any]]:
    """The inverse of `read_budgets`."""

    def row(bid: BudgetId) -> dict[str, Any]:
        b = tree.by_id[bid]
        found: dict[str, Any] = {"name": b.name, "weight": number(b.weight)}
        if b.id != tree.paths[bid]:
            found["id"] = b.id
        if b.max_gpus is not None:
            found["max_gpus"] = b.max_gpus
        if b.min_runtime_default_ms is not None:
            found["min_runtime_default"] = format_span(b.min_runtime_default_ms)
        if b.over_budget_priority:
            found["over_budget_priority"] = b.over_budget_priority
        if b.over_budget_weight != WEIGHT:
            found["over_budget_weight"] = number(b.over_budget_weight)
        if tree.children[bid]:
            found["children"] = [row(kid) for kid in tree.children[bid]]
        return found

    return [row(bid) for bid in tree.children[ROOT]]


def number(millionths: int) -> int | str:
    """A weight as people write it."""
    whole, rest = divmod(millionths, WEIGHT)
    return f"{whole}.{rest:06}".rstrip("0") if rest else whole
