"""One planning pass (rule 15): takes the waiting workloads in order and decides, changing nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler_core.agenda import agenda, patience_over, widen
from scheduler_core.caps import under_caps
from scheduler_core.cursor import NOBODY, LeafCursor, TreeCursor
from scheduler_core.decisions import (
    Claimed,
    Decision,
    Member,
    PassDone,
    Placed,
    ReservationEnded,
    Reserved,
    StopCause,
    StopDecided,
)
from scheduler_core.fairshare import Standings, Takers, commitment, turn_comes_after
from scheduler_core.gangs import kept_gangs
from scheduler_core.grounds import preemption_reason, reservation_reason, side_against, standings_of
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.index import leaf_key
from scheduler_core.placement import Room, holders
from scheduler_core.preemption import NoPlan, Plan, Search
from scheduler_core.prospects import Prospects
from scheduler_core.reserving import may_begin, new_reservations
from scheduler_core.settled import Blocked, Settled, Signature, Spans, covered
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.victims import Pool, Victim
from scheduler_core.workload import Workload

UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class PassResult:
    """The decisions of a pass, in order. `breaker` names the workloads that rule 29 made wait."""

    decisions: tuple[Decision, ...]
    breaker: tuple[WorkloadId, ...] = ()


def plan_pass(state: ClusterState, preemptable_gpus: int = UNLIMITED, settled: Settled | None = None) -> PassResult:
    """One pass at `state.now`. `preemptable_gpus` is what the breaker still allows (rule 29).

    `settled` is what the last pass left, and is brought up to date: then the decisions must be applied. Without it
    the pass looks at everything.
    """
    state.index.expire(state.now)
    plan = _Pass(state, preemptable_gpus, settled or Settled())
    plan.promote_claims()
    plan.keep_gangs()
    plan.keep_reservations()
    plan.take_allocated()
    plan.reserve()
    plan.take_unallocated()
    return plan.result()


@dataclass
class _Pass:
    """The scratch state of a pass: what it has given away, committed and decided so far."""

    state: ClusterState
    preemptable_gpus: int
    settled: Settled
    decisions: list[Decision] = field(default_factory=list)
    breaker_blocked: list[WorkloadId] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.standings = Standings(self.state)
        self.room = Room(self.state)
        self.pool = Pool(self.standings)
        self.prospects = Prospects(self.state, self.room)
        self.agenda = agenda(self.state, self.settled, self.pool, self.prospects, self.preemptable_gpus)
        self.dead = self.settled.dead
        self.cursor = TreeCursor(self.state, self.state.index.queues, self.standings.first)  # of allocated work

    def result(self) -> PassResult:
        self.prospects.close()
        done = PassDone(self.settled.blast_blocked(), self.agenda.reads_standings)
        return PassResult((*self.decisions, done), tuple(self.breaker_blocked))

    # -- 1: claims whose victims have gone ------------------------------------------------------------------------

    def promote_claims(self) -> None:
        """Rule 19: who waited for victims starts on exactly the GPUs held for it."""
        for wid in sorted(self.state.index.claimants):
            record = self.state.workloads[wid]
            free = record.run is None and all(self._claim_free(m.host, m.slots) for m in record.claim)
            closed = self.room.reservations.closed_to(record.workload) if free else {}
            if any(m.slots & closed.get(m.host, 0) for m in record.claim):
                self.decisions.append(Claimed(wid, (), ()))  # it comes too late for what is reserved there
            elif free and under_caps(self.room, record, claimed=True):
                self.decisions.append(Placed(wid, record.next_run, record.claim))

    def _claim_free(self, name: HostName, slots: int) -> bool:
        host = self.state.hosts[name]
        return slots & host.usable & ~host.held == slots

    def keep_gangs(self) -> None:
        """Rule 25: what a drain leaves of a gang is held for it."""
        for claim in kept_gangs(self.state, self.room):
            record = self.state.workloads[claim.workload]
            if under_caps(self.room, record):
                self.decisions.append(claim)
                self._take(record, claim.members)

    def keep_reservations(self) -> None:
        """Rule 21: whose instant has come starts, or claims its GPUs from whoever is on them."""
        for made in self.room.reservations.due():
            if may_begin(self.state, made):
                self._begin(self.state.workloads[made.workload], made)

    def _begin(self, record: WorkloadRecord, made: Reserved) -> None:
        runs = holders(self.state, made.members)
        if not under_caps(self.room, record, leaving=runs):
            self.decisions.append(ReservationEnded(made.workload, "max_gpus of its budgets leaves no room for it"))
            self.room.reservations.drop(made.workload)
            self.agenda.heads[record.workload.budget] = None
        elif runs:
            leaf, tree = record.workload.budget, self.state.budgets
            victims = tuple(
                Victim(0, self.pool.cost(r)[0], r, r.gpus, side_against(tree, leaf, r)) for r in runs if r.stop is None
            )
            self._claim(record, Plan(made.members, victims, tuple(sorted(r.id for r in runs))), reserved=True)
        else:
            self.decisions.append(Placed(made.workload, record.next_run, made.members))
            self._take(record, made.members)

    # -- 2: allocated work, the most owed first --------------------------------------------------------------------

    def take_allocated(self) -> None:
        todo = self.agenda
        if not todo.heads and not todo.rest:
            return
        cursor = self.cursor
        cursor.add((*todo.heads, *todo.rest))
        while (leaf := cursor.best()) is not None:
            if (kind := todo.helped.pop(leaf, None)) is not None and not self._still_there(kind):
                del todo.heads[leaf]
                if leaf not in todo.rest:
                    cursor.drop(leaf)
            elif leaf not in todo.heads and not self._anything_revived():
                cursor.retain(todo.heads)
                todo.rest.clear()
            elif leaf not in todo.heads and not self._has_one_alive(leaf):
                cursor.drop(leaf)
            elif self._take_from(leaf, cursor.leaf(leaf)):
                todo.heads[leaf] = None  # another one is its head now
            else:
                cursor.exhaust(leaf)
                todo.heads.pop(leaf, None)

    def _still_there(self, kind: Signature) -> bool:
        """Has nobody who stands better taken what was to be had?"""
        return any(self.prospects.reaches(name, kind) for name in self.agenda.hosts)

    def _anything_revived(self) -> bool:
        """May a workload start of a kind that could not at the last pass?"""
        if self._nothing_left():
            self._bury(self.agenda.revived)
        return any(self.dead.get(kind, 1) for kind in self.agenda.revived)  # 0: dead whatever its span

    def _has_one_alive(self, leaf: BudgetId) -> bool:
        """Does one of a revived kind wait there that was not found impossible since?"""
        kinds = self.state.index.queues[leaf].by_signature
        revived = (kind for kind in self.agenda.revived if kind in kinds)
        return any(not covered(self.dead, kind, min(kinds[kind])) for kind in revived)

    def _nothing_left(self) -> bool:
        """Nothing is free and nobody without a guarantee runs: behind a blocked head nothing can start."""
        index = self.state.index
        return not (self.room.left or index.running_unallocated or index.stopping or self.pool.going)

    def _bury(self, signatures: Iterable[Signature], span: int = 0) -> None:
        """They cannot start, if they hold what they get for so long."""
        for kind in signatures:
            self.dead[kind] = min(span, self.dead.get(kind, span))

    def _take_from(self, leaf: BudgetId, cursor: LeafCursor) -> bool:
        """Works on a leaf until something of it was placed or promised: then standings differ. False when it is
        done."""
        if leaf not in self.agenda.heads:
            cursor.blocked = self._still_blocked(leaf)
        while not (cursor.blocked and self._nothing_left()):
            found = cursor.next(self.dead if cursor.blocked else NOBODY)
            if found is None:
                break
            record = self.state.workloads[found[0]]
            if record.claim or found[0] in self.room.reservations.used or record.not_before > self.state.now:
                continue  # has its promise already; or waits for its retry
            if self._try(record, found[1], cursor):
                return True
        else:
            self._bury(cursor.signatures)
        ended = cursor.blocked or Blocked()
        self.settled.settle(leaf, ended if cursor.certain else None)
        return False

    def _still_blocked(self, leaf: BudgetId) -> Blocked | None:
        """What blocked the leaf at the last pass, unless its head is of a kind that may start now."""
        known = self.settled.blocked[leaf]
        if known.head is None or known.kind is None:
            return None
        span = self.state.workloads[known.head[2]].workload.yields_after_ms
        return known if covered(self.dead, known.kind, span) else None

    def _try(self, record: WorkloadRecord, kind: Signature, cursor: LeafCursor) -> bool:
        """Rule 15: free GPUs, else preempt. (Consolidation, rule 20, takes its place here.) A leaf's first that can
        neither is its blocked head."""
        head, capped = cursor.blocked is None, not under_caps(self.room, record)
        span = record.workload.yields_after_ms
        dead = covered(self.dead, kind, span)
        if not capped and not dead and self._place(record):
            return True
        if capped:
            cursor.capped[kind], cursor.certain = None, False
        if not head and (capped or dead):
            return False
        known = None if capped or not head else self._known(record)
        where = self._where(kind, head, known)
        found = self._preempt(record, where, only_unallocated=not head)
        if found is None:
            return True
        if found.breaker:
            self.settled.braked[record.workload.budget, kind] = found.breaker
        elif where is None:
            self.settled.braked.pop((record.workload.budget, kind), None)
        if not capped:
            self._bury((kind,), span if self.room.reservations.closed_to_claim(record.workload) else 0)
        if head:
            self._note_blast(record.workload, found.blast, known)
            cursor.blocked = (
                known.within(found.rights) if known else Blocked(leaf_key(record.workload), kind, found.rights)
            )
        return False

    def _note_blast(self, workload: Workload, blast: bool, known: Blocked | None) -> None:
        """Who was blocked by `max_blast` stays so where nothing changed."""
        if blast:
            self.settled.blast[workload.budget] = workload.id
        elif known is None:
            self.settled.blast.pop(workload.budget, None)

    def _known(self, record: WorkloadRecord) -> Blocked | None:
        """What the last pass found about this head, where its rights have not grown since."""
        leaf = record.workload.budget
        known = self.settled.blocked.get(leaf)
        if known is None or known.head != leaf_key(record.workload):
            return None
        # Past the breaker the cheapest plan waits: a dearer one where something changed is no way round it.
        return None if leaf in self.agenda.turned or (leaf, known.kind) in self.settled.braked else known

    def _where(self, kind: Signature, head: bool, known: Blocked | None) -> dict[HostName, None] | None:
        """Who failed at the last pass has to look only where something changed. None: everywhere."""
        failed = known is not None if head else kind in self.agenda.revived and kind not in self.agenda.anywhere
        return self.agenda.hosts if failed else None

    def _place(self, record: WorkloadRecord) -> bool:
        members = self.room.find(record.workload)
        if members is None:
            return False
        self.decisions.append(Placed(record.workload.id, record.next_run, members))
        self._take(record, members)
        return True

    def _preempt(
        self, record: WorkloadRecord, among: dict[HostName, None] | None, only_unallocated: bool
    ) -> NoPlan | None:
        """None where it claims its GPUs from victims."""
        if among is not None and not among:
            return NoPlan()
        search = Search(self.pool, self.room, self.prospects, record.workload, only_unallocated, among)
        let_go = f"workload {record.workload.id}" in self.state.allowed
        found = search.run(
            not patience_over(self.state, record.workload.id), UNLIMITED if let_go else self.preemptable_gpus
        )
        if isinstance(found, Plan):
            self._claim(record, found)
            return None
        if found.breaker:
            self.breaker_blocked.append(record.workload.id)
        return found

    def _take(self, record: WorkloadRecord, members: tuple[Member, ...]) -> None:
        """The pass gives these slots to the workload."""
        self.room.take(record.workload, members)
        self.prospects.taken(members)
        if record.workload.allocated and not self.room.reservations.use(record.workload.id):  # counted already
            chain = self.state.budgets.chains[record.workload.budget]
            self.standings.commit(chain, commitment(record.workload))

    def _claim(self, record: WorkloadRecord, plan: Plan, reserved: bool = False) -> None:
        for victim in plan.victims:
            self.decisions.append(self._stop(record, victim, reserved))
            self.pool.going[victim.run.id] = None
            self.prospects.stop(victim.run)
            self.preemptable_gpus -= 0 if reserved else victim.run.gpus
        self.pool.failures.clear()
        self.decisions.append(Claimed(record.workload.id, plan.members, plan.waits_for))
        turn_comes = (lambda leaf: True) if reserved else turn_comes_after(self.standings, record.workload.budget)
        self._take(record, plan.members)
        hosts: dict[HostName, None] = {name: None for victim in plan.victims for name in victim.run.members}
        self.cursor.add(widen(self.agenda, self.settled, self.prospects, hosts, turn_comes))

    def _stop(self, record: WorkloadRecord, victim: Victim, reserved: bool) -> StopDecided:
        """Rule 23: the figures of this moment go with the decision."""
        why = reservation_reason if reserved else preemption_reason
        return StopDecided(
            victim.run.id,
            StopCause.PREEMPT,
            why(self.standings, record.workload, victim),
            for_workload=record.workload.id,
            standings=standings_of(self.standings, record.workload, victim.branch),
            lost_gpu_ms=victim.lost,
            reserved=reserved,
        )

    # -- 3: promises to the heads that cannot start ---------------------------------------------------------------

    def reserve(self) -> None:
        """Rule 21, in order, with all that the pass has given away."""
        self.decisions += new_reservations(self.standings, self.room, self.settled, self.pool.going)

    # -- 4: unallocated work, on what nobody else can use ---------------------------------------------------------

    def take_unallocated(self) -> None:
        """Rule 6: after every allocated one; rule 17: preempts nothing."""
        state, unfit = self.state, self.settled.unfit
        queues = state.index.unallocated_queues
        if not self.room.left or all(kind in unfit for queue in queues.values() for kind in queue.by_signature):
            return
        cursor = TreeCursor(state, queues, Takers(state).first)
        cursor.add(queues)
        while (leaf := cursor.best()) is not None and self.room.left:
            self._take_free(cursor.leaf(leaf), unfit)
            cursor.exhaust(leaf)

    def _take_free(self, cursor: LeafCursor, unfit: Spans) -> None:
        while (found := cursor.next(unfit)) is not None:
            record = self.state.workloads[found[0]]
            if record.not_before > self.state.now or not under_caps(self.room, record):
                continue
            if not self._place(record):
                unfit[found[1]] = 0
