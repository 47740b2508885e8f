"""Who may be preempted for a workload (rule 17), in which order (rule 18), and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import NamedTuple

from scheduler_core.contract import lost_gpu_ms
from scheduler_core.fairshare import Key, Standings, claim_commitment, commitment, stands_better
from scheduler_core.ids import ROOT, BudgetId, RunId
from scheduler_core.shapes import Shape
from scheduler_core.state import Run
from scheduler_core.units import PPM
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


class Failure(NamedTuple):
    """A search that found no plan, though no cap (rule 8) kept it from one.

    Who asks for no less, with no more rights and allowance, fails too, until the pass stops another run.
    """

    shape: Shape
    needs: tuple[tuple[str, str], ...]
    branches: frozenset[BudgetId]
    allowance: int  # GPUs of allocated victims
    held_back: bool  # that kept some runs from being victims

    def covers(self, shape: Shape, needs: tuple[tuple[str, str], ...], allowance: int) -> bool:
        mine = self.shape
        if self.held_back and allowance > self.allowance:
            return False
        harder = shape.hosts >= mine.hosts and shape.gpus >= mine.gpus and shape.whole >= mine.whole
        return harder and (not self.needs or self.needs == needs)


@dataclass
class Pool:
    """The runs that may be stopped in one pass, and those that stop already: shared by all its searches."""

    standings: Standings
    going: dict[RunId, None] = field(default_factory=dict)  # this pass has decided to stop them
    failures: list[Failure] = field(default_factory=list)
    _costs: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    _sorted: dict[BudgetId, list[tuple[int, RunId]]] = field(default_factory=dict)
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
            runs, cost = self.state.runs, self.cost
            known = self._sorted[branch] = sorted([(cost(runs[run_id])[0], run_id) for run_id in self._ids(branch)])
        return known

    def _ids(self, branch: BudgetId) -> Iterator[RunId]:
        index = self.state.index
        if branch == ROOT:
            yield from index.running_unallocated
            return
        for leaf in self.state.budgets.leaves_below[branch]:
            yield from index.interruptible.get(leaf, ())

    def weaker(self, workload: Workload) -> Iterator[BudgetId]:
        """The branches that the workload's own stand better than (rule 17 b)."""
        standings, margin = self.standings, _margin(self.standings)
        for branch, mine in _sides(standings, workload):
            for sibling in reversed(standings.ranked(standings.tree.by_id[branch].parent)):
                if sibling == branch:
                    continue
                if not stands_better(mine, standings.key(sibling), margin):
                    break  # nor than any that stands better still
                yield sibling

    def tier(self, branch: BudgetId) -> int:
        """Minus how far the branch is over budget, in whole steps of `preemption_margin` (rule 18)."""
        standings = self.standings
        charged, (numerator, denominator) = standings.charged(branch), standings.tree.shares[branch]
        if (known := self._tiers.get(branch)) is not None and known[0] == charged:
            return known[1]
        owed = numerator * standings.in_service  # over the denominator
        margin = max(1, self.state.policy.preemption_margin_ppm)
        tier = -((charged * denominator - owed) * PPM // (owed * margin)) if owed else NO_SHARE
        self._tiers[branch] = (charged, tier)
        return tier


class Rights:
    """Whom one workload may preempt, by rule 17. `only_unallocated`: behind a leaf's blocked head (rule 15)."""

    def __init__(self, pool: Pool, workload: Workload, only_unallocated: bool = False) -> None:
        self.pool, self.workload = pool, workload
        self.branches: dict[BudgetId, None] = {}  # disjoint; most have nobody to go
        self._chains = pool.state.budgets.chains
        if not only_unallocated:
            self.branches = dict.fromkeys(pool.weaker(workload))
            index, leaf = pool.state.index, workload.budget
            may_outrank = index.lowest.get(leaf, workload.priority) < workload.priority
            if may_outrank and any(self._outranks(run_id) for run_id in index.interruptible.get(leaf, ())):
                self.branches[leaf] = None  # rule 17 c

    def _outranks(self, run_id: RunId) -> bool:
        """Rule 17 c, for a run of the same leaf."""
        state = self.pool.state
        return state.workloads[state.runs[run_id].workload].workload.priority < self.workload.priority

    def within(self, others: frozenset[BudgetId]) -> bool:
        """Are these rights part of rights to those branches?"""
        return not any(others.isdisjoint(self._chains[branch]) for branch in self.branches)

    def victim(self, run: Run) -> Victim | None:
        """An interruptible or unallocated run as a victim; None where the workload has no right to it."""
        if not run.allocated:
            return Victim(UNALLOCATED, self.pool.cost(run)[0], run, 0)
        for branch in self._chains[run.budget]:
            if branch in self.branches:
                break
        else:
            return None
        if run.budget == self.workload.budget and not self._outranks(run.id):
            return None
        lost, gpus = self.pool.cost(run)
        return Victim(self.pool.tier(branch), lost, run, gpus, branch)

    def in_order(self) -> Iterator[Victim]:
        """All victims, the first to go first: tier, least lost, id. Those that go already are left out."""
        runs, going = self.pool.state.runs, self.pool.going
        for lost, run_id in self.pool.below(ROOT):
            if run_id not in going:
                yield Victim(UNALLOCATED, lost, runs[run_id], 0)
        for branches in self._by_tier():
            lists = [self.pool.below(branch) for branch in branches]
            for _, run_id in lists[0] if len(lists) == 1 else merge(*lists):
                if run_id not in going and (victim := self.victim(runs[run_id])) is not None:
                    yield victim

    def _by_tier(self) -> list[list[BudgetId]]:
        tiers: dict[int, list[BudgetId]] = {}
        below = self.pool.state.index.interruptible_below
        for branch in self.branches:
            if below[branch]:
                tiers.setdefault(self.pool.tier(branch), []).append(branch)
        return [tiers[tier] for tier in sorted(tiers)]


def weaker_leaves(standings: Standings, workload: Workload) -> dict[BudgetId, BudgetId]:
    """The leaves whose runs rule 17 b gives the workload a right to, each with the branch that decided."""
    found: dict[BudgetId, BudgetId] = {}
    for branch, mine in _sides(standings, workload):
        for sibling in standings.tree.children[standings.tree.by_id[branch].parent]:
            if sibling != branch and stands_better(mine, standings.key(sibling), _margin(standings)):
                found |= dict.fromkeys(standings.tree.leaves_below[sibling], sibling)
    return found


def _sides(standings: Standings, workload: Workload) -> Iterator[tuple[BudgetId, Key]]:
    """The workload's branches with their standing, its own commitment counted; E = 0 preempts nothing by 17 b."""
    state, extra = standings.state, 0
    if state.policy.count_commitments:
        counted = commitment(workload) if workload.id in state.index.reservations else 0
        extra = claim_commitment(state, workload) - counted
    for branch in standings.tree.chains[workload.budget]:
        if standings.tree.shares[branch][0]:
            yield branch, standings.key_with(branch, extra)


def _margin(standings: Standings) -> int:
    return standings.state.policy.preemption_margin_ppm
