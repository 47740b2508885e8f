"""The four actions of a quota scheduler on a small cluster (KAI): allocate, consolidate, reclaim, preempt.

Each goes through what waits, in line; for a job, victims are added one by one until it fits and the rules allow it. Who
still fits afterwards keeps its GPUs or moves, and is no victim. What an action has placed stays, what it has evicted
starts in no later one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from scheduler_core.shares.quota_cluster import Job, Places, QuotaCluster
from scheduler_core.shares.reclaim import Reclaimer, Victim, can_reclaim, is_candidate, may_reclaim
from scheduler_core.shares.trees import branches

Action = Literal["allocate", "consolidation", "reclaim", "preempt"]


class Fate(StrEnum):
    """What became of a job by the action."""

    RUNNING = "running"
    MOVED = "moved"
    EVICTED = "evicted"
    PENDING = "pending"
    PLACED = "placed"
    PLACED_AFTER_RELEASE = "placed after release"


@dataclass(frozen=True, slots=True)
class Outcome:
    fate: Fate
    places: Places = ()


@dataclass(frozen=True, slots=True)
class _Trial:
    """A way to start a job: where everybody would run, and who would not any more."""

    running: Mapping[str, Places]
    evicted: tuple[str, ...]
    moved: tuple[str, ...]


class QuotaActions:
    """Actions on one cluster, one after the other."""

    def __init__(self, cluster: QuotaCluster) -> None:
        self._cluster = cluster
        self._outcomes = {
            name: Outcome(Fate.RUNNING, cluster.running[name]) if name in cluster.running else Outcome(Fate.PENDING)
            for name in cluster.jobs
        }

    def run(self, action: Action) -> dict[str, Outcome]:
        """What became of each job by this action and those before it."""
        attempt: Callable[[Job], None] = {
            "allocate": self._allocate,
            "consolidation": self._consolidate,
            "reclaim": self._reclaim,
            "preempt": self._preempt,
        }[action]
        left = [name for name, outcome in self._outcomes.items() if outcome.fate is Fate.PENDING]
        while left:
            name = self._cluster.first_in_line(left)
            left.remove(name)
            attempt(self._cluster.jobs[name])
        return dict(self._outcomes)

    def _allocate(self, job: Job) -> None:
        if self._cluster.admit(job.id):
            self._outcomes[job.id] = Outcome(Fate.PLACED, self._cluster.running[job.id])

    def _consolidate(self, job: Job) -> None:
        """Others only move."""
        if job.preemptible:
            self._solve(job, self._preemptible(), lambda trial, part: not trial.evicted)

    def _reclaim(self, job: Job) -> None:
        """From other queues, by their shares."""
        jobs, holdings = self._cluster.jobs, self._cluster.holdings()
        wanted = Reclaimer(job.queue, job.total, job.preemptible)
        if not can_reclaim(holdings[job.queue], wanted):
            return

        def open_to_it(victim: str) -> bool:
            ours, theirs = branches(holdings, job.queue, jobs[victim].queue)
            return is_candidate(holdings[ours], holdings[theirs], job.total)

        def allowed(trial: _Trial, part: Job) -> bool:
            victims = [Victim(jobs[name].queue, jobs[name].total) for name in trial.evicted]
            return may_reclaim(holdings.values(), replace(wanted, request=part.total), victims)

        others = [name for name in self._preemptible() if jobs[name].queue != job.queue and open_to_it(name)]
        self._solve(job, others, allowed)

    def _preempt(self, job: Job) -> None:
        """From jobs of its own queue with lower priority."""
        own = [self._cluster.jobs[name] for name in self._preemptible() if self._cluster.jobs[name].queue == job.queue]
        lower = [other.id for other in own if other.priority < job.priority]
        self._solve(job, lower, lambda trial, part: True)

    def _preemptible(self) -> list[str]:
        """What may go or move: preemptible, and running since before the first action."""
        settled = (Fate.PLACED, Fate.PLACED_AFTER_RELEASE)
        running = [name for name in self._cluster.running if self._outcomes[name].fate not in settled]
        return [name for name in running if self._cluster.jobs[name].preemptible]

    def _solve(self, job: Job, candidates: list[str], allowed: Callable[[_Trial, Job], bool]) -> None:
        """Task by task: the victims of the first tasks stay victims for the next. Commits what it finds."""
        settled: tuple[str, ...] = ()
        found: _Trial | None = None
        line = self._cluster.to_lose(candidates)
        for tasks in range(1, job.tasks + 1):
            part = replace(job, tasks=tasks)
            found = self._solve_part(part, settled, line, allowed)
            if found is None:
                return
            settled = (*found.evicted, *found.moved)
        if found is not None:
            self._commit(job, found)

    def _solve_part(
        self, part: Job, settled: tuple[str, ...], candidates: list[str], allowed: Callable[[_Trial, Job], bool]
    ) -> _Trial | None:
        """The first set of victims with which this many tasks start: one more of them each time, node by node."""
        trials = [settled] if settled else []
        potential: list[str] = []
        for victim in (name for name in candidates if name not in settled):
            potential.append(victim)
            for node in dict.fromkeys(self._cluster.running[victim]):
                trials.append((*settled, *(name for name in potential if node in self._cluster.running[name])))
        for victims in trials:
            trial = self._try(part, victims)
            if trial is not None and allowed(trial, part):
                return trial
        return None

    def _try(self, part: Job, victims: tuple[str, ...]) -> _Trial | None:
        """Everybody involved placed anew, in line; None where the job itself finds no place."""
        before = self._cluster.running
        trial = self._cluster.when({name: at for name, at in before.items() if name not in victims}, part)
        left = [part.id, *victims]
        while left:
            name = trial.first_in_line(left)
            left.remove(name)
            if not trial.admit(name, before.get(name, ())) and name == part.id:
                return None
        after = trial.running
        moved = tuple(name for name in victims if name in after and after[name] != before[name])
        return _Trial(after, tuple(name for name in victims if name not in after), moved)

    def _commit(self, job: Job, trial: _Trial) -> None:
        self._cluster = self._cluster.when(trial.running)
        self._outcomes |= {name: Outcome(Fate.EVICTED) for name in trial.evicted}
        self._outcomes |= {name: Outcome(Fate.MOVED, trial.running[name]) for name in trial.moved}
        self._outcomes[job.id] = Outcome(Fate.PLACED_AFTER_RELEASE, trial.running[job.id])
