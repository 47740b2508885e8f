"""What people change about budgets while the cluster runs: weights by hand, and usage that is forgiven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduler_core.budget import Budget
from scheduler_core.ids import BudgetId
from scheduler_core.observations import UsageForgotten, WeightChanged
from scheduler_core.state import ClusterState, WeightByHand
from scheduler_core.usage import Ledgers, StepFunction


def change_weight(state: ClusterState, event: WeightChanged) -> None:
    """Back to what the inventory says, nothing is by hand any more."""
    budget = state.budgets.by_id.get(event.budget)
    if budget is None:
        return
    known = state.weights.pop(budget.id, None)
    declared = budget.weight if known is None else known.instead_of
    if event.weight != declared:
        state.weights[budget.id] = WeightByHand(event.weight, declared, event.by, state.now)
    state.budgets = state.budgets.with_weight(budget.id, event.weight)
    _standings_turned(state)


def keep_weights(state: ClusterState, declared: Mapping[BudgetId, Budget]) -> dict[BudgetId, Budget]:
    """Budgets of an inventory, with the weights that stay by hand: those of which it says what it said before."""
    still = {b: w for b, w in state.weights.items() if b in declared and declared[b].weight == w.instead_of}
    state.weights = still
    return {**declared, **{b: replace(declared[b], weight=hand.weight) for b, hand in still.items()}}


def forget_usage(state: ClusterState, event: UsageForgotten) -> None:
    """From this instant on. What is corrected later about the time before is forgotten with it."""
    if event.budget in state.budgets.by_id:
        state.ledgers = without_past(state, event.budget)
        _standings_turned(state)


def without_past(state: ClusterState, budget: BudgetId) -> Ledgers:
    """The ledgers as they are when the budget's past is forgotten: those of it and all below begin anew."""

    def anew(ledger: dict[BudgetId, StepFunction]) -> dict[BudgetId, StepFunction]:
        begun = {b: StepFunction([state.now], [ledger[b].rate], [0]) for b in below if b in ledger}
        return {**ledger, **begun}

    below = state.budgets.subtree(budget)
    return Ledgers(anew(state.ledgers.allocated), anew(state.ledgers.unallocated), state.ledgers.service)


def _standings_turned(state: ClusterState) -> None:
    state.index.lines.clear()
    state.dirty = state.index.news.everything = True
