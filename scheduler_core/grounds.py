"""The grounds of a preemption (rule 23): who for, how both stood, and why this run and not another."""

from __future__ import annotations

from scheduler_core.budget import BudgetTree
from scheduler_core.decisions import Standing
from scheduler_core.fairshare import Standings
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.state import Run
from scheduler_core.units import GPU_HOUR
from scheduler_core.victims import Victim
from scheduler_core.workload import Workload


def standings_of(standings: Standings, workload: Workload, branch: BudgetId | None) -> tuple[Standing, ...]:
    """Both sides at the children of the lowest common ancestor: the claimant's, then the victim's."""
    if branch is None:
        return ()
    parent = standings.tree.by_id[branch].parent
    mine = next(b for b in standings.tree.chains[workload.budget] if standings.tree.by_id[b].parent == parent)
    return (standings.standing(mine), standings.standing(branch)) if mine != branch else (standings.standing(mine),)


def side_against(tree: BudgetTree, leaf: BudgetId, run: Run) -> BudgetId | None:
    """The run's side at the lowest common ancestor with the leaf: a child of it; None for an unallocated run."""
    if not run.allocated:
        return None
    mine = (*tree.chains[leaf], ROOT)
    return next((b for b in tree.chains[run.budget] if tree.by_id[b].parent in mine and b not in mine), leaf)


def reservation_reason(standings: Standings, workload: Workload, victim: Victim) -> str:
    """Who for, where a reservation decides: how both stand does not matter any more."""
    path, lost = standings.tree.paths[workload.budget], f"it loses {victim.lost / GPU_HOUR:.1f} GPU-h"
    return f"for {workload.id} of {path}: these GPUs are reserved for it from now on; past its min runtime; {lost}"


def preemption_reason(standings: Standings, workload: Workload, victim: Victim) -> str:
    """Who for, both standings, and why this run and not another."""
    lost = f"it loses {victim.lost / GPU_HOUR:.1f} GPU-h, the least that makes room"
    paths = standings.tree.paths
    if victim.branch is None:
        return f"for {workload.id} of {paths[workload.budget]}: unallocated runs yield to allocated work; {lost}"
    if victim.branch == workload.budget:
        return f"for {workload.id} of higher priority in {paths[workload.budget]}; past its min runtime; {lost}"
    mine, other = (s.budget for s in standings_of(standings, workload, victim.branch))
    return f"for {workload.id}: {_apart(standings, mine, other)}; past its min runtime; {lost}"


def _apart(standings: Standings, better: BudgetId, worse: BudgetId) -> str:
    """How two siblings stand, in figures that differ: where what they got does not tell, what is promised does."""
    paths, both = standings.tree.paths, (better, worse)
    got, with_promises = (_balance(standings, better), _balance(standings, worse)), ""
    owed = [standings.entitlement(b) for b in both]
    if got[0] == got[1] and all(owed):
        got = told_apart(*(float(standings.charged(b) / e) for b, e in zip(both, owed, strict=True)))
        with_promises = " with what is promised"
    return f"{paths[better]} has got {got[0]} of its share{with_promises} and {paths[worse]} {got[1]}"


def told_apart(one: float, other: float) -> tuple[str, str]:
    """With as few digits as show that they differ, from 2 to 6."""
    told = ((f"{one:.{digits}f}", f"{other:.{digits}f}") for digits in range(2, 7))
    return next((pair for pair in told if pair[0] != pair[1]), (f"{one:.2f}", f"{other:.2f}"))


def _balance(standings: Standings, budget: BudgetId) -> str:
    balance = standings.balance(budget)
    return f"{float(balance):.2f}" if balance is not None else "no share"
