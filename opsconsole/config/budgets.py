"""Budget trees in a file: nested names with weights."""

from __future__ import annotations

from typing import Any

from yaml.nodes import Node

from opsconsole.config.units import format_span
from opsconsole.config.yamlio import Source
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.ids import ROOT, BudgetId
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


def read_budgets(source: Source, node: Node | None, field: str = "budgets") -> BudgetTree:
    """The tree. A budget's id is its path unless the file gives one, which keeps its usage through renames and
    moves."""
    budgets: dict[BudgetId, Budget] = {}
    nodes: dict[BudgetId, Node] = {}
    pending = [(node, ROOT, "", field)]
    while pending:
        level, parent, prefix, path = pending.pop(0)
        names: dict[str, None] = {}
        for i, child in enumerate(source.sequence(level, path)):
            place = f"{path}[{i}]"
            entries = source.mapping(child, place, FIELDS)
            name = read_name(source, entries.get("name"), f"{place}.name", child)
            if name is None:
                continue
            if name in names:
                source.fail(entries["name"], f"{place}.name", f"{name!r} stands twice among its siblings", "rename one")
                continue
            names[name] = None
            budget = _budget(source, entries, place, name, parent, prefix + name)
            if budget.id in budgets:
                source.fail(entries.get("id", child), f"{place}.id", f"the id {budget.id!r} is taken", "choose another")
                continue
            budgets[budget.id], nodes[budget.id] = budget, child
            if "children" in entries:
                pending.append((entries["children"], budget.id, f"{prefix}{name}/", f"{place}.children"))
    if node is not None and not budgets:
        source.fail(node, field, "holds no budget", "name at least one")
    if len(budgets) > MOST_BUDGETS:
        source.fail(node, field, f"holds more than {MOST_BUDGETS} budgets")
    return BudgetTree.of(budgets.values())


def _budget(source: Source, entries: dict[str, Node], place: str, name: str, parent: BudgetId, path: str) -> Budget:
    explicit = source.text(entries.get("id"), f"{place}.id")
    return Budget(
        BudgetId(explicit or path),
        name,
        parent,
        _weight(source, entries.get("weight"), f"{place}.weight"),
        source.integer(entries.get("max_gpus"), f"{place}.max_gpus", 0, MOST_GPUS),
        source.span_ms(entries.get("min_runtime_default"), f"{place}.min_runtime_default", 0, 30 * DAY),
        source.integer(entries.get("over_budget_priority"), f"{place}.over_budget_priority", -1000, 1000) or 0,
        _weight(source, entries.get("over_budget_weight"), f"{place}.over_budget_weight", zero=False),
    )


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
    """A name that fits into paths, shells and columns."""
    if node is None:
        source.fail(owner, field, "is missing", "give it a name")
        return None
    name = source.text(node, field)
    if name is None:
        return None
    if not name.strip() or name != name.strip() or "/" in name or name.startswith("-") or len(name) > 100:
        source.fail(node, field, f"{name!r} is no name", "use up to 100 characters, no slash, no leading dash or space")
        return None
    return name


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
