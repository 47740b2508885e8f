"""A small cluster under quotas: nodes, queues with their shares, and jobs where they run or wait.

GPUs of a node are one amount: on which of its devices a part of a GPU lies is not told apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction

from scheduler_core.errors import UnknownIdError
from scheduler_core.shares.amounts import Exact, within
from scheduler_core.shares.quota import Queue, divide_tree
from scheduler_core.shares.quota_order import Contender, Key, order_key
from scheduler_core.shares.reclaim import Holding
from scheduler_core.shares.trees import TOP, by_id, children, path


@dataclass(frozen=True, slots=True)
class Job:
    """A gang of equal tasks, `gpus` each. Jobs of higher priority, then earlier ones, come first within a queue."""

    id: str
    queue: str
    gpus: Exact
    tasks: int = 1
    priority: int = 0
    preemptible: bool = True

    @property
    def total(self) -> Exact:
        return self.gpus * self.tasks


Places = tuple[str, ...]  # the node of each task


class QuotaCluster:
    """What runs where. Shares are divided once, by what all jobs ask for at the beginning; `k` as in `divide`."""

    def __init__(
        self,
        nodes: Mapping[str, Exact],
        queues: Iterable[Queue],
        jobs: Iterable[Job],
        running: Mapping[str, Places],
        k: Exact = 0,
    ) -> None:
        self.nodes, self.jobs, self.running = dict(nodes), {job.id: job for job in jobs}, dict(running)
        self.total = sum(nodes.values(), Fraction(0))
        self._queues = by_id(queues)
        self._below = children(self._queues)
        self._above = {name: path(self._queues, name) for name in self._queues}
        for job in self.jobs.values():
            if job.queue not in self._queues:
                raise UnknownIdError(f"job {job.id!r} is of queue {job.queue!r}, which is not there")
            if missing := set(self.running.get(job.id, ())) - set(nodes):
                raise UnknownIdError(f"job {job.id!r} runs on {min(missing)!r}, which is not there")
        asked = self._sums(self.jobs)
        asking = [replace(q, request=asked[q.id]) for q in self._queues.values()]
        self.fair_shares = divide_tree(self.total, asking, k)

    def free(self) -> dict[str, Exact]:
        """GPUs of each node that nobody holds."""
        left = dict(self.nodes)
        for name, places in self.running.items():
            for node in places:
                left[node] -= self.jobs[name].gpus
        return left

    def holdings(self) -> dict[str, Holding]:
        """The queues as they stand now."""
        held = self._sums(self.running)
        fixed = self._sums(name for name in self.running if not self.jobs[name].preemptible)
        return {
            name: Holding(name, q.deserved, self.fair_shares[name], held[name], fixed[name], q.limit, q.parent)
            for name, q in self._queues.items()
        }

    def _sums(self, jobs: Iterable[str]) -> dict[str, Exact]:
        """GPUs of these jobs by queue, everything below a queue included."""
        sums: dict[str, Exact] = dict.fromkeys(self._queues, Fraction(0))
        for name in jobs:
            for queue in self._above[self.jobs[name].queue]:
                sums[queue] += self.jobs[name].total
        return sums

    def when(self, running: Mapping[str, Places], job: Job | None = None) -> QuotaCluster:
        """The same cluster, with the same shares, while this runs, and with a job as it is given here."""
        other = copy(self)
        other.running = dict(running)
        if job is not None:
            other.jobs = self.jobs | {job.id: job}
        return other

    def admit(self, name: str, home: Places = ()) -> bool:
        """Starts a job if its queues may hold it and all its tasks find room."""
        places = self._places(self.jobs[name], home) if self._within_quota(self.jobs[name]) else None
        if places is not None:
            self.running[name] = places
        return places is not None

    def _places(self, job: Job, home: Places) -> Places | None:
        """Each task on the node with the least room that is enough, where it was among equals. None: nowhere."""
        free, places = self.free(), list[str]()
        for task in range(job.tasks):
            fits = [node for node, room in free.items() if room >= job.gpus]
            if not fits:
                return None
            node = min(fits, key=lambda n: (free[n], home[task : task + 1] != (n,)))
            free[node] -= job.gpus
            places.append(node)
        return tuple(places)

    def _within_quota(self, job: Job) -> bool:
        """Within the limits of its queues; what is not preemptible also within what they deserve."""
        queues = self.holdings()
        chain = [queues[name] for name in self._above[job.queue]]
        return all(within(queue.allocated + job.total, queue.limit) for queue in chain) and (
            job.preemptible or all(within(q.allocated_non_preemptible + job.total, q.deserved) for q in chain)
        )

    def first_in_line(self, jobs: Collection[str]) -> str:
        """Who of them is to be served next."""
        return self._first(TOP, jobs, self.holdings(), {})

    def to_lose(self, jobs: Collection[str]) -> list[str]:
        """All of them, who is to lose its GPUs first at the front: each time the last in line but for those before."""
        left, lost, queues, order = list(jobs), dict.fromkeys(self._queues, Fraction(0)), self.holdings(), list[str]()
        while left:
            order.append(self._first(TOP, left, queues, lost))
            left.remove(order[-1])
            lost[self.jobs[order[-1]].queue] += self.jobs[order[-1]].total
        return order

    def _first(
        self, parent: str, jobs: Collection[str], queues: Mapping[str, Holding], lost: dict[str, Fraction]
    ) -> str:
        """Of the jobs in a branch, the first of its first queue; where there is `lost`, the last of its last."""
        if own := [name for name in self.jobs if name in jobs and self.jobs[name].queue == parent]:
            own.sort(key=lambda name: -self.jobs[name].priority)
            return own[-1 if lost else 0]
        firsts: dict[str, str] = {}
        for queue in self._below[parent]:
            if inside := [name for name in jobs if queue in self._above[self.jobs[name].queue]]:
                firsts[queue] = self._first(queue, inside, queues, lost)

        def key(queue: str) -> Key:
            row, job = self._queues[queue], self.jobs[firsts[queue]]
            change = {"losses": lost[job.queue] + job.total} if lost else {"claim": job.total}
            return order_key(Contender(queues[queue], priority=row.priority, created=row.created, **change), self.total)

        return firsts[(max if lost else min)(firsts, key=key)]
