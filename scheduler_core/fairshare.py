"""Standings (rules 4 to 7): who is owed more, exactly, in integers, at one moment of a pass."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction

from scheduler_core.decisions import Standing
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU, PPM
from scheduler_core.usage import Line
from scheduler_core.workload import Workload

# A standing that sorts: lower stands better. Comparable among siblings only. Does it stand behind every E > 0 (E = 0),
# is it over, minus its over_budget_priority where it is, and usage with commitments, scaled so that among siblings it
# orders as the balance does (`BudgetTree.scales`). A plain tuple: a pass makes dozens.
Key = tuple[bool, bool, int, int]


FEW = 3  # the first of so many siblings is found without ranking all


class Standings:
    """The standings of all branches at one instant; commitments made in the pass are added as it goes."""

    def __init__(self, state: ClusterState) -> None:
        self.state, self.tree, self.now = state, state.budgets, state.now
        self.lookback = state.policy.lookback_ms
        self.in_service = state.ledgers.in_service(self.now, self.lookback)
        self._lines = state.index.lines
        self._charged: dict[BudgetId, int] = {}
        self._keys: dict[BudgetId, Key] = {}
        self._added: dict[BudgetId, int] = {}
        self._ranked: dict[BudgetId, list[BudgetId]] = {}

    def usage(self, budget: BudgetId) -> int:
        """U of rule 3, without commitments; GPU-thousandths x ms."""
        return self.state.ledgers.used(budget, self.now, self.lookback)

    def committed(self, budget: BudgetId) -> int:
        """What is promised below the branch (rule 7), this pass included."""
        if not self.state.policy.count_commitments:
            return 0
        level, slope = self.state.index.commitment(budget)
        return level + slope * self.now + self._added.get(budget, 0)

    def charged(self, budget: BudgetId) -> int:
        """Usage and commitments together."""
        if (known := self._charged.get(budget)) is None:
            line = self._lines.get(budget)
            if line is None or not line.since <= self.now < line.until:
                line = self._lines[budget] = self._line(budget)
            known = self._charged[budget] = line.level + line.slope * self.now
        return known

    def _line(self, budget: BudgetId) -> Line:
        """What is charged without this pass, as it will move by time alone."""
        line = self.state.ledgers.line(budget, self.now, self.lookback)
        if not self.state.policy.count_commitments:
            return line
        level, slope = self.state.index.commitment(budget)
        return Line(line.level + level, line.slope + slope, line.since, line.until)

    def commit(self, chain: Iterable[BudgetId], amount: int) -> None:
        """A workload was placed, or waits for victims: its whole min runtime counts as used."""
        if not self.state.policy.count_commitments:
            return
        for budget in chain:
            self._charged[budget] = self.charged(budget) + amount
            self._added[budget] = self._added.get(budget, 0) + amount
            self._keys.pop(budget, None)
            if (ranked := self._ranked.get(self.tree.by_id[budget].parent)) is not None:
                ranked.remove(budget)
                insort(ranked, budget, key=lambda b: (self.key(b), b))

    def key(self, budget: BudgetId) -> Key:
        """Rule 6."""
        if (known := self._keys.get(budget)) is None:
            known = self._keys[budget] = self.key_with(budget, 0)
        return known

    def key_with(self, budget: BudgetId, extra: int) -> Key:
        """The standing if the branch had `extra` more on its account (rule 17 b)."""
        amount, (numerator, denominator) = self.charged(budget) + extra, self.tree.shares[budget]
        if not numerator:
            return (True, False, 0, amount)
        below, above = self.tree.scales[budget]
        if self.in_service and amount * denominator >= numerator * self.in_service:
            return (False, True, -self.tree.by_id[budget].over_budget_priority, amount * above)
        return (False, False, 0, amount * below)

    def ranked(self, parent: BudgetId) -> list[BudgetId]:
        """Its children, the best-standing first, ties by id: in that order the tree has them."""
        if (known := self._ranked.get(parent)) is None:
            known = self._ranked[parent] = sorted(self.tree.children[parent], key=self.key)
        return known

    def first(self, parent: BudgetId, among: Collection[BudgetId]) -> BudgetId:
        """The best-standing of these children; a few are compared by themselves."""
        if parent in self._ranked or len(among) > FEW:
            return next(b for b in self.ranked(parent) if b in among)
        return min(among, key=lambda b: (self.key(b), b))

    def entitlement(self, budget: BudgetId) -> Fraction:
        """E of rule 4, in GPU-thousandths x ms."""
        return self.tree.fractions[budget] * self.in_service

    def balance(self, budget: BudgetId) -> Fraction | None:
        """U / E without commitments (rule 5); None at E = 0."""
        owed = self.entitlement(budget)
        return self.usage(budget) / owed if owed else None

    def standing(self, budget: BudgetId) -> Standing:
        """The figures behind a standing, for explanations (rule 23)."""
        siblings = self.ranked(self.tree.by_id[budget].parent)
        return Standing(
            budget,
            self.usage(budget),
            self.committed(budget),
            int(self.entitlement(budget)),
            siblings.index(budget) + 1,
        )


def turn_comes_after(standings: Standings, leaf: BudgetId) -> Callable[[BudgetId], bool]:
    """Does another leaf come after this one in order, or is it this one? What comes before has had its turn."""
    tree, ranked = standings.tree, standings.ranked
    siblings = {branch: tuple(ranked(tree.by_id[branch].parent)) for branch in tree.chains[leaf]}  # as of now

    def turn_comes(other: BudgetId) -> bool:
        for branch, order in siblings.items():
            if (theirs := next((b for b in tree.chains[other] if b in order), None)) is not None:
                return order.index(theirs) >= order.index(branch)
        return False

    return turn_comes


class Takers:
    """Rule 6 for unallocated work: second-ledger usage / weight at each level, weight 0 last, ties by id."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._ranked: dict[BudgetId, list[BudgetId]] = {}

    def ranked(self, parent: BudgetId) -> list[BudgetId]:
        """Its children, who has taken least first."""
        if (known := self._ranked.get(parent)) is None:
            known = self._ranked[parent] = sorted(self._state.budgets.children[parent], key=self._key)
        return known

    def first(self, parent: BudgetId, among: Collection[BudgetId]) -> BudgetId:
        """Of these children."""
        return next(b for b in self.ranked(parent) if b in among)

    def _key(self, budget: BudgetId) -> tuple[bool, int]:
        state = self._state
        used = state.ledgers.used(budget, state.now, state.policy.lookback_ms, allocated=False)
        return (not state.budgets.shares[budget][0], used * state.budgets.scales[budget][0])


def commitment(workload: Workload) -> int:
    """The whole min runtime of a workload, in GPU-thousandths x ms (rule 7)."""
    return workload.gpus * GPU * workload.min_runtime_ms


def claim_commitment(state: ClusterState, workload: Workload) -> int:
    """What a claim counts against its own branch: at most `claim_horizon` of it (rule 17 b)."""
    return workload.gpus * GPU * min(workload.min_runtime_ms, state.policy.claim_horizon_ms)


def stands_better(claimant: Key, holder: Key, margin_ppm: int) -> bool:
    """Rule 17 b: the first part that differs decides; the balance by at least the margin of the holder's."""
    if claimant[:3] != holder[:3]:
        return claimant[:3] < holder[:3]
    return claimant[3] < holder[3] and claimant[3] * PPM <= holder[3] * (PPM - margin_ppm)


def depth_first(standings: Standings) -> list[tuple[BudgetId, int]]:
    """All budgets, depth first by standing, each with its rank among its siblings from 1."""
    rows: list[tuple[BudgetId, int]] = []

    def visit(parent: BudgetId) -> None:
        for rank, budget in enumerate(standings.ranked(parent), start=1):
            rows.append((budget, rank))
            visit(budget)

    visit(ROOT)
    return rows
