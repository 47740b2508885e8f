"""Whole plans (rule 18): the cheapest victims that, with free GPUs, start a workload entirely.

Exact on one host: hosts are looked at in the order of their best victim and each is solved exactly (module cheapest);
once no later host can beat the best so far, the search ends. Greedy across hosts, and where a cap binds (rule 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from scheduler_core.caps import headroom
from scheduler_core.cheapest import UNLIMITED, Item, cheapest
from scheduler_core.decisions import Member
from scheduler_core.ids import BudgetId, HostName, RunId
from scheduler_core.placement import Room, holders, sizes_for
from scheduler_core.prospects import Claimant, Prospects
from scheduler_core.shapes import Shape, matches, shapes
from scheduler_core.units import PPM, lowest_bits
from scheduler_core.victims import Failure, Pool, Rights, Victim
from scheduler_core.workload import Workload

FEW = 24  # so many hosts are looked at one by one, without sorting all victims
FREE = -(10**18)  # the tier of a host that needs no victim
NOTHING = (FREE, 0, 0, ())  # what a host costs at least


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the workload will start and who must go first. `victims` leaves out runs that stop already."""

    members: tuple[Member, ...]
    victims: tuple[Victim, ...]
    waits_for: tuple[RunId, ...]


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why nobody is preempted. `blast`: a plan exists and only `max_blast` forbids it; `breaker`: only rule 29,
    because it stops runs on so many GPUs.

    Else `rights` are the branches among whose runs there are no victims; None where nobody's leaving would help.
    """

    blast: bool = False
    breaker: int = 0
    rights: frozenset[BudgetId] | None = None


class Offer(NamedTuple):
    """What one host costs; lower is better."""

    tier: int
    lost: int
    rank: int  # runs; GPUs that come free anyway, where no run needs to go
    ids: tuple[RunId, ...]
    host: HostName


@dataclass
class Search:
    """One search for victims."""

    pool: Pool
    room: Room
    prospects: Prospects
    workload: Workload
    only_unallocated: bool = False  # behind a leaf's blocked head (rule 15)
    among: Mapping[HostName, None] | None = None  # a plan needs one of these; None: any
    _gone: dict[RunId, Victim] = field(default_factory=dict)  # victims so far
    _allowance: int = UNLIMITED
    _held_back: bool = False  # max_blast kept a run from being a victim
    _any_will_do: bool = False  # only whether there is a plan is asked

    def __post_init__(self) -> None:
        self.state, self.book = self.pool.state, self.prospects.book
        self.closed = self.room.reservations.closed_to_claim(self.workload)  # rule 21

    def run(self, blast_binds: bool, preemptable_gpus: int) -> Plan | NoPlan:
        """The best plan over the shapes that the workload may have."""
        options = shapes(self.workload, sizes_for(self.state, self.workload))
        self._shapes = [shape for shape in options if self.book.enough(shape.hosts, shape.gpus)]
        if not self._shapes:
            return NoPlan()
        if self.among is not None and not self._among_could_serve():
            return NoPlan()
        self._rights = Rights(self.pool, self.workload, self.only_unallocated)
        branches = frozenset(self._rights.branches)
        self._claimant = Claimant(self.workload.budget, self.workload.priority, branches, self.closed)
        cap = self.state.policy.max_blast_ppm * self.workload.gpus // PPM
        plan = self._plan(cap if blast_binds else UNLIMITED)
        if plan is None and blast_binds and self._held_back:
            self._any_will_do = True
            return NoPlan(blast=self._plan(UNLIMITED) is not None, rights=self._claimant.branches)
        if plan is None:
            return NoPlan(rights=self._claimant.branches)
        gpus = sum(self.pool.cost(v.run)[1] for v in plan.victims)
        if gpus > preemptable_gpus:
            return NoPlan(breaker=gpus, rights=self._claimant.branches)
        return plan

    def _among_could_serve(self) -> bool:
        """A plan that was not there before needs one of the changed hosts."""
        reach, least = self.book.reach, min(shape.gpus for shape in self._shapes)
        return any(reach.get(name, 0) >= least for name in self.among or ())

    def _plan(self, allowance: int) -> Plan | None:
        for shape in self._shapes:
            self._gone, self._allowance = {}, allowance
            if self._hopeless(shape) or not self._relieve_caps():
                continue
            if not self._possible(shape):
                if self.among is None:
                    self._note_failure(shape, UNLIMITED)
                continue
            capped = bool(self._gone)
            held_back, self._held_back = self._held_back, False
            chosen = self._choose_hosts(shape)
            if chosen is None and not capped and self.among is None:
                self._note_failure(shape, allowance)
            self._held_back |= held_back
            if chosen is not None:
                plan = self._written(shape, chosen, self._needed(shape, chosen))
                return plan if plan.waits_for else None  # on free GPUs alone, but for a cap: it waits for that
        return None

    def _possible(self, shape: Shape) -> bool:
        """May there be hosts enough, whatever its victims cost? One host is looked for, not counted."""
        claimant, gpus = self._claimant, shape.gpus
        if self.among is not None and not any(self.prospects.gives(name, claimant) >= gpus for name in self.among):
            return False
        return shape.hosts == 1 or self.prospects.has(shape.hosts, gpus, claimant)

    def _note_failure(self, shape: Shape, allowance: int) -> None:
        if self.closed:
            return  # another one may have what is reserved
        others = self._claimant.branches - {self.workload.budget}
        self.pool.failures.append(Failure(shape, self.workload.needs, others, allowance, self._held_back))

    def _hopeless(self, shape: Shape) -> bool:
        """Has a search with no fewer rights failed to find as much in this pass?"""
        for failure in self.pool.failures:
            if failure.covers(shape, self.workload.needs, self._allowance) and self._rights.within(failure.branches):
                self._held_back |= failure.held_back
                return True
        return False

    # -- caps (rule 8) -------------------------------------------------------------------------------------------

    def _over(self) -> list[tuple[BudgetId, int]]:
        """The workload's budgets that it would bring over their cap, each with the GPUs that must go below it first."""
        given = self.room.given
        over = []
        for budget in self.state.budgets.chains[self.workload.budget]:
            left = headroom(self.state, budget, given.get(budget, 0), self.workload.gpus)
            if left < 0:
                over.append((budget, -left))
        return over

    def _relieves(self, over: Sequence[tuple[BudgetId, int]], runs: Iterable[Victim]) -> bool:
        """Do all caps hold when these, and those that stop already, have gone?"""
        chains = self.state.budgets.chains
        stopping = [self.state.runs[run_id] for run_id in self.state.index.stopping]
        going = [self.state.runs[run_id] for run_id in self.pool.going]
        leaving = [*stopping, *going, *(v.run for v in runs)]
        return all(sum(r.gpus for r in leaving if budget in chains[r.budget]) >= gpus for budget, gpus in over)

    def _relieve_caps(self) -> bool:
        """Takes the first victims in order that bring every cap down."""
        over = self._over()
        if not over or self._relieves(over, ()):
            return True
        chains = self.state.budgets.chains
        for victim in self._rights.in_order():
            below = any(budget in chains[victim.run.budget] for budget, _ in over)
            if below and self._spend(victim) and self._relieves(over, self._gone.values()):
                return True
        return False

    def _spend(self, victim: Victim) -> bool:
        """Adds a victim, where `max_blast` allows it."""
        if victim.allocated_gpus > self._allowance:
            self._held_back = True
            return False
        self._allowance -= victim.allocated_gpus
        self._gone[victim.run.id] = victim
        return True

    # -- where -------------------------------------------------------------------------------------------------

    def _choose_hosts(self, shape: Shape) -> tuple[HostName, ...] | None:
        """The cheapest host; for a gang the cheapest hosts one by one, a victim that frees several counted once."""
        chosen: dict[HostName, None] = {}
        among = self.among
        if among is not None and shape.hosts > 1:
            if not any(self._offer(name, shape) for name in among):
                return None
            among = None
        while len(chosen) < shape.hosts:
            found = self._best_host(shape, chosen, among)
            if found is None:
                return None
            host, victims = found
            chosen[host] = None
            for victim in victims:
                self._spend(victim)
        return tuple(chosen)

    def _best_host(
        self, shape: Shape, chosen: dict[HostName, None], among: Mapping[HostName, None] | None
    ) -> tuple[HostName, tuple[Victim, ...]] | None:
        """Ends at the first host that neither it nor any later one can beat the best so far."""
        best: Offer | None = None
        choice: tuple[Victim, ...] = ()
        seen = dict(chosen)
        reach, gpus = self.book.reach, shape.gpus
        for least, names in self._in_order(shape, chosen) if among is None else [(NOTHING, among)]:
            if best is not None and best < least:
                break
            for name in names:
                if name in seen or reach.get(name, 0) < gpus:
                    continue
                seen[name] = None
                found = self._offer(name, shape)
                if found is not None and (best is None or found[0] < best):
                    best, choice = found
                    if self._any_will_do:
                        return best.host, choice
        return None if best is None else (best.host, choice)

    def _in_order(
        self, shape: Shape, chosen: dict[HostName, None]
    ) -> Iterator[tuple[tuple[object, ...], Iterable[HostName]]]:
        """Hosts, by the first of their victims, with the least that one can cost which was not met before."""
        yield NOTHING, self._first_free(shape, chosen)
        yield NOTHING, self._first_coming(shape, chosen)
        for gone in self._gone.values():
            yield NOTHING, gone.run.members
        few = list(islice(self.book.reaching(shape.gpus), FEW + 1))
        if len(few) <= FEW:
            yield NOTHING, few
            return
        for victim in self._rights.in_order():
            yield (victim.tier, victim.lost, 1, (victim.run.id,)), victim.run.members

    def _first_coming(self, shape: Shape, chosen: dict[HostName, None]) -> Iterator[HostName]:
        for name in self.book.coming(shape.gpus):
            if name not in chosen and self._suits(name, shape) and self._slots(name, ()).bit_count() >= shape.gpus:
                yield name
                return

    def _first_free(self, shape: Shape, chosen: dict[HostName, None]) -> Iterator[HostName]:
        """The host that rule 16 would take next, where one is free enough."""
        for name in self.room.candidates(shape.gpus):
            if name not in chosen and self._suits(name, shape) and self._free(name).bit_count() >= shape.gpus:
                yield name
                return

    def _free(self, name: HostName) -> int:
        """The mask of free slots that it may have."""
        return self.room.free(name) & ~self.closed.get(name, 0)

    def _suits(self, name: HostName, shape: Shape) -> bool:
        host = self.state.hosts[name].host
        return matches(host, self.workload.needs) and (not shape.whole or host.gpus == shape.gpus)

    def _offer(self, name: HostName, shape: Shape) -> tuple[Offer, tuple[Victim, ...]] | None:
        """What this host costs, with the victims; None where it cannot give so many GPUs."""
        if not self._suits(name, shape):
            return None
        coming, items = self._on_host(name)
        missing = shape.gpus - coming
        if missing <= 0:
            return Offer(FREE, 0, coming, (), name), ()
        victims = cheapest(items, missing, self._allowance)
        if self._allowance < UNLIMITED:
            self._held_back |= victims is None or any(i.victim.allocated_gpus > self._allowance for i in items)
        if victims is None:
            return None
        if len(victims) == 1:
            only = victims[0]
            return Offer(only.tier, only.lost, 1, (only.run.id,), name), victims
        ids = tuple(sorted(v.run.id for v in victims))
        return Offer(max(v.tier for v in victims), sum(v.lost for v in victims), len(ids), ids, name), victims

    def _on_host(self, name: HostName) -> tuple[int, list[Item]]:
        """GPUs of the host that are free or come free, and the victims on it with what each would free."""
        open_slots = self.room.open_slots(name) & ~self.closed.get(name, 0)
        coming = self._free(name)
        going, gone, victim_of = self.pool.going, self._gone, self._rights.victim
        items = []
        for run, held in self.prospects.runs_on(name):
            if not (slots := held & open_slots):
                continue
            if run.id in gone or run.stop is not None or run.id in going:
                coming |= slots
            elif (victim := victim_of(run)) is not None:
                items.append(Item(victim, slots.bit_count()))
        return coming.bit_count(), items

    # -- whole and minimal -------------------------------------------------------------------------------------

    def _needed(self, shape: Shape, hosts: tuple[HostName, ...]) -> list[Victim]:
        """The victims without those that could be left out, the last to go left out first (rule 18)."""
        needed = sorted(self._gone.values(), key=_dearest, reverse=True)
        over = self._over()
        if shape.hosts > 1 or over:
            for victim in tuple(needed):
                rest = [v for v in needed if v is not victim]
                if self._relieves(over, rest) and self._enough(shape, hosts, rest):
                    needed = rest
        return needed

    def _enough(self, shape: Shape, hosts: Iterable[HostName], victims: Sequence[Victim]) -> bool:
        return all(self._slots(name, victims).bit_count() >= shape.gpus for name in hosts)

    def _slots(self, name: HostName, victims: Sequence[Victim]) -> int:
        """Slots of the host that are free, or come free when these have gone and those that stop already."""
        ids = {v.run.id: None for v in victims}
        slots = 0
        for run_id in self.state.hosts[name].runs:
            run = self.state.runs[run_id]
            if run.members[name].phase.holds_gpus and (run_id in ids or self.pool.frees(run)):
                slots |= run.members[name].slots
        return (slots & self.room.open_slots(name) & ~self.closed.get(name, 0)) | self._free(name)

    def _written(self, shape: Shape, hosts: tuple[HostName, ...], needed: list[Victim]) -> Plan:
        members = tuple(Member(name, self._pick(name, shape.gpus, needed)) for name in hosts)
        ids = dict.fromkeys((*(v.run.id for v in needed), *(run.id for run in holders(self.state, members))))
        return Plan(members, tuple(sorted(needed, key=_dearest)), tuple(sorted(ids)))

    def _pick(self, name: HostName, gpus: int, needed: Sequence[Victim]) -> int:
        """Free slots first, so that what the victims free beyond the need is left to the next in order (rule 19)."""
        free = self._free(name)
        taken = lowest_bits(free, min(gpus, free.bit_count()))
        return taken | lowest_bits(self._slots(name, needed) & ~free, gpus - taken.bit_count())


def _dearest(victim: Victim) -> tuple[int, int, RunId]:
    return (victim.tier, victim.lost, victim.run.id)
