"""Reasons (rules 22, 23): for every waiting workload the nearest to being lifted, for every preemption its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.decisions import Standing
from scheduler_core.fairshare import Standings
from scheduler_core.fleet import HostState, Reach
from scheduler_core.ids import BudgetId
from scheduler_core.placement import protection_end, sizes_for
from scheduler_core.preemption import headroom
from scheduler_core.shapes import Misfit, Shape, matches, shape_problem, shapes
from scheduler_core.state import ClusterState, HostRecord, Run, WorkloadRecord
from scheduler_core.units import GPU_HOUR
from scheduler_core.victims import Victim, weaker_leaves
from scheduler_core.workload import Workload, WorkloadPhase


class HoldKind(StrEnum):
    """Rule 22's reasons."""

    OVER_MAX_GPUS = "over_max_gpus"
    NO_SHAPE = "no_shape"
    TOO_SMALL = "cluster_too_small"
    PROTECTED = "protected"
    VICTIM_STOPPING = "victim_stopping"
    RESERVED = "reserved"
    BETTER_CLAIMS = "better_claims"
    BLAST = "max_blast"
    FOREIGN_PROCESS = "foreign_process"
    READINGS_UNKNOWN = "readings_unknown"
    HOST_HEALTH = "host_health"
    HELD = "held"
    RETRY_DELAY = "retry_delay"


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a workload waits. `until` (ms) only where an instant is known."""

    kind: HoldKind
    text: str
    until: int | None = None


class Explainer:
    """Reasons at one instant. Workloads alike in leaf, priority and shape share their reason, so it is kept."""

    def __init__(self, state: ClusterState) -> None:
        state.index.expire(state.now)
        self.state, self.standings = state, Standings(state)
        self._known: dict[tuple[object, ...], Hold] = {}

    def hold(self, record: WorkloadRecord) -> Hold:
        """The one reason of a waiting or held workload."""
        if (own := self._own_reason(record)) is not None:
            return own
        w = record.workload
        alike = (w.budget, w.priority, w.gpus, w.hosts, w.gpus_per_host, w.needs, w.min_runtime_ms)
        if alike not in self._known:
            self._known[alike] = self._capacity_reason(w)
        return self._known[alike]

    def _own_reason(self, record: WorkloadRecord) -> Hold | None:
        """What concerns this workload alone."""
        if record.phase is WorkloadPhase.HELD:
            by = f" by {record.held_by.actor}" if record.held_by else ""
            return Hold(HoldKind.HELD, f"held{by}: {record.reason or 'no reason given'}")
        if record.claim:
            left = [run for run in record.waits_for if run in self.state.runs]
            return Hold(HoldKind.VICTIM_STOPPING, f"waiting for {', '.join(left) or 'its victims'} to stop")
        if record.not_before > self.state.now:
            return Hold(HoldKind.RETRY_DELAY, f"retry {record.retries} after a failure", record.not_before)
        if record.workload.id in self.state.blast_blocked:
            since = self.state.blast_blocked[record.workload.id]
            text = "preempting for it would take more than max_blast allows"
            return Hold(HoldKind.BLAST, text, since + self.state.policy.blast_patience_ms)
        return None

    def _capacity_reason(self, w: Workload) -> Hold:
        hosts = [r.host for r in self.state.hosts.values()]
        if (problem := shape_problem(w, hosts)) is not None:
            too_small = problem.kind is Misfit.TOO_FEW_HOSTS
            return Hold(HoldKind.TOO_SMALL if too_small else HoldKind.NO_SHAPE, problem.text)
        return self._over_cap(w) or self._protected(w) or self._elsewhere(w) or self._better_claims(w)

    def _over_cap(self, w: Workload) -> Hold | None:
        for budget in self.state.budgets.chains[w.budget]:
            if headroom(self.state, budget, 0, w.gpus) < 0:
                path, held = self.state.budgets.paths[budget], self.state.index.held[budget]
                cap = self.state.budgets.by_id[budget].max_gpus or 0
                left = max(0, cap - held - self.state.index.claimed[budget])
                return Hold(
                    HoldKind.OVER_MAX_GPUS, f"{path} holds {held} of max_gpus {cap}; {left} left, {w.gpus} needed"
                )
        return None

    def _protected(self, w: Workload) -> Hold | None:
        """Would it fit once the runs that it may preempt by right are past their min runtime? From when on?"""
        mine = weaker_leaves(self.standings, w)
        until = self._fits_from(w, lambda run: self._by_right(run, w, mine))
        if until is None or until <= self.state.now:
            return None
        return Hold(HoldKind.PROTECTED, "waiting for protected runs to reach their min runtime", until)

    def _by_right(self, run: Run, w: Workload, weaker: dict[BudgetId, BudgetId]) -> bool:
        if not run.allocated or run.stop is not None:
            return True
        if run.budget == w.budget:
            return self.state.workloads[run.workload].workload.priority < w.priority
        return run.budget in weaker

    def _fits_from(self, w: Workload, counts: Callable[[Run], bool]) -> int | None:
        """The earliest instant at which enough hosts have room, if runs that count leave when protection ends."""
        for shape in shapes(w, sizes_for(self.state, w)):
            ends = sorted(e for r in self._hosts(w, shape) if (e := self._room_from(r, shape.gpus, counts)) is not None)
            if len(ends) >= shape.hosts:
                return ends[shape.hosts - 1]
        return None

    def _hosts(self, w: Workload, shape: Shape) -> list[HostRecord]:
        def fits(gpus: int) -> bool:
            return gpus == shape.gpus if shape.whole else gpus >= shape.gpus

        return [r for r in self.state.hosts.values() if fits(r.host.gpus) and matches(r.host, w.needs)]

    def _room_from(self, record: HostRecord, gpus: int, counts: Callable[[Run], bool]) -> int | None:
        free = record.free.bit_count()
        if free >= gpus:
            return self.state.now
        if not record.places:
            return None
        runs = (self.state.runs[run] for run in record.runs)
        leaving = sorted((protection_end(run, self.state.now), run.id) for run in runs if counts(run))
        for end, run_id in leaving:
            slots = self.state.runs[run_id].members[record.host.name].slots & record.usable & ~record.claimed
            free += slots.bit_count()
            if free >= gpus:
                return end
        return None

    def _elsewhere(self, w: Workload) -> Hold | None:
        """Is there room that something other than better claims keeps from it?"""
        if self._fits_with(w, lambda r: r.free | (r.usable & r.claimed & ~r.held)):
            return Hold(HoldKind.RESERVED, "free GPUs are held for workloads that wait for their victims")
        if self._fits_with(w, lambda r: r.free | (r.foreign & ~r.held if r.places else 0)):
            return Hold(HoldKind.FOREIGN_PROCESS, f"a foreign process is on GPUs of {self._names(lambda r: r.foreign)}")
        unknown = self._names(lambda r: r.reach is not Reach.FRESH)
        if self._fits_with(w, lambda r: r.free if r.reach is Reach.FRESH else _empty(r)):
            return Hold(HoldKind.READINGS_UNKNOWN, f"no fresh readings of {unknown}")
        if self._fits_with(w, _empty):
            unfit = self._names(lambda r: r.state is not HostState.SERVING or r.unfit or r.leaked)
            return Hold(HoldKind.HOST_HEALTH, f"room only on hosts out of service or with unfit GPUs: {unfit}")
        return None

    def _fits_with(self, w: Workload, mask: Callable[[HostRecord], int]) -> bool:
        for shape in shapes(w, sizes_for(self.state, w)):
            able = sum(1 for r in self._hosts(w, shape) if mask(r).bit_count() >= shape.gpus)
            if able >= shape.hosts:
                return True
        return False

    def _names(self, which: Callable[[HostRecord], object]) -> str:
        names = sorted(r.host.name for r in self.state.hosts.values() if which(r))
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

    def _better_claims(self, w: Workload) -> Hold:
        held = sum(r.host.gpus if not r.places else r.held.bit_count() for r in self.state.hosts.values())
        path = self.state.budgets.paths[w.budget]
        rank = self.standings.standing(w.budget).rank
        text = f"better claims ahead: {held} GPUs are held; {path} stands at {_balance(self.standings, w.budget)}"
        return Hold(HoldKind.BETTER_CLAIMS, f"{text}, rank {rank} among its siblings")


def _empty(record: HostRecord) -> int:
    """What would be free if the host served, its readings were fresh and its GPUs fit."""
    return record.host.all_slots & ~(record.held | record.claimed)


# -- preemptions (rule 23) ----------------------------------------------------------------------------------------


def standings_of(standings: Standings, workload: Workload, branch: BudgetId | None) -> tuple[Standing, ...]:
    """Both sides at the children of the lowest common ancestor: the claimant's, then the victim's."""
    if branch is None:
        return ()
    parent = standings.tree.by_id[branch].parent
    mine = next(b for b in standings.tree.chains[workload.budget] if standings.tree.by_id[b].parent == parent)
    return (standings.standing(mine), standings.standing(branch)) if mine != branch else (standings.standing(mine),)


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
    got, with_promises = [_balance(standings, b) for b in both], ""
    owed = [standings.entitlement(b) for b in both]
    if got[0] == got[1] and all(owed):
        shares = [float(standings.charged(b) / e) for b, e in zip(both, owed, strict=True)]
        told = ([f"{share:.{digits}f}" for share in shares] for digits in range(2, 7))
        got, with_promises = next((t for t in told if t[0] != t[1]), got), " with what is promised"
    return f"{paths[better]} has got {got[0]} of its share{with_promises} and {paths[worse]} {got[1]}"


def _balance(standings: Standings, budget: BudgetId) -> str:
    balance = standings.balance(budget)
    return f"{float(balance):.2f}" if balance is not None else "no share"
