"""One planning pass (rule 15): takes the waiting workloads in order and decides, changing nothing itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from scheduler_core.cursor import LeafCursor, TreeCursor, in_order
from scheduler_core.decisions import Claimed, Decision, Member, PassDone, Placed, StopCause, StopDecided
from scheduler_core.explain import preemption_reason, standings_of
from scheduler_core.fairshare import Standings, commitment, unallocated_key
from scheduler_core.gangs import kept_gangs
from scheduler_core.hostbook import HostBook
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.index import LeafQueue, Signature
from scheduler_core.placement import Room
from scheduler_core.preemption import NoPlan, Plan, Search, headroom
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.victims import Pool, Victim
from scheduler_core.workload import WorkloadPhase

UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class PassResult:
    """The decisions of a pass, in order. `breaker` names the workloads that rule 29 made wait."""

    decisions: tuple[Decision, ...]
    breaker: tuple[WorkloadId, ...] = ()


def plan_pass(state: ClusterState, preemptable_gpus: int = UNLIMITED) -> PassResult:
    """One pass at `state.now`. `preemptable_gpus` is what the breaker still allows (rule 29)."""
    state.index.expire(state.now)
    plan = _Pass(state, preemptable_gpus)
    plan.promote_claims()
    plan.keep_gangs()
    plan.take_allocated()
    plan.take_unallocated()
    return plan.result()


def queue_order(state: ClusterState, also: Collection[WorkloadId] = ()) -> list[WorkloadId]:
    """All waiting and held workloads in rule 6's order, before any commitment of a pass.

    `also`: workloads that run, placed as if they waited.
    """
    state.index.expire(state.now)
    allocated, unallocated = _with_held(state, also)
    standings = Standings(state)
    by_need = TreeCursor(state, allocated, lambda budget: (standings.key(budget), budget))
    by_use = TreeCursor(state, unallocated, lambda budget: unallocated_key(state, budget))
    return [*in_order(state, by_need), *in_order(state, by_use)]


def _with_held(
    state: ClusterState, also: Collection[WorkloadId]
) -> tuple[dict[BudgetId, LeafQueue], dict[BudgetId, LeafQueue]]:
    """Queues for people: the held ones stand where they would stand if released."""
    allocated: dict[BudgetId, LeafQueue] = {}
    unallocated: dict[BudgetId, LeafQueue] = {}
    for wid, record in state.workloads.items():
        if record.phase in (WorkloadPhase.WAITING, WorkloadPhase.HELD) or wid in also:
            queues = allocated if record.workload.allocated else unallocated
            queues.setdefault(record.workload.budget, LeafQueue()).add(record.workload)
    return allocated, unallocated


@dataclass
class _Pass:
    """The scratch state of a pass: what it has given away, committed and decided so far."""

    state: ClusterState
    preemptable_gpus: int
    decisions: list[Decision] = field(default_factory=list)
    dead: dict[Signature, None] = field(default_factory=dict)  # fits no free GPUs, and no unallocated victims help
    book: HostBook | None = None  # opened by the first search
    blast_blocked: list[WorkloadId] = field(default_factory=list)
    breaker_blocked: list[WorkloadId] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.standings = Standings(self.state)
        self.room = Room(self.state)
        self.pool = Pool(self.standings)

    def result(self) -> PassResult:
        done = PassDone(tuple(self.blast_blocked))
        return PassResult((*self.decisions, done), tuple(self.breaker_blocked))

    # -- 1: claims whose victims have gone ------------------------------------------------------------------------

    def promote_claims(self) -> None:
        """Rule 19: who waited for victims starts on exactly the GPUs held for it."""
        for wid in sorted(self.state.index.claimants):
            record = self.state.workloads[wid]
            free = record.run is None and all(self._claim_free(m.host, m.slots) for m in record.claim)
            if free and self._under_caps(record, claimed=True):
                self.decisions.append(Placed(wid, record.next_run, record.claim))

    def _claim_free(self, name: HostName, slots: int) -> bool:
        host = self.state.hosts[name]
        return slots & host.usable & ~host.held == slots

    def keep_gangs(self) -> None:
        """Rule 25: what a drain leaves of a gang is held for it."""
        for claim in kept_gangs(self.state, self.room):
            record = self.state.workloads[claim.workload]
            if self._under_caps(record, claimed=True):  # what it held goes as the claim comes
                self.decisions.append(claim)
                self._take(record, claim.members)

    # -- 2: allocated work, the most owed first --------------------------------------------------------------------

    def take_allocated(self) -> None:
        standings = self.standings
        cursor = TreeCursor(self.state, self.state.index.queues, lambda budget: (standings.key(budget), budget))
        while (leaf := cursor.best()) is not None:
            if not self._take_from(cursor.leaves[leaf]):
                cursor.exhaust(leaf)

    def _take_from(self, cursor: LeafCursor) -> bool:
        """Works on a leaf until something of it was placed or promised: then standings differ. False when it is
        done."""
        while not (cursor.head_blocked and self._nothing_left()):
            found = cursor.next(self.dead)
            if found is None:
                return False
            record = self.state.workloads[found[0]]
            if record.claim or record.not_before > self.state.now:
                continue  # has its promise already; or waits for its retry
            if self._try(record, found[1], head=not cursor.head_blocked):
                return True
            cursor.head_blocked = True
        return False

    def _nothing_left(self) -> bool:
        """Nothing is free and nobody without a guarantee runs: behind a blocked head nothing can start."""
        index = self.state.index
        return not (self.room.largest or index.running_unallocated or index.stopping or self.pool.going)

    def _try(self, record: WorkloadRecord, signature: Signature, head: bool) -> bool:
        """Rule 15: free GPUs, else preempt. (Consolidation and reservation, rules 20 and 21, take their places
        here.)"""
        capped = not self._under_caps(record)
        if not capped and signature not in self.dead and self._place(record):
            return True
        if not head and (capped or signature in self.dead):
            return False
        if self._preempt(record, head):
            return True
        if not head or not (capped or self._brakes(record)):
            self.dead[signature] = None
        return False

    def _brakes(self, record: WorkloadRecord) -> bool:
        """Was it only a brake (rules 18, 29) that kept it from a plan?"""
        return record.workload.id in (*self.blast_blocked[-1:], *self.breaker_blocked[-1:])

    def _under_caps(self, record: WorkloadRecord, claimed: bool = False) -> bool:
        """Rule 8, with what the pass has given away so far. A claim is counted among the held ones already."""
        gpus = 0 if claimed else record.workload.gpus
        chain = self.state.budgets.chains[record.workload.budget]
        return all(headroom(self.state, b, self.room.given.get(b, 0), gpus) >= 0 for b in chain)

    def _place(self, record: WorkloadRecord) -> bool:
        members = self.room.find(record.workload)
        if members is None:
            return False
        self.decisions.append(Placed(record.workload.id, record.next_run, members))
        self._take(record, members)
        return True

    def _preempt(self, record: WorkloadRecord, head: bool) -> bool:
        search = Search(self.pool, self.room, self._open_book(), record.workload, only_unallocated=not head)
        let_go = f"workload {record.workload.id}" in self.state.allowed
        found = search.run(not self._patience_over(record), UNLIMITED if let_go else self.preemptable_gpus)
        if isinstance(found, NoPlan):
            if found.blast:
                self.blast_blocked.append(record.workload.id)
            if found.breaker:
                self.breaker_blocked.append(record.workload.id)
            return False
        self._claim(record, found)
        return True

    def _open_book(self) -> HostBook:
        if self.book is None:
            self.book = HostBook(self.state, self.room, self.pool.going)
        return self.book

    def _take(self, record: WorkloadRecord, members: tuple[Member, ...]) -> None:
        """The pass gives these slots to the workload."""
        self.room.take(record.workload, members)
        if self.book is not None:
            self.book.taken(members)
        if record.workload.allocated:
            chain = self.state.budgets.chains[record.workload.budget]
            self.standings.commit(chain, commitment(record.workload))
            self.pool.committed(chain)

    def _patience_over(self, record: WorkloadRecord) -> bool:
        """Rule 18: `max_blast` binds no longer once it alone has blocked the workload for `blast_patience`."""
        since = self.state.blast_blocked.get(record.workload.id)
        return since is not None and self.state.now - since >= self.state.policy.blast_patience_ms

    def _claim(self, record: WorkloadRecord, plan: Plan) -> None:
        for victim in plan.victims:
            self.decisions.append(self._stop(record, victim))
            self.pool.going[victim.run.id] = None
            self._open_book().stop(victim.run)
            self.preemptable_gpus -= victim.run.gpus
        self.pool.failures.clear()
        self.decisions.append(Claimed(record.workload.id, plan.members, plan.waits_for))
        self._take(record, plan.members)

    def _stop(self, record: WorkloadRecord, victim: Victim) -> StopDecided:
        """Rule 23: the figures of this moment go with the decision."""
        return StopDecided(
            victim.run.id,
            StopCause.PREEMPT,
            preemption_reason(self.standings, record.workload, victim),
            for_workload=record.workload.id,
            standings=standings_of(self.standings, record.workload, victim.branch),
            lost_gpu_ms=victim.lost,
        )

    # -- 3: unallocated work, on what nobody else can use ---------------------------------------------------------

    def take_unallocated(self) -> None:
        """Rule 6: after every allocated one; rule 17: preempts nothing."""
        if not self.room.largest:
            return
        state = self.state
        cursor = TreeCursor(state, state.index.unallocated_queues, lambda budget: unallocated_key(state, budget))
        unfit: dict[Signature, None] = {}
        while (leaf := cursor.best()) is not None:
            self._take_free(cursor.leaves[leaf], unfit)
            cursor.exhaust(leaf)

    def _take_free(self, cursor: LeafCursor, unfit: dict[Signature, None]) -> None:
        cursor.head_blocked = True  # so that the cursor leaves out what does not fit
        while (found := cursor.next(unfit)) is not None:
            record = self.state.workloads[found[0]]
            if record.not_before > self.state.now or not self._under_caps(record):
                continue
            if not self._place(record):
                unfit[found[1]] = None
