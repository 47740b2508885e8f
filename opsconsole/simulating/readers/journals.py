"""Our own journal as a log: what was submitted, and for how long it ran. Rows are workloads; a line is a row of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from opsconsole.simulating.job import Job, Log
from opsconsole.simulating.oddities import Oddities
from opsconsole.store.store import Store
from scheduler_core.budget import BudgetTree
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import (
    InventoryLoaded,
    MemberReleased,
    MemberStarted,
    Observation,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.workload import Workload

SQLITE = b"SQLite format 3\0"


def is_journal(path: str) -> bool:
    if path == "-":
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def read_journal(path: str) -> Log:
    """Budgets and policy are those that counted last. Raises StoreError."""
    history, log = _History(), Log(path, "opsconsole journal")
    store = Store(Path(path), read_only=True)
    try:
        seq = 0
        while events := store.tail(seq):
            for event in events:
                if event.role == "observation" and event.kind in KINDS:
                    history.hear(event.seq, event.at_ms, event.value)
            seq, history.now = events[-1].seq, events[-1].at_ms
    finally:
        store.close()
    if history.inventory is not None:
        log.tree, log.policy = BudgetTree.of(history.inventory.budgets), history.inventory.policy
    found = [history.job(wid, log.oddities, log.tree) for wid in history.workloads]
    log.jobs = sorted((job for job in found if job is not None), key=lambda job: job.submitted_at)
    log.rows = len(found)
    return log


KINDS = ("InventoryLoaded", "WorkloadSubmitted", "WorkloadMoved", "MemberStarted", "MemberReleased")


@dataclass
class _Run:
    """Instants on the cluster's clock: when its last member started, and when its last one was gone."""

    started_at: int
    gone: dict[HostName, int] = field(default_factory=dict)
    members: dict[HostName, None] = field(default_factory=dict)


@dataclass
class _History:
    """What the journal says of each workload, by its newest submission. Runs of one submitted earlier are left out."""

    now: int = 0
    inventory: InventoryLoaded | None = None
    workloads: dict[WorkloadId, tuple[int, Workload]] = field(default_factory=dict)
    runs: dict[WorkloadId, dict[RunId, _Run]] = field(default_factory=dict)

    def hear(self, seq: int, at: int, event: Observation) -> None:
        match event:
            case InventoryLoaded():
                self.inventory = event
            case WorkloadSubmitted(w):
                self.workloads[w.id] = (seq, replace(w, submitted_at=min(at, w.submitted_at or at)))
                self.runs[w.id] = {}
            case WorkloadMoved(workload=wid) if wid in self.workloads:
                number, w = self.workloads[wid]
                priority = w.priority if event.priority is None else event.priority
                self.workloads[wid] = (number, replace(w, budget=event.budget or w.budget, priority=priority))
            case MemberStarted(run, host, ran_ms):
                self._started(run, host, at - ran_ms)
            case MemberReleased(run, host, ago_ms):
                self._gone(run, host, at - ago_ms)

    def _started(self, run: RunId, host: HostName, at: int) -> None:
        runs = self.runs.get(WorkloadId(run.rpartition("~")[0]))
        if runs is not None:
            known = runs.setdefault(run, _Run(at))
            known.members[host] = None
            known.started_at = max(known.started_at, at)

    def _gone(self, run: RunId, host: HostName, at: int) -> None:
        known = self.runs.get(WorkloadId(run.rpartition("~")[0]), {}).get(run)
        if known is not None:
            known.gone.setdefault(host, at)

    def job(self, wid: WorkloadId, oddities: Oddities, tree: BudgetTree | None) -> Job | None:
        """Of one that can resume all its runs count, of another the last. None where none ran, which is counted."""
        line, w = self.workloads[wid]
        runs = list(self.runs[wid].values())
        if not runs:
            oddities.add("never_ran", line, wid)
            return None
        if len(runs[-1].gone) < len(runs[-1].members):
            oddities.add("still_running", line, wid)
        counted = runs if w.resumable else runs[-1:]
        ends = [max(run.gone.values()) if len(run.gone) >= len(run.members) else self.now for run in counted]
        run_ms = sum(max(0, end - run.started_at) for run, end in zip(counted, ends, strict=True))
        path = tree.paths.get(w.budget, w.budget) if tree is not None else w.budget
        return Job(
            str(wid),
            w.submitted_at,
            w.gpus,
            run_ms,
            line,
            user=w.owner,
            hosts=w.hosts,
            limit_ms=w.time_limit_ms,
            min_runtime_ms=w.min_runtime_ms,
            resumable=w.resumable,
            budget=str(path),
            priority=w.priority,
        )
