"""Derived tables of a ClusterState, so that a pass costs leaves and hosts with room, not workloads x hosts.

Nothing here is a fact of its own: module rebuilding makes it again from the records, and `invariants` compares the two.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from scheduler_core.hostbook import HostBook
from scheduler_core.ids import BudgetId, HostName, RunId, WorkloadId
from scheduler_core.settled import LeafKey, News, Settled, Signature
from scheduler_core.units import GPU
from scheduler_core.usage import Line
from scheduler_core.workload import Workload


def signature(workload: Workload) -> Signature:
    return Signature(workload.gpus, workload.hosts or 0, workload.gpus_per_host or 0, workload.needs)


def leaf_key(workload: Workload) -> LeafKey:
    return (-workload.priority, workload.submitted_at, workload.id)


BySpan = dict[int, list[LeafKey]]  # by how long they hold what they get (`Workload.yields_after_ms`), in order


@dataclass(slots=True)
class LeafQueue:
    """The waiting workloads of one leaf, by signature."""

    by_signature: dict[Signature, BySpan] = field(default_factory=dict)

    def add(self, workload: Workload) -> tuple[LeafKey, Signature]:
        """Its place, and what it is looked for by."""
        key, kind = leaf_key(workload), signature(workload)
        if (spans := self.by_signature.get(kind)) is None:
            spans = self.by_signature[kind] = {}
        if (keys := spans.get(workload.yields_after_ms)) is None:
            spans[workload.yields_after_ms] = [key]
        elif keys[-1] < key:
            keys.append(key)
        else:
            insort(keys, key)
        return key, kind

    def remove(self, workload: Workload) -> None:
        spans = self.by_signature[signature(workload)]
        keys = spans[workload.yields_after_ms]
        del keys[bisect_left(keys, leaf_key(workload))]
        if not keys:
            del spans[workload.yields_after_ms]
        if not spans:
            del self.by_signature[signature(workload)]


class Promise(NamedTuple):
    """A protected run's rest of its min runtime, as long as it lasts (rule 7)."""

    until: int
    gpus: int
    chain: tuple[BudgetId, ...]


def _zero() -> defaultdict[BudgetId, int]:
    return defaultdict(int)


