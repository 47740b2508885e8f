"""Who may be preempted for a workload (rule 17), and what taking a run costs (rule 18)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from scheduler_core.fairshare import Standings, claim_commitment, stands_better
from scheduler_core.ids import BudgetId, RunId
from scheduler_core.state import ClusterState, Run
from scheduler_core.units import GPU, PPM
from scheduler_core.workload import Workload

ALWAYS_OVER = 10**12  # steps over budget of a branch without any share


class Cost(NamedTuple):
    """What a set of victims costs: sums of its runs' costs, compared part by part (rule 18's order).

    Runs that already stop cost nothing: their GPUs come free anyway.
    """

    allocated_gpus: int = 0  # unallocated runs go first
    minus_over: int = 0  # then those most over budget: GPUs x steps of the margin
    lost: int = 0  # GPU-thousandths x ms since the last checkpoint
    runs: int = 0
    ids: tuple[RunId, ...] = ()

    def plus(self, other: Cost) -> Cost:
        return Cost(
            self.allocated_gpus + other.allocated_gpus,
            self.minus_over + other.minus_over,
            self.lost + other.lost,
            self.runs + other.runs,
            self.ids + other.ids,
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that may go. `branch` is its side of the lowest common ancestor; None where no branch decided."""

    run: Run
    cost: Cost
    branch: BudgetId | None = None

    @property
    def allocated_gpus(self) -> int:
        return self.cost.allocated_gpus


def lost_gpu_ms(state: ClusterState, run: Run) -> int:
    """Work lost if the run stops now: since its last checkpoint, or all of it where it cannot resume (rule 18)."""
    record = state.workloads[run.workload]
    since = run.started_at if run.started_at is not None else state.now
    if record.workload.resumable and run.checkpoint_at is not None:
        since = max(since, run.checkpoint_at)
    return run.gpus * GPU * max(0, state.now - since)


def steps_over(standings: Standings, branch: BudgetId) -> int:
    """How far over budget, in steps of `preemption_margin` (rule 18)."""
    owed = standings.entitlement(branch)
    if not owed:
        return ALWAYS_OVER
    margin = max(1, standings.state.policy.preemption_margin_ppm)
    return int(standings.charged(branch) * PPM // (owed * margin))


def unallocated_candidates(state: ClusterState) -> Iterator[Candidate]:
    """Rule 17 a: unallocated runs, and those that stop already."""
    for run_id in state.index.stopping:
        run = state.runs[run_id]
        yield Candidate(run, Cost(ids=(run_id,)))
    for run_id in state.index.running_unallocated:
        run = state.runs[run_id]
        yield Candidate(run, Cost(lost=lost_gpu_ms(state, run), runs=1, ids=(run_id,)))


def allocated_candidates(standings: Standings, workload: Workload) -> Iterator[Candidate]:
    """Rule 17 b and c: interruptible runs of branches that stand worse, and of lower priority in the same leaf."""
    for leaf, branch in weaker_leaves(standings, workload):
        yield from _of_leaf(standings, leaf, branch)
    own = workload.budget
    for candidate in _of_leaf(standings, own, own):
        if standings.state.workloads[candidate.run.workload].workload.priority < workload.priority:
            yield candidate


def _of_leaf(standings: Standings, leaf: BudgetId, branch: BudgetId) -> Iterator[Candidate]:
    state = standings.state
    runs = state.index.interruptible.get(leaf)
    if not runs:
        return
    steps = steps_over(standings, branch)
    for run_id in runs:
        run = state.runs[run_id]
        cost = Cost(run.gpus, -run.gpus * steps, lost_gpu_ms(state, run), 1, (run_id,))
        yield Candidate(run, cost, branch)


def weaker_leaves(
    standings: Standings, workload: Workload, all_leaves: bool = False
) -> Iterator[tuple[BudgetId, BudgetId]]:
    """Leaves under the siblings that the claimant's branch stands better than, each with that sibling.

    Only those with interruptible runs, unless `all_leaves`.
    """
    tree, state = standings.tree, standings.state
    extra = claim_commitment(state, workload) if state.policy.count_commitments else 0
    for branch in tree.chains[workload.budget]:
        if not tree.fractions[branch]:
            continue  # a branch with E = 0 preempts nothing by (b)
        mine = standings.key_with(branch, extra)
        for sibling in tree.children[tree.by_id[branch].parent]:
            if sibling == branch or not (all_leaves or _has_interruptible(state, sibling)):
                continue
            if stands_better(mine, standings.key(sibling), state.policy.preemption_margin_ppm):
                for leaf in tree.leaves_below[sibling]:
                    yield leaf, sibling


def _has_interruptible(state: ClusterState, branch: BudgetId) -> bool:
    return any(state.index.interruptible.get(leaf) for leaf in state.budgets.leaves_below[branch])
