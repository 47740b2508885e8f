"""Budgets: a tree of weights (rule 1). Ids stay when a budget is renamed or moved; paths are for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

from scheduler_core.errors import UnknownIdError
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.units import WEIGHT


@dataclass(frozen=True, slots=True)
class Budget:
    """A node of the tree. Weights are in millionths, 0 is legal (rule 1); `max_gpus` in whole GPUs (rule 8)."""

    id: BudgetId
    name: str
    parent: BudgetId = ROOT
    weight: int = WEIGHT
    max_gpus: int | None = None
    min_runtime_default_ms: int | None = None
    over_budget_priority: int = 0
    over_budget_weight: int = WEIGHT


@dataclass(frozen=True)
class BudgetTree:
    """All budgets of a cluster. Children and leaves are ordered by id, so that every walk is the same walk."""

    budgets: tuple[Budget, ...]

    @classmethod
    def of(cls, budgets: Iterable[Budget]) -> BudgetTree:
        return cls(tuple(sorted(budgets, key=lambda b: b.id)))

    @cached_property
    def by_id(self) -> dict[BudgetId, Budget]:
        return {b.id: b for b in self.budgets}

    @cached_property
    def children(self) -> dict[BudgetId, tuple[BudgetId, ...]]:
        """Children of each node, the root included, by id."""
        found: dict[BudgetId, list[BudgetId]] = {ROOT: []}
        for b in self.budgets:
            found[b.id] = []
        for b in self.budgets:
            found[b.parent].append(b.id)
        return {parent: tuple(kids) for parent, kids in found.items()}

    @cached_property
    def leaves(self) -> tuple[BudgetId, ...]:
        return tuple(b.id for b in self.budgets if not self.children[b.id])

    @cached_property
    def chains(self) -> dict[BudgetId, tuple[BudgetId, ...]]:
        """Each budget with its ancestors, the budget first, the root left out."""
        chains: dict[BudgetId, tuple[BudgetId, ...]] = {}
        for b in self.budgets:
            chain, at = [], b.id
            while at != ROOT:
                chain.append(at)
                at = self.by_id[at].parent
            chains[b.id] = tuple(chain)
        return chains

    @cached_property
    def share_weights(self) -> dict[BudgetId, int]:
        """Weights as they count among siblings: those that all weigh 0 split equally (rule 1)."""
        weights = {b.id: b.weight for b in self.budgets}
        for kids in self.children.values():
            if not any(weights[kid] for kid in kids):
                weights |= dict.fromkeys(kids, 1)
        return weights

    @cached_property
    def fractions(self) -> dict[BudgetId, Fraction]:
        """The guaranteed fraction of each budget: the product of weight shares from the root down (rule 1)."""
        found = {ROOT: Fraction(1)}
        pending = [ROOT]
        while pending:
            parent = pending.pop()
            kids = self.children[parent]
            total = sum(self.share_weights[kid] for kid in kids)
            for kid in kids:
                found[kid] = found[parent] * Fraction(self.share_weights[kid], total)
            pending.extend(kids)
        return found

    @cached_property
    def scales(self) -> dict[BudgetId, tuple[int, int]]:
        """Integers that make usages of siblings comparable: usage x scale orders as usage / weight does.

        The first serves below the share, the second above it, where usage / (weight x over_budget_weight) counts.
        Siblings of weight 0 get scale 1: among them least usage comes first (rule 5).
        """
        scales: dict[BudgetId, tuple[int, int]] = {}
        for kids in self.children.values():
            plain = {k: self.share_weights[k] or 1 for k in kids}
            over = {k: plain[k] * self.by_id[k].over_budget_weight for k in kids}
            plain_lcm, over_lcm = lcm(*plain.values()), lcm(*over.values())
            scales |= {k: (plain_lcm // plain[k], over_lcm // over[k]) for k in kids}
        return scales

    @cached_property
    def shares(self) -> dict[BudgetId, tuple[int, int]]:
        """The guaranteed fractions as numerators and denominators."""
        return {budget: (f.numerator, f.denominator) for budget, f in self.fractions.items()}

    @cached_property
    def leaves_below(self) -> dict[BudgetId, tuple[BudgetId, ...]]:
        """The leaves of each subtree; a leaf is its own."""
        found: dict[BudgetId, list[BudgetId]] = {b.id: [] for b in self.budgets}
        for leaf in self.leaves:
            for budget in self.chains[leaf]:
                found[budget].append(leaf)
        return {budget: tuple(leaves) for budget, leaves in found.items()}

    def with_weight(self, budget: BudgetId, weight: int) -> BudgetTree:
        """The same tree but for one weight, in millionths."""
        return BudgetTree(tuple(replace(b, weight=weight) if b.id == budget else b for b in self.budgets))

    def subtree(self, budget: BudgetId) -> tuple[BudgetId, ...]:
        """The budget and all below it."""
        return tuple(b.id for b in self.budgets if budget in self.chains[b.id])

    @cached_property
    def paths(self) -> dict[BudgetId, str]:
        """What people write and read: olmo/pretrain."""
        return {bid: "/".join(self.by_id[b].name for b in reversed(chain)) for bid, chain in self.chains.items()}

    @cached_property
    def by_path(self) -> dict[str, BudgetId]:
        return {path: bid for bid, path in self.paths.items()}

    def require_path(self, path: str) -> BudgetId:
        try:
            return self.by_path[path]
        except KeyError:
            raise UnknownIdError(f"no budget {path!r}") from None

    def is_leaf(self, budget: BudgetId) -> bool:
        return not self.children[budget]

    def min_runtime_default_ms(self, budget: BudgetId) -> int | None:
        """The nearest default up the tree (rule 10); None where nobody set one."""
        for at in self.chains[budget]:
            if (default := self.by_id[at].min_runtime_default_ms) is not None:
                return default
        return None
