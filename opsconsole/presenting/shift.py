"""The span of time that is handed over: the picture at its end, what happened in it, and whose a run is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.view import ClusterView, Happening
from scheduler_core.ids import RunId, WorkloadId
from scheduler_core.observations import By, WorkloadSubmitted
from scheduler_core.state import ClusterState
from scheduler_core.workload import Workload

E = TypeVar("E")


def zoned(wall_ms: int) -> str:
    """Day and time in the reader's zone, which it names."""
    return datetime.fromtimestamp(wall_ms / 1000).astimezone().strftime("%a %d %b %H:%M %Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """`about`: a host, run, budget. `wall_ms`: when it happened or since when it is so. `data`: more for scripts."""

    about: str
    said: str
    wall_ms: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shift:
    """The span that is handed over. `happenings`, oldest first."""

    view: ClusterView
    since_ms: int
    happenings: Sequence[Happening]

    @property
    def state(self) -> ClusterState:
        return self.view.state

    def of(self, kind: type[E]) -> Iterator[tuple[Happening, E]]:
        return ((h, h.event) for h in self.happenings if isinstance(h.event, kind))

    def workload(self, name: WorkloadId) -> Workload | None:
        """From the state; or, once that has forgotten it, from its submission."""
        record = self.state.workloads.get(name)
        return record.workload if record is not None else self._submitted.get(name)

    @cached_property
    def _submitted(self) -> dict[WorkloadId, Workload]:
        return {event.workload.id: event.workload for _, event in self.of(WorkloadSubmitted)}

    def whose(self, run: RunId) -> dict[str, Any]:
        """Workload, name, owner and budget of a run, as far as they are known."""
        wid = WorkloadId(run.rpartition("~")[0])
        w = self.workload(wid)
        if w is None:
            return {"workload": wid, "name": "", "owner": "", "budget": ""}
        budget = self.state.budgets.paths.get(w.budget, w.budget)
        return {"workload": w.id, "name": w.name, "owner": w.owner, "budget": budget}


def of_whom(whose: dict[str, Any]) -> str:
    """`eval-mmlu (w5) of ben, olmo/eval`."""
    label = workload_label(WorkloadId(whose["workload"]), whose["name"])
    return f"{label} of {whose['owner'] or 'nobody'}, {whose['budget'] or 'a budget that is not known any more'}"


def by_whom(by: By | None) -> str:
    """For people; `who` is the same for scripts."""
    if by is None:
        return "nobody who said so"
    return f"{by.actor}: {by.reason}" if by.reason else f"{by.actor}, who gave no reason"


def who(by: By | None) -> dict[str, Any]:
    return {"by": by.actor if by else "", "reason": by.reason if by else ""}