@dataclass(slots=True)
class Index:
    """Sums are per budget, the budget's whole subtree included."""

    free: dict[int, dict[HostName, None]] = field(default_factory=dict)  # free GPUs -> hosts with so many
    free_count: dict[HostName, int] = field(default_factory=dict)
    queues: dict[BudgetId, LeafQueue] = field(default_factory=dict)  # allocated, per leaf where anything waits
    unallocated_queues: dict[BudgetId, LeafQueue] = field(default_factory=dict)
    claimants: dict[WorkloadId, None] = field(default_factory=dict)
    held: defaultdict[BudgetId, int] = field(default_factory=_zero)  # GPUs of all runs (rule 8)
    reservations: dict[WorkloadId, None] = field(default_factory=dict)
    claimed: defaultdict[BudgetId, int] = field(default_factory=_zero)  # GPUs promised to claimants
    fixed: defaultdict[BudgetId, int] = field(default_factory=_zero)  # whole min runtimes: starting runs, promises
    promised_gpus: defaultdict[BudgetId, int] = field(default_factory=_zero)  # thousandths, protected runs
    promised_until: defaultdict[BudgetId, int] = field(default_factory=_zero)  # sum of thousandths x end
    promises: dict[RunId, Promise] = field(default_factory=dict)
    promise_heap: list[tuple[int, RunId]] = field(default_factory=list)
    interruptible: dict[BudgetId, dict[RunId, None]] = field(default_factory=dict)  # per leaf, allocated
    interruptible_below: defaultdict[BudgetId, int] = field(default_factory=_zero)
    exposed: list[RunId] = field(default_factory=list)  # interruptible ones that the book does not know of yet
    lowest: dict[BudgetId, int] = field(default_factory=dict)  # no run of the leaf has less priority
    running_unallocated: dict[RunId, None] = field(default_factory=dict)
    stopping: dict[RunId, None] = field(default_factory=dict)
    timers: list[tuple[int, str, str]] = field(default_factory=list)  # heap: instant, kind, id; stale ones are skipped
    forgets: deque[tuple[int, str, str]] = field(default_factory=deque)  # instant, workload or drain, id: in order
    sizes: dict[tuple[tuple[str, str], ...], tuple[int, ...]] = field(default_factory=dict)  # host sizes by needs
    lines: dict[BudgetId, Line] = field(default_factory=dict)  # charged: usage and commitments
    book: HostBook = field(default_factory=HostBook)
    news: News = field(default_factory=News)
    settled: Settled = field(default_factory=Settled)

    def commitment(self, budget: BudgetId) -> tuple[int, int]:
        """Rule 7's commitment of a branch, in GPU-thousandths x ms, until the next protection ends (`expire`): a level
        and a slope, to be multiplied by the instant."""
        return self.fixed[budget] + self.promised_until[budget], -self.promised_gpus[budget]

    def ranks(self, leaf: BudgetId, priority: int) -> None:
        """A run of the leaf has this priority."""
        self.lowest[leaf] = min(priority, self.lowest.get(leaf, priority))

    def wake_at(self, at: int, kind: str, name: str) -> None:
        """Look again at this instant (module timers)."""
        heappush(self.timers, (at, kind, name))

    def fill(self, waiting: Iterable[Workload]) -> None:
        """All that wait, into empty queues."""
        for workload in waiting:
            spans = self._queue(workload).by_signature.setdefault(signature(workload), {})
            spans.setdefault(workload.yields_after_ms, []).append(leaf_key(workload))
        for queue in (*self.queues.values(), *self.unallocated_queues.values()):
            for spans in queue.by_signature.values():
                for keys in spans.values():
                    keys.sort()

    def enqueue(self, workload: Workload) -> None:
        """It waits."""
        key, kind = self._queue(workload).add(workload)
        if not self.settled.covers(workload, key, kind):
            self.news.leaves[workload.budget] = None

    def _queue(self, workload: Workload) -> LeafQueue:
        """Its leaf's, made where there is none yet."""
        queues = self.queues if workload.allocated else self.unallocated_queues
        if (queue := queues.get(workload.budget)) is None:
            queue = queues[workload.budget] = LeafQueue()
        return queue

    def dequeue(self, workload: Workload) -> None:
        """It waits no longer."""
        queues = self.queues if workload.allocated else self.unallocated_queues
        queue = queues[workload.budget]
        queue.remove(workload)
        if not queue.by_signature:
            del queues[workload.budget]
            if workload.allocated:
                self.settled.drop(workload.budget)
        elif not self.settled.ahead_of(workload.budget, leaf_key(workload)):
            self.news.leaves[workload.budget] = None

    def set_free(self, host: HostName, count: int) -> None:
        old = self.free_count.get(host, 0)
        if old == count:
            return
        if old:
            del self.free[old][host]
        if count:
            self.free.setdefault(count, {})[host] = None
            self.free_count[host] = count
        else:
            del self.free_count[host]

    def fix(self, chain: tuple[BudgetId, ...], amount: int) -> None:
        """A whole min runtime is promised, in GPU-thousandths x ms; or, below 0, no longer."""
        for budget in chain:
            self.fixed[budget] += amount
            self.lines.pop(budget, None)

    def promise(self, run: RunId, until: int, gpus: int, chain: tuple[BudgetId, ...], now: int) -> None:
        """The run is protected until then; already past, it is interruptible at once."""
        if until <= now:
            self._expose(run, chain)
            return
        self.promises[run] = Promise(until, gpus * GPU, chain)
        self._promised(self.promises[run], +1)
        heappush(self.promise_heap, (until, run))

    def _promised(self, promise: Promise, sign: int) -> None:
        for budget in promise.chain:
            self.promised_gpus[budget] += sign * promise.gpus
            self.promised_until[budget] += sign * promise.gpus * promise.until
            self.lines.pop(budget, None)

    def _expose(self, run: RunId, chain: tuple[BudgetId, ...]) -> None:
        self.interruptible.setdefault(chain[0], {})[run] = None
        for budget in chain:
            self.interruptible_below[budget] += 1
        self.news.runs[run] = None
        self.exposed.append(run)

    def withdraw(self, run: RunId, chain: tuple[BudgetId, ...], now: int) -> None:
        """The run promises nothing any more and is no candidate: it stops, or has ended."""
        if (promise := self.promises.pop(run, None)) is not None:
            self._promised(promise, -1)
            self.news.relieve(chain[0], promise.gpus * max(0, promise.until - now))
        exposed = self.interruptible.get(chain[0], {})
        if run in exposed:
            del exposed[run]
            for budget in chain:
                self.interruptible_below[budget] -= 1
        self.running_unallocated.pop(run, None)

    def expire(self, now: int) -> bool:
        """Runs past their min runtime from exactly this instant become interruptible (rule 12). True when any did."""
        any_expired = False
        while self.promise_heap and self.promise_heap[0][0] <= now:
            until, run = heappop(self.promise_heap)
            promise = self.promises.get(run)
            if promise is None or promise.until != until:
                continue  # withdrawn meanwhile
            del self.promises[run]
            self._promised(promise, -1)
            self._expose(run, promise.chain)
            any_expired = True
        return any_expired

    def next_expiry(self) -> int | None:
        """When the next protected run becomes interruptible."""
        while self.promise_heap:
            until, run = self.promise_heap[0]
            promise = self.promises.get(run)
            if promise is not None and promise.until == until:
                return until
            heappop(self.promise_heap)
        return None
