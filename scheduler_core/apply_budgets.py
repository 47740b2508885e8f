"""What people change about budgets while the cluster runs: weights by hand, and usage that is forgiven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.ids import BudgetId
from scheduler_core.observations import UsageForgotten, WeightChanged
from scheduler_core.state import ClusterState, WeightByHand
from scheduler_core.usage import StepFunction


def change_weight(state: ClusterState, event: WeightChanged) -> None:
    """Back to what the inventory says, nothing is by hand any more."""
    budget = state.budgets.by_id.get(event.budget)
    if budget is None:
        return
    known = state.weights.pop(budget.id, None)
    declared = budget.weight if known is None else known.instead_of
    if event.weight != declared:
        state.weights[budget.id] = WeightByHand(event.weight, declared, event.by, state.now)
    kept = (b for b in state.budgets.budgets if b.id != budget.id)
    state.budgets = BudgetTree.of([*kept, replace(budget, weight=event.weight)])
    _standings_turned(state)


def keep_weights(state: ClusterState, declared: Mapping[BudgetId, Budget]) -> dict[BudgetId, Budget]:
    """Budgets of an inventory, with the weights that stay by hand: those of which it says what it said before."""
    still = {b: w for b, w in state.weights.items() if b in declared and declared[b].weight == w.instead_of}
    state.weights = still
    return {**declared, **{b: replace(declared[b], weight=hand.weight) for b, hand in still.items()}}


def forget_usage(state: ClusterState, event: UsageForgotten) -> None:
    """Ledgers begin anew at this instant. What is corrected later about the time before is forgotten with it."""
    if event.budget not in state.budgets.by_id:
        return
    for ledger in (state.ledgers.allocated, state.ledgers.unallocated):
        for budget in state.budgets.subtree(event.budget):
            if (step := ledger.get(budget)) is not None:
                ledger[budget] = StepFunction([state.now], [step.rate], [0])
    _standings_turned(state)


def _standings_turned(state: ClusterState) -> None:
    state.dirty = state.index.news.everything = True
