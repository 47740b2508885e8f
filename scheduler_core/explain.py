"""Why each workload waits (rule 22): the one reason nearest to being lifted, with who is ahead and until when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.caps import headroom
from scheduler_core.cursor import LeafCursor
from scheduler_core.decisions import Reserved
from scheduler_core.earliest import Leaves, room_from
from scheduler_core.fairshare import Standings, claim_commitment
from scheduler_core.fleet import HostState, Reach
from scheduler_core.grounds import side_against, told_apart
from scheduler_core.ids import BudgetId
from scheduler_core.index import signature
from scheduler_core.placement import holders, protection_end, sizes_for
from scheduler_core.reservations import Reservations
from scheduler_core.settled import Signature
from scheduler_core.shapes import Misfit, Shape, ShapeProblem, matches, shape_problem, shapes
from scheduler_core.state import ClusterState, HostRecord, Run, WorkloadRecord
from scheduler_core.units import count, few
from scheduler_core.victims import weaker_leaves
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
        self._heads: dict[BudgetId, WorkloadRecord | None] = {}
        self.reservations = Reservations(state)
        self._rooms: dict[tuple[Signature, int], Hold | None] = {}
        self._misfits: dict[Signature, ShapeProblem | None] = {}
        self._fitting: dict[tuple[Shape, tuple[tuple[str, str], ...]], list[HostRecord]] = {}
        self._free = {r.host.name: r.free.bit_count() for r in state.hosts.values()}

    def hold(self, record: WorkloadRecord) -> Hold:
        """The one reason of a waiting or held workload."""
        if (own := self._own_reason(record)) is not None:
            return own
        w = record.workload
        head = self._head(w.budget) if w.allocated else record
        first = head is None or head is record
        alike = (w.budget, w.priority, w.gpus, w.hosts, w.gpus_per_host, w.needs, w.min_runtime_ms, first)
        if alike not in self._known:
            self._known[alike] = self._capacity_reason(w, None if first else head)
        return self._known[alike]

    def _head(self, leaf: BudgetId) -> WorkloadRecord | None:
        """Who comes first in a leaf, of those that wait for GPUs: it alone may preempt allocated runs (rule 15)."""
        if leaf not in self._heads:
            queue = self.state.index.queues.get(leaf)
            cursor = LeafCursor(queue) if queue is not None else None
            self._heads[leaf] = None
            while cursor is not None and (found := cursor.next()) is not None:
                record = self.state.workloads[found[0]]
                if not record.claim and record.not_before <= self.state.now:
                    self._heads[leaf] = record
                    break
        return self._heads[leaf]

    def _own_reason(self, record: WorkloadRecord) -> Hold | None:
        """What concerns this workload alone."""
        if record.phase is WorkloadPhase.HELD:
            by = f" by {record.held_by.actor}" if record.held_by else ""
            until = self.state.holds_end.get(record.workload.id)
            return Hold(HoldKind.HELD, f"held{by}: {record.reason or 'no reason given'}", until)
        if record.claim:
            left = [run for run in record.waits_for if run in self.state.runs]
            return Hold(HoldKind.VICTIM_STOPPING, f"waiting for {', '.join(left) or 'its victims'} to stop")
        if record.reserved is not None:
            return self._promised(record.reserved)
        if record.not_before > self.state.now:
            return Hold(HoldKind.RETRY_DELAY, f"retry {record.retries} after a failure", record.not_before)
        if record.workload.id in self.state.blast_blocked:
            since = self.state.blast_blocked[record.workload.id]
            text = "preempting for it would take more than max_blast allows"
            return Hold(HoldKind.BLAST, text, since + self.state.policy.blast_patience_ms)
        return None

    def _promised(self, made: Reserved) -> Hold:
        """Rule 21: whom it waits for at most until when."""
        theirs = {run.id: None for run in holders(self.state, made.members)}
        who = self._holders(lambda run: run.id in theirs and run.protected(self.state.now))
        waits = f"waiting for protected runs to pass their min runtime: {who}; " if who else ""
        return Hold(HoldKind.PROTECTED, f"{waits}{few(sorted(m.host for m in made.members))} reserved for it", made.at)

    def _capacity_reason(self, w: Workload, head: WorkloadRecord | None) -> Hold:
        """`head`: who comes before it in its leaf; None where nobody does."""
        if (problem := self._misfit(w)) is not None:
            too_small = problem.kind is Misfit.TOO_FEW_HOSTS
            return Hold(HoldKind.TOO_SMALL if too_small else HoldKind.NO_SHAPE, problem.text)
        if (own := self._over_cap(w)) is not None:
            return own
        if head is not None:
            return self._elsewhere(w) or self._behind(head)
        return self._protected(w) or self._elsewhere(w) or self._no_claim(w)

    def _misfit(self, w: Workload) -> ShapeProblem | None:
        if (shape := signature(w)) not in self._misfits:
            self._misfits[shape] = shape_problem(w, [r.host for r in self.state.hosts.values()])
        return self._misfits[shape]

    def _over_cap(self, w: Workload) -> Hold | None:
        for budget in self.state.budgets.chains[w.budget]:
            if headroom(self.state, budget, 0, w.gpus) < 0:
                path, held = self.state.budgets.paths[budget], self.state.index.held[budget]
                cap = self.state.budgets.by_id[budget].max_gpus or 0
                left = max(0, cap - held - self.state.index.claimed[budget])
                return Hold(
                    HoldKind.OVER_MAX_GPUS, f"{path} uses {held} of max_gpus {cap}; {left} left, {w.gpus} needed"
                )
        return None

    def _behind(self, head: WorkloadRecord) -> Hold:
        """Behind a leaf's blocked head only free GPUs are left, or those of unallocated runs."""
        first, path = head.workload, self.state.budgets.paths[head.workload.budget]
        label = first.name or first.id
        return Hold(
            HoldKind.BETTER_CLAIMS, f"behind {label}, which is first in {path} and needs {count(first.gpus, 'GPU')}"
        )

    def _protected(self, w: Workload) -> Hold | None:
        """Would it fit once the runs that it may preempt by right are past their min runtime? From when on?"""
        if not w.allocated:
            return None
        mine = weaker_leaves(self.standings, w)
        now = self.state.now

        def leaves(run: Run) -> int | None:
            return protection_end(run, now) if self._by_right(run, w, mine) else None

        until = self._fits_from(w, leaves)
        if until is None or until <= now:
            return None
        who = self._holders(lambda run: run.protected(now) and leaves(run) is not None)
        return Hold(HoldKind.PROTECTED, f"waiting for protected runs to pass their min runtime: {who}", until)

    def _by_right(self, run: Run, w: Workload, weaker: dict[BudgetId, BudgetId]) -> bool:
        if not run.allocated or run.stop is not None:
            return True
        if run.budget == w.budget:
            return self.state.workloads[run.workload].workload.priority < w.priority
        return run.budget in weaker

    def _fits_from(self, w: Workload, leaves: Leaves) -> int | None:
        """The earliest instant at which enough hosts have room, if each run goes when `leaves` says, or stays."""
        for shape in shapes(w, sizes_for(self.state, w)):
            ends = sorted(e for r in self._hosts(w, shape) if (e := self._room_from(r, shape.gpus, leaves)) is not None)
            if len(ends) >= shape.hosts:
                return ends[shape.hosts - 1]
        return None

    def _hosts(self, w: Workload, shape: Shape) -> list[HostRecord]:
        def fits(gpus: int) -> bool:
            return gpus == shape.gpus if shape.whole else gpus >= shape.gpus

        if (wanted := (shape, w.needs)) not in self._fitting:
            hosts = self.state.hosts.values()
            self._fitting[wanted] = [r for r in hosts if fits(r.host.gpus) and matches(r.host, w.needs)]
        return self._fitting[wanted]

    def _room_from(self, record: HostRecord, gpus: int, leaves: Leaves) -> int | None:
        if self._free[record.host.name] >= gpus:
            return self.state.now
        if not record.runs or not record.places:
            return None
        found = room_from(self.state, record, gpus, record.free, record.usable & ~record.claimed, leaves)
        return None if found is None else found[0]

    def _elsewhere(self, w: Workload) -> Hold | None:
        """Is there room that something other than better claims keeps from it? Of all budgets alike."""
        if (alike := (signature(w), w.yields_after_ms)) not in self._rooms:
            self._rooms[alike] = self._kept_room(w)
        return self._rooms[alike]

    def _kept_room(self, w: Workload) -> Hold | None:
        if self.reservations.closed_to(w) and self._fits_with(w, lambda r: r.free):
            return Hold(HoldKind.RESERVED, self._whose_reservation(w))
        if self._fits_with(w, lambda r: r.free | (r.usable & r.claimed & ~r.held)):
            return Hold(HoldKind.RESERVED, "free GPUs are kept for workloads that wait for their victims")
        if self._fits_with(w, lambda r: r.free | (r.foreign & ~r.held if r.places else 0)):
            return Hold(HoldKind.FOREIGN_PROCESS, f"a foreign process is on GPUs of {self._names(lambda r: r.foreign)}")
        unknown = self._names(lambda r: r.reach is not Reach.FRESH)
        if self._fits_with(w, lambda r: r.free if r.reach is Reach.FRESH else _empty(r)):
            return Hold(HoldKind.READINGS_UNKNOWN, f"no fresh readings of {unknown}")
        if self._fits_with(w, _empty):
            unfit = self._names(lambda r: r.state is not HostState.SERVING or r.unfit or r.leaked)
            return Hold(HoldKind.HOST_HEALTH, f"room only on hosts out of service or with unfit GPUs: {unfit}")
        if not self._fits_with(w, lambda r: r.usable):
            out = self._names(lambda r: r.usable != r.host.all_slots)
            return Hold(HoldKind.HOST_HEALTH, f"too few GPUs serve, even once all runs end: not all of {out} do")
        return None

    def _whose_reservation(self, w: Workload) -> str:
        closed, reserved = self.reservations.closed_to(w), self.reservations.all.items()
        whose = sorted(wid for wid, made in reserved if any(m.host in closed for m in made.members))
        return f"free GPUs are reserved for {few(whose)}, and it would be protected on them for too long"

    def _fits_with(self, w: Workload, mask: Callable[[HostRecord], int]) -> bool:
        for shape in shapes(w, sizes_for(self.state, w)):
            able = sum(1 for r in self._hosts(w, shape) if mask(r).bit_count() >= shape.gpus)
            if able >= shape.hosts:
                return True
        return False

    def _names(self, which: Callable[[HostRecord], object]) -> str:
        return few(sorted(r.host.name for r in self.state.hosts.values() if which(r)))

    def _no_claim(self, w: Workload) -> Hold:
        """Nothing lets it take what others hold: who they are, how both stand, and when their limits end them."""
        held = f"in use by {self._holders(lambda run: True) or 'nobody'}"
        until = self._fits_from(w, self._limit_end)
        if not w.allocated:
            return Hold(HoldKind.BETTER_CLAIMS, f"{held}; unallocated work takes only what is free", until)
        return Hold(HoldKind.BETTER_CLAIMS, held + self._compared(w), until)

    def _compared(self, w: Workload) -> str:
        """Why it has no claim to them: where its branch and the holders' would stand with it (rule 17 b)."""
        standings, tree = self.standings, self.state.budgets
        rivals: dict[BudgetId, int] = {}
        for run in self.state.runs.values():
            branch = side_against(tree, w.budget, run)
            if branch is not None and run.budget != w.budget:
                rivals[branch] = rivals.get(branch, 0) + run.gpus
        if not rivals:
            return f"; {tree.paths[w.budget]} preempts none of its own of the same priority"
        rival = max(rivals, key=lambda b: (rivals[b], b))
        mine = next(b for b in tree.chains[w.budget] if tree.by_id[b].parent == tree.by_id[rival].parent)
        if not (standings.entitlement(mine) and standings.entitlement(rival)):
            return f"; {tree.paths[mine]} has no better claim than {tree.paths[rival]}"
        here = (standings.charged(mine) + claim_commitment(self.state, w)) / standings.entitlement(mine)
        has, rival_has = told_apart(float(here), float(standings.charged(rival) / standings.entitlement(rival)))
        counted = "of its share, what is promised counted"
        return f"; with it {tree.paths[mine]} would have {has} {counted}, {tree.paths[rival]} has {rival_has}"

    def _holders(self, which: Callable[[Run], bool]) -> str:
        """GPUs by budget, the most first."""
        held: dict[str, int] = {}
        for run in self.state.runs.values():
            if which(run):
                path = self.state.budgets.paths[run.budget]
                held[path] = held.get(path, 0) + run.gpus
        most = sorted(held.items(), key=lambda item: (-item[1], item[0]))
        return few([f"{path} {count(gpus, 'GPU')}" for path, gpus in most])

    def _limit_end(self, run: Run) -> int | None:
        limit_ms = self.state.workloads[run.workload].workload.time_limit_ms
        begun = self.state.now if run.started_at is None else run.started_at
        return None if limit_ms is None else max(self.state.now, begun + limit_ms)


def _empty(record: HostRecord) -> int:
    """What would be free if the host served, its readings were fresh and its GPUs fit."""
    return record.host.all_slots & ~(record.held | record.claimed)
