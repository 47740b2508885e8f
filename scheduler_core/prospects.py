"""The hosts' book as one pass sees it: what it has given away and whom it will stop laid over the state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from scheduler_core.decisions import Member
from scheduler_core.ids import BudgetId, HostName
from scheduler_core.placement import Room
from scheduler_core.reservations import Masks
from scheduler_core.settled import Signature
from scheduler_core.state import ClusterState, Run


class Claimant(NamedTuple):
    """Whose rights are asked about: to runs of these branches, and to those of its own leaf with less priority."""

    leaf: BudgetId
    priority: int
    branches: frozenset[BudgetId]
    closed: Masks  # what is reserved for others


@dataclass
class Prospects:
    """Opened at the begin of a pass and closed at its end, when the book is the state's again."""

    state: ClusterState
    room: Room
    _going: dict[HostName, int] = field(default_factory=dict)  # slots of runs that this pass stops
    _touched: dict[HostName, None] = field(default_factory=dict)
    _held: dict[HostName, list[tuple[int, tuple[BudgetId, ...], int]]] = field(default_factory=dict)
    _runs: dict[HostName, list[tuple[Run, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.book = self.state.index.book
        self._note_exposed()
        self.book.refresh()

    def _note_exposed(self) -> None:
        """Runs whose protection ended since the last pass."""
        index, runs = self.state.index, self.state.runs
        for run_id in index.exposed:
            run = runs.get(run_id)
            for name, member in run.members.items() if run is not None else ():
                if member.phase.holds_gpus:
                    self.book.soften(name, member.slots)
        index.exposed.clear()

    def stop(self, run: Run) -> None:
        """The pass has decided to stop this run."""
        for name, member in run.members.items():
            if member.phase.holds_gpus:
                self._going[name] = self._going.get(name, 0) | member.slots
                self._count(name)

    def taken(self, members: Iterable[Member]) -> None:
        """The pass has given these slots away."""
        for member in members:
            self._count(member.host)

    def _count(self, name: HostName) -> None:
        self._touched[name] = None
        leaving = self.book.leaving.get(name, 0) | self._going.get(name, 0)
        self.book.count(name, self.room.open_slots(name), self.room.free(name), leaving)

    def close(self) -> None:
        for name in self._touched:
            self.book.spoil(name)

    def reaches(self, name: HostName, kind: Signature) -> bool:
        """Could a workload of this kind have what it needs of one host, if everybody without protection left?"""
        return self.book.reach.get(name, 0) >= kind.least(self.state.hosts[name].host.gpus)

    def easy(self, name: HostName) -> int:
        """Slots that are promised to nobody and free, or held by runs that stop or have no guarantee."""
        return (self.book.easy(name) | self._going.get(name, 0)) & self.room.open_slots(name)

    def gives(self, name: HostName, claimant: Claimant) -> int:
        """GPUs of the host that this one could get: the easy ones, and those of runs to which it has a right."""
        leaf, priority, branches, closed = claimant
        slots, open_slots = self.easy(name), self.room.open_slots(name) & ~closed.get(name, 0)
        for held, chain, rank in self._held_on(name):
            if not branches.isdisjoint(chain) or (chain[0] == leaf and rank < priority):
                slots |= held
        return (slots & open_slots).bit_count()

    def has(self, hosts: int, gpus: int, claimant: Claimant) -> bool:
        """Are there so many hosts that give it so many GPUs each?"""
        if not self.book.enough(hosts, gpus):
            return False  # to nobody
        able = (name for name in self.book.reaching(gpus) if self.gives(name, claimant) >= gpus)
        return sum(1 for _ in islice(able, hosts)) == hosts

    def _held_on(self, name: HostName) -> list[tuple[int, tuple[BudgetId, ...], int]]:
        """By each run there that is not protected: its slots, budgets, priority."""
        if (known := self._held.get(name)) is None:
            state = self.state
            known = self._held[name] = [
                (slots, state.budgets.chains[run.budget], state.workloads[run.workload].workload.priority)
                for run, slots in self.runs_on(name)
                if run.allocated
            ]
        return known

    def runs_on(self, name: HostName) -> list[tuple[Run, int]]:
        """The host's runs that are not protected, with the slots that each holds there."""
        if (known := self._runs.get(name)) is None:
            soft, runs = self.book.soft.get(name, 0), self.state.runs
            found = [(run, run.members[name]) for run in (runs[run_id] for run_id in self.state.hosts[name].runs)]
            known = self._runs[name] = [(r, m.slots) for r, m in found if m.phase.holds_gpus and m.slots & soft]
        return known
