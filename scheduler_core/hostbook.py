"""What each host could give, counted in GPUs: the way to the hosts worth a look, not to a decision.

A derived table of the index. It follows the state by masks of slots; a pass lays what it gives away over them
(module prospects) and takes that off again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler_core.ids import HostName

Buckets = dict[int, dict[HostName, None]]  # GPUs -> hosts with so many


@dataclass(slots=True)
class HostBook:
    """Masks of slots by host, and the hosts in buckets of what they could give.

    A host's *open* slots are promised to nobody: free, or held by runs. Of the held ones the *soft* belong to runs that
    somebody may stop or that stop already, the *leaving* to the latter, the *loose* to unallocated ones. `reach` counts
    what any workload could get there, `coming` what is free or comes free without another victim, where anything does.
    """

    open: dict[HostName, int] = field(default_factory=dict)
    free: dict[HostName, int] = field(default_factory=dict)
    soft: dict[HostName, int] = field(default_factory=dict)
    leaving: dict[HostName, int] = field(default_factory=dict)
    loose: dict[HostName, int] = field(default_factory=dict)
    reach: dict[HostName, int] = field(default_factory=dict)
    _coming: dict[HostName, int] = field(default_factory=dict)
    _by_reach: Buckets = field(default_factory=dict)
    _by_coming: Buckets = field(default_factory=dict)
    _stale: dict[HostName, None] = field(default_factory=dict)

    # -- following the state ---------------------------------------------------------------------------------------

    def see(self, name: HostName, open_slots: int, free: int) -> bool:
        """How the host stands. True where it could give a slot that it could not before."""
        grew = open_slots & ~self.open.get(name, 0) | free & ~self.free.get(name, 0)
        self.open[name], self.free[name] = open_slots, free
        self._stale[name] = None
        return bool(grew)

    def soften(self, name: HostName, slots: int) -> None:
        """These belong to a run that somebody may stop now."""
        self.soft[name] = self.soft.get(name, 0) | slots
        self._stale[name] = None

    def loosen(self, name: HostName, slots: int) -> None:
        """These belong to a run that has no guarantee."""
        self.soften(name, slots)
        self.loose[name] = self.loose.get(name, 0) | slots

    def leave(self, name: HostName, slots: int) -> None:
        """These belong to a run that stops."""
        self.soften(name, slots)
        self.leaving[name] = self.leaving.get(name, 0) | slots

    def release(self, name: HostName, slots: int) -> None:
        """Their run holds them no longer."""
        for masks in (self.soft, self.leaving, self.loose):
            if rest := masks.pop(name, 0) & ~slots:
                masks[name] = rest
        self._stale[name] = None

    def forget(self, name: HostName) -> None:
        """The host has left."""
        for masks in (self.open, self.free):
            masks.pop(name, None)
        self._stale[name] = None

    def refresh(self) -> None:
        """Counts anew where something changed since the last time."""
        for name in self._stale:
            self.count(name, self.open.get(name, 0), self.free.get(name, 0), self.leaving.get(name, 0))
        self._stale.clear()

    def spoil(self, name: HostName) -> None:
        """A pass has counted otherwise; the next `refresh` takes the state's word again."""
        self._stale[name] = None

    def count(self, name: HostName, open_slots: int, free: int, leaving: int) -> None:
        """The host's place in the buckets, with these masks."""
        soft = open_slots & (self.soft.get(name, 0) | leaving | free)
        leaving &= open_slots
        _move(self._by_reach, self.reach, name, soft.bit_count())
        _move(self._by_coming, self._coming, name, (leaving | free).bit_count() if leaving else 0)

    def easy(self, name: HostName) -> int:
        """Open slots that are free, or that nobody with a guarantee holds."""
        held = self.leaving.get(name, 0) | self.loose.get(name, 0)
        return self.free[name] | (held & self.open[name])

    # -- asking ----------------------------------------------------------------------------------------------------

    def enough(self, hosts: int, gpus: int) -> bool:
        """Could so many hosts give so many GPUs each, if everybody without protection left?"""
        return sum(len(names) for reach, names in self._by_reach.items() if reach >= gpus) >= hosts

    def reaching(self, gpus: int) -> Iterator[HostName]:
        """The hosts that could give so many GPUs, if everybody without protection left."""
        for reach, names in self._by_reach.items():
            if reach >= gpus:
                yield from names

    def coming(self, gpus: int) -> Iterator[HostName]:
        """Hosts on which so many GPUs come free without another victim, the tightest first."""
        for count in sorted(self._by_coming):
            if count >= gpus:
                yield from sorted(self._by_coming[count])


def _move(buckets: Buckets, counts: dict[HostName, int], name: HostName, count: int) -> None:
    """A host with nothing to give is in no bucket."""
    before = counts.get(name, 0)
    if before == count:
        return
    if before:
        del buckets[before][name]
    if count:
        buckets.setdefault(count, {})[name] = None
        counts[name] = count
    else:
        del counts[name]
