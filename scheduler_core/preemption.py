"""Whole plans (rule 18): the cheapest set of victims that, with free GPUs, starts a workload entirely."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scheduler_core.decisions import Member
from scheduler_core.fairshare import Standings
from scheduler_core.ids import BudgetId, HostName, RunId
from scheduler_core.placement import Room, sizes_for
from scheduler_core.shapes import Shape, matches, shapes
from scheduler_core.state import ClusterState
from scheduler_core.units import PPM, lowest_bits
from scheduler_core.victims import Candidate, Cost, allocated_candidates, unallocated_candidates
from scheduler_core.workload import Workload

NOTHING = Cost()
Choice = tuple[Cost, tuple[Candidate, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the workload will start and who must go first. `victims` leaves out runs that stop already."""

    members: tuple[Member, ...]
    victims: tuple[Candidate, ...]
    waits_for: tuple[RunId, ...]


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why nobody is preempted. `blast`: a plan exists and only `max_blast` forbids it; `breaker`: rule 29 does."""

    blast: bool = False
    breaker: bool = False


@dataclass
class Search:
    """One search for victims. `going` are runs that this pass has already decided to stop."""

    standings: Standings
    room: Room
    workload: Workload
    going: dict[RunId, None]
    only_unallocated: bool = False  # behind a leaf's blocked head (rule 15)
    _by_host: dict[HostName, list[Candidate]] = field(default_factory=dict)
    _must_free: int = 0  # GPUs that must go below a budget at its cap (rule 8)

    @property
    def state(self) -> ClusterState:
        return self.standings.state

    def run(self, blast_binds: bool, preemptable_gpus: int) -> Plan | NoPlan:
        """The best plan over the shapes that the workload may have."""
        for candidate in self._candidates():
            for name, member in candidate.run.members.items():
                if member.phase.holds_gpus and member.slots & self.room.open_slots(name):
                    self._by_host.setdefault(name, []).append(candidate)
        if not self._by_host:
            return NoPlan()
        for candidates in self._by_host.values():
            candidates.sort(key=lambda c: c.run.id)
        for shape in shapes(self.workload, sizes_for(self.state, self.workload)):
            if (chosen := self._choose_hosts(shape)) is not None:
                return self._judge(shape, chosen, blast_binds, preemptable_gpus)
        return NoPlan()

    # -- who ---------------------------------------------------------------------------------------------------

    def _candidates(self) -> Iterable[Candidate]:
        found = list(unallocated_candidates(self.state))
        if not self.only_unallocated:
            found += allocated_candidates(self.standings, self.workload)
        found = [Candidate(c.run, NOTHING) if c.run.id in self.going else c for c in found]
        capped = self._capped_budget()
        if capped is None:
            return found
        return [c for c in found if capped in self.state.budgets.chains[c.run.budget]]

    def _capped_budget(self) -> BudgetId | None:
        """The deepest budget of the workload whose cap it would break, unless runs below it go (rule 8)."""
        for budget in self.state.budgets.chains[self.workload.budget]:
            if (missing := -headroom(self.state, budget, self.room_claims(budget), self.workload.gpus)) > 0:
                self._must_free = missing
                return budget
        return None

    def room_claims(self, budget: BudgetId) -> int:
        """GPUs that this pass has given to workloads below the budget."""
        return self.room.given.get(budget, 0)

    # -- where -------------------------------------------------------------------------------------------------

    def _choose_hosts(self, shape: Shape) -> dict[HostName, Choice] | None:
        """The cheapest host; for a gang the cheapest hosts one by one, victims that free several counted once."""
        chosen: dict[HostName, Choice] = {}
        gone: dict[RunId, None] = {}
        offers: dict[HostName, Choice] = {}
        stale = self._hosts(shape)
        while len(chosen) < shape.hosts:
            for name in stale:
                if name not in chosen:
                    offer = self._best(name, shape.gpus, gone)
                    if offer is not None:
                        offers[name] = offer
            if not offers:
                return None
            name = min(offers, key=lambda n: (offers[n][0], n))
            chosen[name] = offers.pop(name)
            fresh = [c for c in chosen[name][1] if c.run.id not in gone]
            gone |= {c.run.id: None for c in fresh}
            stale = [h for c in fresh for h in c.run.members if h in self._by_host]
        return chosen

    def _hosts(self, shape: Shape) -> list[HostName]:
        names = dict.fromkeys(self._by_host)
        if shape.hosts > 1:  # a host that is free enough already is the cheapest
            names |= {n: None for count, hosts in self.state.index.free.items() if count >= shape.gpus for n in hosts}
        hosts = self.state.hosts
        return [
            n
            for n in names
            if matches(hosts[n].host, self.workload.needs) and (not shape.whole or hosts[n].host.gpus == shape.gpus)
        ]

    def _best(self, name: HostName, gpus: int, gone: dict[RunId, None]) -> Choice | None:
        """The cheapest victims that leave `gpus` free on this host: exact, by dynamic programming over GPUs freed."""
        open_slots = self.room.open_slots(name)
        missing = max(gpus - self.room.free(name).bit_count(), self._must_free)
        candidates = self._by_host.get(name, ())
        best: list[Choice | None] = [(NOTHING, ())] + [None] * max(0, missing)
        for candidate in candidates:
            freed = (candidate.run.members[name].slots & open_slots).bit_count()
            cost = NOTHING if candidate.run.id in gone else candidate.cost
            _add_item(best, candidate, freed, cost)
        return best[-1]

    # -- judged ------------------------------------------------------------------------------------------------

    def _judge(
        self, shape: Shape, chosen: dict[HostName, Choice], blast_binds: bool, preemptable_gpus: int
    ) -> Plan | NoPlan:
        picked = {c.run.id: c for _, candidates in chosen.values() for c in candidates}
        needed = self._leave_out(shape, tuple(chosen), picked)
        victims = [c for c in needed if c.cost.runs]
        allocated = sum(c.allocated_gpus for c in victims)
        if blast_binds and allocated * PPM > self.state.policy.max_blast_ppm * self.workload.gpus:
            return NoPlan(blast=True)
        if sum(c.run.gpus for c in victims) > preemptable_gpus:
            return NoPlan(breaker=True)
        return self._plan(shape, tuple(chosen), needed)

    def _leave_out(self, shape: Shape, names: tuple[HostName, ...], picked: dict[RunId, Candidate]) -> list[Candidate]:
        """None of the victims could be left out: the dearest that is not needed goes first (rule 18)."""
        needed = sorted(picked.values(), key=lambda c: (c.cost, c.run.id), reverse=True)
        for candidate in tuple(needed):
            rest = [c for c in needed if c is not candidate]
            if shape.hosts > 1 and self._enough(shape, names, rest):
                needed = rest
        return sorted(needed, key=lambda c: (c.cost, c.run.id))

    def _enough(self, shape: Shape, names: tuple[HostName, ...], candidates: Sequence[Candidate]) -> bool:
        return all(self._freed(name, candidates).bit_count() >= shape.gpus for name in names) and (
            sum(c.run.gpus for c in candidates) >= self._must_free
        )

    def _freed(self, name: HostName, candidates: Sequence[Candidate]) -> int:
        """Slots of the host that are free or come free when these runs have gone."""
        slots = 0
        for candidate in candidates:
            if (member := candidate.run.members.get(name)) is not None and member.phase.holds_gpus:
                slots |= member.slots
        return (slots & self.room.open_slots(name)) | self.room.free(name)

    def _plan(self, shape: Shape, names: tuple[HostName, ...], needed: list[Candidate]) -> Plan:
        members = tuple(Member(n, self._pick(n, shape.gpus, needed)) for n in names)
        used = {m.host: m.slots for m in members}
        waits_for = tuple(
            c.run.id
            for c in sorted(needed, key=lambda c: c.run.id)
            if c.cost.runs or any(m.slots & used.get(h, 0) for h, m in c.run.members.items() if m.phase.holds_gpus)
        )
        return Plan(members, tuple(c for c in needed if c.cost.runs), waits_for)

    def _pick(self, name: HostName, gpus: int, needed: list[Candidate]) -> int:
        """Free slots first, so that what the victims free beyond the need is left to the next in order (rule 19)."""
        free = self.room.free(name)
        taken = lowest_bits(free, min(gpus, free.bit_count()))
        return taken | lowest_bits(self._freed(name, needed) & ~free, gpus - taken.bit_count())


def _add_item(best: list[Choice | None], candidate: Candidate, freed: int, cost: Cost) -> None:
    """One more run that may go: for each number of GPUs still missing, is it cheaper with it?"""
    last = len(best) - 1
    for have in range(last - 1, -1, -1):
        if (base := best[have]) is None:
            continue
        have_then = min(last, have + freed)
        total = base[0].plus(cost)
        known = best[have_then]
        if known is None or total < known[0]:
            best[have_then] = (total, (*base[1], candidate))


def headroom(state: ClusterState, budget: BudgetId, given: int, gpus: int) -> int:
    """GPUs left below the budget's cap after `gpus` more (rule 8), claims counted as held; negative when over."""
    cap = state.budgets.by_id[budget].max_gpus
    if cap is None:
        return gpus  # never binds
    return cap - state.index.held[budget] - state.index.claimed[budget] - given - gpus
