"""Caps on the GPUs held below a budget (rule 8)."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.ids import BudgetId
from scheduler_core.placement import Room
from scheduler_core.state import ClusterState, Run, WorkloadRecord


def under_caps(room: Room, record: WorkloadRecord, claimed: bool = False, leaving: Sequence[Run] = ()) -> bool:
    """With what the pass has given away so far, once `leaving` have gone. A claim is counted already.

    What a drained gang still holds goes before it starts anew.
    """
    state, gpus = room.state, 0 if claimed else record.workload.gpus
    chains, own = state.budgets.chains, (state.runs[record.run],) if record.run else ()
    for budget in chains[record.workload.budget]:
        leaves = sum(run.gpus for run in (*own, *leaving) if budget in chains[run.budget])
        if headroom(state, budget, room.given.get(budget, 0), gpus - leaves) < 0:
            return False
    return True


def headroom(state: ClusterState, budget: BudgetId, given: int, gpus: int) -> int:
    """GPUs left below the budget's cap after `gpus` more (fewer, if negative: rule 8), claims counted as held; negative
    when over."""
    cap = state.budgets.by_id[budget].max_gpus
    if cap is None:
        return max(gpus, 0)  # never binds
    return cap - state.index.held[budget] - state.index.claimed[budget] - given - gpus
