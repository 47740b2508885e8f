"""Hosts that know more than the journal: an older copy of the store was put back, or a part of it was lost.

A workload whose later attempt a host knows may run there, or have ended there: it must not simply start again. It is
held, with the reason, until a person has looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.ids import WorkloadId, run_id
from scheduler_core.observations import By, HoldRequested, HostDeclared, HostFenced, HostSeen, Observation
from scheduler_core.state import ClusterState
from scheduler_core.workload import WorkloadPhase

LEADER = "the leader"


@dataclass
class Ahead:
    """Of one term. Each token is a reason once: after a person's release it is none."""

    store_id: str
    reasons: dict[WorkloadId, str] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def hear(self, state: ClusterState, host: str, run: Any) -> None:
        """A RUN of the agent protocol."""
        if not isinstance(run, dict) or run.get("store") != self.store_id:
            return
        wid, attempt, token = WorkloadId(str(run.get("workload"))), run.get("attempt"), str(run.get("token"))
        record = state.workloads.get(wid)
        if record is None or not isinstance(attempt, int) or attempt <= record.attempt or token in self._known:
            return
        if token == run_id(wid, attempt, record.day):
            self._known.add(token)
            self.reasons[wid] = f"{host} has started {token}, which the journal does not know: look there first"

    def holds(self, state: ClusterState, coming: Sequence[Observation]) -> Iterator[HoldRequested]:
        """To be applied behind what is `coming`, so that nothing that it sets free starts in the same tick."""
        for wid, why in list(self.reasons.items()):
            record = state.workloads.get(wid)
            if record is None or record.phase in (WorkloadPhase.HELD, WorkloadPhase.ENDED):
                del self.reasons[wid]
            elif record.phase is WorkloadPhase.WAITING or any(_may_free(o, record.run) for o in coming):
                yield HoldRequested(wid, By(LEADER, why))


def _may_free(observation: Observation, run: object) -> bool:
    of_host = isinstance(observation, HostSeen | HostFenced | HostDeclared)
    return of_host or getattr(observation, "run", None) == run
