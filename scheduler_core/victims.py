"""Who may be preempted for a workload (rule 17), in which order (rule 18), and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_core.fairshare import Standings, claim_commitment, stands_better
from scheduler_core.ids import ROOT, BudgetId, RunId
from scheduler_core.state import ClusterState, Run
from scheduler_core.units import GPU, PPM
from scheduler_core.workload import Workload

UNALLOCATED = -(10**15)  # the tier of unallocated runs: before every allocated one
NO_SHARE = -(10**12)  # the tier of branches with E = 0: over budget whatever they hold


class Victim(NamedTuple):
    """A run that may go. Lower `tier` goes first: unallocated, then minus the steps over budget.

    `lost` in GPU-thousandths x ms. `branch` is its side of the lowest common ancestor; None for an unallocated run.
    """

    tier: int
    lost: int
    run: Run
    allocated_gpus: int  # that it holds, on all its hosts; 0 for an unallocated run
    branch: BudgetId | None = None


def lost_gpu_ms(state: ClusterState, run: Run) -> int:
    """Work lost if the run stops now: since its last checkpoint, or all of it where it cannot resume (rule 18)."""
    record = state.workloads[run.workload]
    since = run.started_at if run.started_at is not None else state.now
    if record.workload.resumable and run.checkpoint_at is not None:
        since = max(since, run.checkpoint_at)
    return run.gpus * GPU * max(0, state.now - since)


@dataclass
class Pool:
    """The runs that may be stopped in one pass, and those that stop already: shared by all its searches."""

    standings: Standings
    going: dict[RunId, None] = field(default_factory=dict)  # this pass has decided to stop them
    _costs: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    _sorted: dict[BudgetId, list[tuple[int, RunId]]] = field(default_factory=dict)
    _any: dict[BudgetId, bool] = field(default_factory=dict)
    _tiers: dict[BudgetId, tuple[int, int]] = field(default_factory=dict)  # charged, tier

    def __post_init__(self) -> None:
        self.state = self.standings.state

    def frees(self, run: Run) -> bool:
        """Its GPUs come free anyway."""
        return run.stop is not None or run.id in self.going

    def cost(self, run: Run) -> tuple[int, int]:
        """Work lost if it stops now, and the GPUs it holds."""
        if (known := self._costs.get(run.id)) is None:
            known = self._costs[run.id] = (lost_gpu_ms(self.state, run), run.gpus)
        return known

    def below(self, branch: BudgetId) -> list[tuple[int, RunId]]:
        """The branch's interruptible runs, least work lost first; for the root, the unallocated runs of all."""
        if (known := self._sorted.get(branch)) is None:
            runs = self.state.runs
            known = self._sorted[branch] = sorted((self.cost(runs[run_id])[0], run_id) for run_id in self._ids(branch))
        return known

    def _ids(self, branch: BudgetId) -> Iterator[RunId]:
        index = self.state.index
        if branch == ROOT:
            yield from index.running_unallocated
            return
        for leaf in self.state.budgets.leaves_below[branch]:
            yield from index.interruptible.get(leaf, ())

    def any_below(self, branch: BudgetId) -> bool:
        if (known := self._any.get(branch)) is None:
            interruptible = self.state.index.interruptible
            known = any(interruptible.get(leaf) for leaf in self.state.budgets.leaves_below[branch])
            self._any[branch] = known
        return known

    def tier(self, branch: BudgetId) -> int:
        """Minus how far the branch is over budget, in whole steps of `preemption_margin` (rule 18)."""
        standings = self.standings
        charged, fraction = standings.charged(branch), standings.tree.fractions[branch]
        if (known := self._tiers.get(branch)) is not None and known[0] == charged:
            return known[1]
        owed = fraction.numerator * standings.in_service  # over the fraction's denominator
        margin = max(1, self.state.policy.preemption_margin_ppm)
        tier = -((charged * fraction.denominator - owed) * PPM // (owed * margin)) if owed else NO_SHARE
        self._tiers[branch] = (charged, tier)
        return tier


class Rights:
    """Whom one workload may preempt, by rule 17. `only_unallocated`: behind a leaf's blocked head (rule 15)."""

    def __init__(self, pool: Pool, workload: Workload, only_unallocated: bool = False) -> None:
        self.pool, self.workload = pool, workload
        self._branches: dict[BudgetId, tuple[int, BudgetId]] = {}  # leaf -> tier, branch
        self._tiers: dict[int, list[BudgetId]] = {}
        if not only_unallocated:
            self._allow(weaker_branches(pool.standings, workload, pool.any_below))

    def _allow(self, branches: Iterable[BudgetId]) -> None:
        standings, own = self.pool.standings, self.workload.budget
        if self.pool.any_below(own):
            branches = [*branches, own]  # rule 17 c
        for branch in branches:
            tier = self.pool.tier(branch)
            self._tiers.setdefault(tier, []).append(branch)
            for leaf in standings.tree.leaves_below[branch]:
                self._branches[leaf] = (tier, branch)

    def victim(self, run: Run) -> Victim | None:
        """An interruptible or unallocated run as a victim; None where the workload has no right to it."""
        if not run.allocated:
            return Victim(UNALLOCATED, self.pool.cost(run)[0], run, 0)
        found = self._branches.get(run.budget)
        if found is None:
            return None
        own = run.budget == self.workload.budget
        if own and self.pool.state.workloads[run.workload].workload.priority >= self.workload.priority:
            return None
        lost, gpus = self.pool.cost(run)
        return Victim(found[0], lost, run, gpus, found[1])

    def in_order(self) -> Iterator[Victim]:
        """All victims, the first to go first: tier, least lost, id. Those that go already are left out."""
        runs, going = self.pool.state.runs, self.pool.going
        for lost, run_id in self.pool.below(ROOT):
            if run_id not in going:
                yield Victim(UNALLOCATED, lost, runs[run_id], 0)
        for tier in sorted(self._tiers):
            branches = self._tiers[tier]
            found = self.pool.below(branches[0])
            if len(branches) > 1:
                found = sorted(entry for branch in branches for entry in self.pool.below(branch))
            for _, run_id in found:
                if run_id not in going and (victim := self.victim(runs[run_id])) is not None:
                    yield victim


def weaker_branches(
    standings: Standings, workload: Workload, worth: Callable[[BudgetId], bool] | None = None
) -> Iterator[BudgetId]:
    """The siblings that the workload's branch stands better than, at every level of the tree (rule 17 b).

    `worth` says which siblings are worth a look; all where it is None.
    """
    tree, state = standings.tree, standings.state
    extra = claim_commitment(state, workload) if state.policy.count_commitments else 0
    margin = state.policy.preemption_margin_ppm
    for branch in tree.chains[workload.budget]:
        if not tree.fractions[branch]:
            continue  # a branch with E = 0 preempts nothing by (b)
        mine = None
        for sibling in tree.children[tree.by_id[branch].parent]:
            if sibling == branch or (worth is not None and not worth(sibling)):
                continue
            mine = mine or standings.key_with(branch, extra)
            if stands_better(mine, standings.key(sibling), margin):
                yield sibling


def weaker_leaves(standings: Standings, workload: Workload) -> dict[BudgetId, BudgetId]:
    """The leaves whose runs rule 17 b gives the workload a right to, each with the branch that decided."""
    found: dict[BudgetId, BudgetId] = {}
    for branch in weaker_branches(standings, workload):
        found |= dict.fromkeys(standings.tree.leaves_below[branch], branch)
    return found
