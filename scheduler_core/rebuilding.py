"""Another inventory, and the index anew from the records: after a restart, and when the tree changed."""

from __future__ import annotations

from scheduler_core.budget import BudgetTree
from scheduler_core.changes import charge, index_run, see_host
from scheduler_core.ids import BudgetId
from scheduler_core.index import Index
from scheduler_core.policy import Policy
from scheduler_core.promises import count_claim, count_reservation
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU
from scheduler_core.workload import WorkloadPhase


def set_inventory(state: ClusterState, policy: Policy, tree: BudgetTree) -> None:
    """New knobs and weights count from now on; sums below budgets are made anew, since parents may differ."""
    state.policy = policy
    _recharge(state, tree)
    state.budgets = tree
    rebuild(state)
    state.dirty = True


def _recharge(state: ClusterState, tree: BudgetTree) -> None:
    """Runs of a moved budget leave their old ancestors' ledgers and enter the new ones (rule 2)."""
    for run in state.runs.values():
        old, new = state.budgets.chains.get(run.budget, ()), tree.chains[run.budget]
        if old != new:
            charge(state, old, state.now, -run.gpus * GPU, run.allocated)
            charge(state, new, state.now, run.gpus * GPU, run.allocated)
            run.charged_from = state.now


def rebuild(state: ClusterState) -> None:
    """Makes the index anew from the records: after a restart, and when the tree changed."""
    state.index = Index()
    for host in state.hosts.values():
        see_host(state, host)
    for run in state.runs.values():
        index_run(state, run)
    waiting = WorkloadPhase.WAITING
    state.index.fill(r.workload for r in state.workloads.values() if r.phase is waiting)
    for record in state.workloads.values():
        if record.claim:
            count_claim(state, record, +1)
        if record.reserved is not None:
            count_reservation(state, record, +1)


def budgets_in_use(state: ClusterState) -> dict[BudgetId, None]:
    """Budgets that may not vanish: they hold workloads, runs or usage (rule 2)."""
    used = {r.workload.budget: None for r in state.workloads.values() if r.phase is not WorkloadPhase.ENDED}
    used |= {run.budget: None for run in state.runs.values()}
    window = state.policy.lookback_ms
    for budget in state.budgets.leaves:
        if any(state.ledgers.used(budget, state.now, window, kind) for kind in (True, False)):
            used[budget] = None
    return used
