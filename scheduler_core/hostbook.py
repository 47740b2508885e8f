"""What each host could give in one pass, counted in GPUs: the way to the hosts worth a look, not to a decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scheduler_core.decisions import Member
from scheduler_core.ids import HostName, RunId
from scheduler_core.placement import Room
from scheduler_core.state import ClusterState, Run


@dataclass
class HostBook:
    """Built at the first search of a pass, kept as the pass gives GPUs away.

    A host's `coming` GPUs are free or held by runs that stop; its `reach` counts all that any workload could get there.
    """

    state: ClusterState
    room: Room
    going: dict[RunId, None]
    _freeing: dict[HostName, int] = field(default_factory=dict)  # slots of runs that stop
    _soft: dict[HostName, int] = field(default_factory=dict)  # slots of runs that some workload may stop, or that stop
    reach: dict[HostName, int] = field(default_factory=dict)
    _coming: dict[HostName, int] = field(default_factory=dict)
    _by_coming: dict[int, dict[HostName, None]] = field(default_factory=dict)
    _runs: dict[HostName, list[tuple[Run, int]]] = field(default_factory=dict)
    _by_reach: dict[int, dict[HostName, None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        index, runs = self.state.index, self.state.runs
        self._mark(self._freeing, (runs[run_id] for run_id in (*index.stopping, *self.going)))
        self._mark(self._soft, (runs[run_id] for run_id in index.running_unallocated))
        for ids in index.interruptible.values():
            self._mark(self._soft, (runs[run_id] for run_id in ids))
        for name in self._freeing:
            self._soft[name] = self._soft.get(name, 0) | self._freeing[name]
        self.touch(self._soft)

    def _mark(self, masks: dict[HostName, int], runs: Iterable[Run]) -> None:
        for run in runs:
            for name, member in run.members.items():
                if member.phase.holds_gpus:
                    masks[name] = masks.get(name, 0) | member.slots

    def stop(self, run: Run) -> None:
        """The pass has decided to stop this run."""
        self._mark(self._freeing, (run,))
        self.touch(run.members)

    def taken(self, members: Iterable[Member]) -> None:
        """The pass has given these slots away."""
        self.touch(m.host for m in members)

    def touch(self, names: Iterable[HostName]) -> None:
        for name in names:
            free, open_slots = self.room.free(name), self.room.open_slots(name)
            reach = (open_slots & (self._soft.get(name, 0) | free)).bit_count()
            freeing = open_slots & self._freeing.get(name, 0)
            self._set_reach(name, reach)
            self._set_coming(name, (freeing | free).bit_count() if freeing else 0)

    def _set_reach(self, name: HostName, reach: int) -> None:
        before = self.reach.get(name)
        if before != reach:
            if before is not None:
                del self._by_reach[before][name]
            self._by_reach.setdefault(reach, {})[name] = None
            self.reach[name] = reach

    def _set_coming(self, name: HostName, coming: int) -> None:
        before = self._coming.get(name, 0)
        if before != coming:
            if before:
                del self._by_coming[before][name]
            self._by_coming.setdefault(coming, {})[name] = None
            self._coming[name] = coming

    def runs_on(self, name: HostName) -> list[tuple[Run, int]]:
        """The host's runs that are not protected, with the slots that each holds there."""
        if (known := self._runs.get(name)) is None:
            soft, runs = self._soft.get(name, 0), self.state.runs
            found = [(run, run.members[name]) for run in (runs[run_id] for run_id in self.state.hosts[name].runs)]
            known = self._runs[name] = [(r, m.slots) for r, m in found if m.phase.holds_gpus and m.slots & soft]
        return known

    def enough(self, hosts: int, gpus: int) -> bool:
        """Could so many hosts give so many GPUs each, if everybody without protection left?"""
        able = sum(len(names) for reach, names in self._by_reach.items() if reach >= gpus)
        if able < hosts:
            able += sum(len(names) for free, names in self.state.index.free.items() if free >= gpus)
        return able >= hosts

    def reaching(self, gpus: int, most: int) -> list[HostName] | None:
        """The hosts that could give so many GPUs; None where there are more than `most`."""
        found: list[HostName] = []
        for reach, names in self._by_reach.items():
            if reach >= gpus:
                found += names
                if len(found) > most:
                    return None
        return found

    def coming(self, gpus: int) -> Iterator[HostName]:
        """Hosts on which so many GPUs come free without another victim, the tightest first."""
        for count in sorted(self._by_coming):
            if count >= gpus:
                yield from sorted(self._by_coming[count])
