"""Placement on free GPUs (rules 15, 16): feasible, then ranked by the least room left, aligned expiry, host id."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from scheduler_core.decisions import Member
from scheduler_core.ids import BudgetId, HostName, RunId
from scheduler_core.reservations import Reservations
from scheduler_core.shapes import Shape, matches, shapes, sizes_of
from scheduler_core.state import ClusterState, Run
from scheduler_core.units import lowest_bits
from scheduler_core.workload import Workload

Entry = tuple[int, HostName]  # aligned expiry, host: the order inside a bucket


def protection_end(run: Run, now: int) -> int:
    """When the run may be interrupted at the latest, as far as known now: what aligned expiry looks at."""
    if not run.allocated or run.stop is not None:
        return now
    begun = now if run.started_at is None else run.started_at
    return max(now, begun + run.min_runtime_ms)


def holders(state: ClusterState, members: tuple[Member, ...]) -> list[Run]:
    """The runs on these slots."""
    found: dict[RunId, Run] = {}
    for member in members:
        for run_id in state.hosts[member.host].runs:
            part = state.runs[run_id].members[member.host]
            if part.phase.holds_gpus and part.slots & member.slots:
                found[run_id] = state.runs[run_id]
    return list(found.values())


class Room:
    """The free GPUs of one pass: what the state has free, less what the pass has given away."""

    def __init__(self, state: ClusterState) -> None:
        self.state, self._book = state, state.index.book
        self._taken: dict[HostName, int] = {}
        self._ends: dict[HostName, int] = {}  # protection end of what the pass has placed there
        self.given: dict[BudgetId, int] = {}  # GPUs given in this pass, per budget and its ancestors
        self.reservations = Reservations(state)
        self._heaps: dict[int, list[Entry]] = {}
        self._moved: dict[int, dict[HostName, None]] = {}
        self.largest = max((count for count, hosts in state.index.free.items() if hosts), default=0)
        self.left = sum(count * len(hosts) for count, hosts in state.index.free.items())

    def free(self, name: HostName) -> int:
        """The mask of free slots of a host."""
        return self._book.free[name] & ~self._taken.get(name, 0)

    def open_slots(self, name: HostName) -> int:
        """Free slots, and held ones that nobody has been promised: what could be free if the host's runs left."""
        return self._book.open[name] & ~self._taken.get(name, 0)

    def take(self, workload: Workload, members: tuple[Member, ...]) -> None:
        """The pass gives these slots to the workload, placed or waiting for its victims."""
        until = self.state.now + workload.min_runtime_ms
        for budget in self.state.budgets.chains[workload.budget]:
            self.given[budget] = self.given.get(budget, 0) + workload.gpus
        for member in members:
            self.left -= (self.free(member.host) & member.slots).bit_count()
            self._taken[member.host] = self._taken.get(member.host, 0) | member.slots
            self._ends[member.host] = max(until, self._ends.get(member.host, 0))
            self._moved_to(member.host)

    def _moved_to(self, name: HostName) -> None:
        count = self.free(name).bit_count()
        if count in self._heaps:
            heappush(self._heaps[count], (self._expiry(name), name))
        else:
            self._moved.setdefault(count, {})[name] = None

    def _expiry(self, name: HostName) -> int:
        """When all that runs there is past its protection; 0 where `pack` does not ask."""
        state = self.state
        if state.policy.pack == "tight":
            return 0
        ends = [protection_end(state.runs[run], state.now) for run in state.hosts[name].runs]
        return max(state.now, self._ends.get(name, 0), *ends) if ends else max(state.now, self._ends.get(name, 0))

    def _heap(self, count: int) -> list[Entry]:
        """The hosts with so many free GPUs, best first. Entries may be stale: their host has fewer by now."""
        if (heap := self._heaps.get(count)) is None:
            names = dict(self.state.index.free.get(count, {})) | self._moved.pop(count, {})
            heap = self._heaps[count] = [(self._expiry(name), name) for name in names]
            heapify(heap)
        return heap

    def candidates(self, least: int) -> Iterator[HostName]:
        """Hosts with at least `least` free GPUs, in rule 16's order. What is looked at stays in place."""
        for count in range(least, self.largest + 1):
            heap, seen = self._heap(count), []
            last: HostName | None = None
            try:
                while heap:
                    entry = heappop(heap)
                    if entry[1] == last or self.free(entry[1]).bit_count() != count:
                        continue
                    last = entry[1]
                    seen.append(entry)
                    yield entry[1]
            finally:
                for entry in seen:
                    heappush(heap, entry)

    def find(self, workload: Workload) -> tuple[Member, ...] | None:
        """Where the workload would start on free GPUs; None where it does not fit now."""
        if workload.gpus_per_host and workload.gpus_per_host > self.largest:
            return None
        sizes = sizes_for(self.state, workload)
        for shape in shapes(workload, sizes):
            if (members := self._find_shape(workload, shape)) is not None:
                return members
        return None

    def _find_shape(self, workload: Workload, shape: Shape) -> tuple[Member, ...] | None:
        if shape.gpus > self.largest:
            return None
        members: list[Member] = []
        closed = self.reservations.closed_to(workload)
        for name in self.candidates(shape.gpus):
            host, free = self.state.hosts[name].host, self.free(name) & ~closed.get(name, 0)
            if free.bit_count() < shape.gpus or (shape.whole and host.gpus != shape.gpus):
                continue
            if not matches(host, workload.needs):
                continue
            members.append(Member(name, lowest_bits(free, shape.gpus)))
            if len(members) == shape.hosts:
                return tuple(members)
        return None


def sizes_for(state: ClusterState, workload: Workload) -> tuple[int, ...]:
    """Host sizes that matter to this workload, largest first. Cached per set of needs until hosts change."""
    cache = state.index.sizes
    if (sizes := cache.get(workload.needs)) is None:
        hosts = (record.host for record in state.hosts.values())
        sizes = cache[workload.needs] = sizes_of(hosts, workload.needs)
    return sizes
