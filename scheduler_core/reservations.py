"""What is reserved (rule 21), as one pass sees it: for whom, from when on, and to whom it is closed until then.

A reservation is frozen when it is made. Until its instant others may have its GPUs if they end or lose their protection
before, the longest start counted in; from then on they yield, whatever the balances say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler_core.decisions import Reserved
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState, Run
from scheduler_core.workload import Workload

Masks = Mapping[HostName, int]  # of slots
NOTHING: Masks = {}


def victims_wait_ms(policy: Policy) -> int:
    """So long a claim may wait for its victims before its GPUs are free, or leaked (rules 13, 19), or lost (27)."""
    return policy.checkpoint_grace_ms + policy.stop_grace_ms + policy.stop_deadline_ms + policy.lost_after_ms


def yields_at(state: ClusterState, run: Run) -> int:
    """From when on the run has ended by its limit, or may be stopped, at the latest."""
    return _begun_at(state, run) + state.workloads[run.workload].workload.yields_after_ms


def limit_ends_at(state: ClusterState, run: Run) -> int | None:
    """When the run has ended by its declared limit, at the latest; None without one."""
    limit_ms = state.workloads[run.workload].workload.time_limit_ms
    return None if limit_ms is None else _begun_at(state, run) + limit_ms


def _begun_at(state: ClusterState, run: Run) -> int:
    return run.placed_at + state.policy.start_timeout_ms if run.started_at is None else run.started_at


class Reservations:
    """Those of one pass: what the state has, less what the pass uses, and what it adds."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.all: dict[WorkloadId, Reserved] = {}
        for wid in state.index.reservations:
            if (made := state.workloads[wid].reserved) is not None:
                self.all[wid] = made
        self.used: dict[WorkloadId, None] = {}  # whose turn this pass was
        self._wait_ms = victims_wait_ms(state.policy)
        self._closed: dict[tuple[WorkloadId, ...], Masks] = {}

    def due(self) -> list[Reserved]:
        """Those whose instant has come, the earliest first."""
        return sorted((r for r in self.all.values() if r.at <= self.state.now), key=lambda r: (r.at, r.workload))

    def closed_to_claim(self, workload: Workload) -> Masks:
        """The slots that the workload may not have, if it has to wait for victims first."""
        return self.closed_to(workload, self._wait_ms) if self.all else NOTHING

    def closed_to(self, workload: Workload, wait_ms: int = 0) -> Masks:
        """The slots that the workload may not have, if it starts within `wait_ms` and `start_timeout` of now."""
        if not self.all or not workload.allocated:
            return NOTHING
        yields_at = self.state.now + wait_ms + self.state.policy.start_timeout_ms + workload.yields_after_ms
        whose = tuple(w for w, reserved in self.all.items() if reserved.at < yields_at and w != workload.id)
        if (known := self._closed.get(whose)) is None:
            known = self._closed[whose] = self._masks(whose)
        return known

    def others(self, wid: WorkloadId) -> Masks:
        """All slots that are reserved for others."""
        return self._masks(w for w in self.all if w != wid)

    def _masks(self, whose: Iterator[WorkloadId] | tuple[WorkloadId, ...]) -> Masks:
        masks: dict[HostName, int] = {}
        for wid in whose:
            for member in self.all[wid].members:
                masks[member.host] = masks.get(member.host, 0) | member.slots
        return masks

    def use(self, wid: WorkloadId) -> bool:
        """It starts, here or elsewhere. True where there was one."""
        if wid not in self.all:
            return False
        self.drop(wid)
        self.used[wid] = None
        return True

    def drop(self, wid: WorkloadId) -> None:
        """It has ended."""
        del self.all[wid]
        self._closed.clear()
