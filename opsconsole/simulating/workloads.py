"""Jobs of a log to workloads of a cluster: with what the log says, and by the rules what it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from opsconsole.simulating.job import Job, Log
from opsconsole.simulating.leaves import Leaves
from opsconsole.simulating.oddities import Odd, Oddities
from opsconsole.simulating.rules import Drawn
from opsconsole.simulating.setup import Variant
from opsconsole.spans import format_span
from scheduler_core.budget import BudgetTree
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.shapes import Misfit, ShapeProblem, shape_problem, sizes_of
from scheduler_core.units import HOUR, count
from scheduler_core.workload import OnPreempt, Workload

COPY_WITHIN_MS = HOUR  # copies of a job are submitted within so long after it


@dataclass(slots=True)
class Stream:
    """What is submitted, by time; `run_ms` of each at the same place. `declared`: how many rest on which rule."""

    tree: BudgetTree
    workloads: list[Workload] = field(default_factory=list)
    run_ms: list[int] = field(default_factory=list)
    oddities: Oddities = field(default_factory=Oddities)
    skipped: dict[BudgetId, int] = field(default_factory=dict)
    declared: dict[str, int] = field(default_factory=dict)
    drawn: bool = False  # does anything in it depend on the seed?


def make_stream(
    log: Log, hosts: Sequence[Host], variant: Variant, seed: int, times: float, period: tuple[int, int | None]
) -> Stream:
    """The workloads that jobs submitted in the period become, `times` as many. The same seed makes the same stream."""
    jobs = [
        job for job in log.jobs if job.submitted_at >= period[0] and (period[1] is None or job.submitted_at < period[1])
    ]
    maker = _Maker(jobs, hosts, variant, seed)
    for job in log.jobs if len(jobs) != len(log.jobs) else ():
        if job.submitted_at < period[0] or (period[1] is not None and job.submitted_at >= period[1]):
            maker.stream.oddities.add("outside_period", job.line, job.id)
    found = [(w, run_ms) for job in jobs for w, run_ms in maker.make(job, times)]
    found.sort(key=lambda pair: pair[0].submitted_at)
    stream = maker.stream
    stream.workloads, stream.run_ms = [w for w, _ in found], [run_ms for _, run_ms in found]
    stream.drawn = variant.rules.are_drawn or times != 1
    return stream


class _Maker:
    def __init__(self, jobs: Sequence[Job], hosts: Sequence[Host], variant: Variant, seed: int) -> None:
        rules = self.rules = variant.rules
        self.hosts, self.policy, self.sizes = hosts, variant.policy, sizes_of(hosts)
        self.total = sum(host.gpus for host in hosts)
        self.leaves = Leaves(jobs, variant.tree, rules, seed)
        self.stream = Stream(self.leaves.tree)
        self.runtimes = Drawn(rules.min_runtime, seed, "min_runtime", 0)
        self.resumable = Drawn(rules.resumable, seed, "resumable", True)
        self.copies = Random(f"{seed} copies")
        self.known: dict[tuple[int, int | None], ShapeProblem | None] = {}

    def make(self, job: Job, times: float) -> Iterator[tuple[Workload, int]]:
        """None where it cannot be replayed, which is counted; several with a larger demand.

        Every draw is made whatever becomes of the job.
        """
        ruled_ms, resumable, leaf = self.runtimes.of(job), self.resumable.of(job), None
        try:
            leaf = self.leaves.of(job)
            workload = self._workload(job, leaf, ruled_ms, resumable)
        except Odd as odd:
            self.stream.oddities.add(odd.kind, job.line, odd.detail)
            if leaf is not None:
                self.stream.skipped[leaf] = self.stream.skipped.get(leaf, 0) + 1
            return
        self._declare(job, workload)
        if times == 1:
            yield workload, job.run_ms
            return
        whole, part = divmod(times, 1)
        for n in range(int(whole) + (self.copies.random() < part)):
            later = self.copies.randrange(COPY_WITHIN_MS) if n else 0
            copy = replace(workload, id=WorkloadId(f"{job.id}+{n}"), submitted_at=job.submitted_at + later)
            yield (copy if n else workload), job.run_ms

    def _declare(self, job: Job, workload: Workload) -> None:
        """Counts what the log does not say of it."""
        lacks = {
            "min_runtime": job.min_runtime_ms is None,
            "resumable": job.resumable is None,
            "hosts": workload.hosts is not None and workload.hosts != job.hosts,
        }
        for attribute, is_lacking in lacks.items():
            if is_lacking:
                self.stream.declared[attribute] = self.stream.declared.get(attribute, 0) + 1

    def _workload(self, job: Job, leaf: BudgetId, ruled_ms: int, resumable: bool) -> Workload:
        """Raises Odd."""
        hosts, per_host = self._shape(job)
        workload = Workload(
            WorkloadId(job.id),
            leaf,
            job.gpus,
            self._min_runtime(job, ruled_ms),
            job.submitted_at,
            job.user,
            priority=job.priority,
            hosts=hosts,
            gpus_per_host=per_host,
            resumable=resumable if job.resumable is None else job.resumable,
            on_preempt=OnPreempt.RESTART if self.rules.restarts else OnPreempt.END,
            time_limit_ms=job.limit_ms if job.limit_ms and job.run_ms <= job.limit_ms else None,
        )
        self._check_shape(workload)
        return workload

    def _min_runtime(self, job: Job, ruled_ms: int) -> int:
        """A rule's value is held within the bounds; the log's own is as it is, or the job is left out."""
        low, high = self.policy.min_runtime_min_ms, self.policy.min_runtime_max_ms
        if job.min_runtime_ms is None:
            return min(max(ruled_ms, low), high) if ruled_ms else 0
        if job.min_runtime_ms and not low <= job.min_runtime_ms <= high:
            said = f"{job.id} declares {format_span(job.min_runtime_ms)}"
            raise Odd("outside_bounds", f"{said}, not {format_span(low)} to {format_span(high)}")
        return job.min_runtime_ms

    def _shape(self, job: Job) -> tuple[int | None, int | None]:
        """On as many hosts as the log says; else, where rule 16 would refuse, evenly on as few as divide it."""
        gpus, hosts, largest = job.gpus, job.hosts, self.sizes[0]
        if gpus > self.total:
            raise Odd("too_large", f"{job.id} asks for {count(gpus, 'GPU')} of {self.total}")
        if self.rules.trusts_hosts and hosts and hosts > 1 and gpus % hosts == 0 and gpus // hosts <= largest:
            return hosts, gpus // hosts
        if gpus <= largest or any(gpus % size == 0 for size in self.sizes):
            return None, None
        number = next(n for n in range(-(-gpus // largest), gpus + 1) if gpus % n == 0)
        return number, gpus // number

    def _check_shape(self, workload: Workload) -> None:
        alike = (workload.gpus, workload.hosts)
        if alike not in self.known:
            self.known[alike] = shape_problem(workload, self.hosts)
        problem = self.known[alike]
        if problem is not None:
            kind = "too_large" if problem.kind is Misfit.TOO_FEW_HOSTS else "no_shape"
            raise Odd(kind, f"{workload.id}: {problem.text}")
