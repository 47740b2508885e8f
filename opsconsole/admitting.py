"""What a leader refuses of what it is asked, before it becomes part of the journal as if something had come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core.hosttable import HostEvent, declare_refusal
from scheduler_core.observations import (
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostDeclared,
    ReleaseRequested,
    RequestRefused,
    RequeueRequested,
    UndrainRequested,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.proposals import refusal_now
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.workload import Workload, WorkloadPhase


def refusal(state: ClusterState, asked: Any) -> str:
    """Why nothing could come of it, for the one who asked; empty where it may be journalled.

    Plans say so too, on the asking side; between a plan and its request others may be faster.
    """
    host, workload, budget = (getattr(asked, name, None) for name in ("host", "workload", "budget"))
    if isinstance(asked, WorkloadSubmitted):
        return _taken(state, asked.workload) or _leaf(state, asked.workload.budget)
    if host is not None and host not in state.hosts:
        return f"no host {host!r}"
    if workload is not None and workload not in state.workloads:
        return f"no workload {workload!r}"
    if budget is not None and budget not in state.budgets.by_id:
        return f"no budget {budget!r}"
    why = _NOW[type(asked)](state, asked) if type(asked) in _NOW else ""
    return f"{host or workload}: {why}" if why else ""


def record_of(asked: Any, why: str) -> RequestRefused | None:
    """For the timeline. None for what does not say who asked."""
    kind = type(asked).__name__
    if isinstance(asked, WorkloadSubmitted):
        return RequestRefused(kind, asked.workload.id, why, By(asked.workload.owner or "nobody"))
    return RequestRefused(kind, subject_of(asked), why, asked.by) if hasattr(asked, "by") else None


def subject_of(asked: Any) -> str:
    """The host, workload or budget that it is about; empty where it is about none."""
    if isinstance(asked, WorkloadSubmitted):
        return asked.workload.id
    return next((str(at) for name in ("host", "workload", "budget") if (at := getattr(asked, name, None))), "")


def _taken(state: ClusterState, asked: Workload) -> str:
    """The same submission may come twice, and counts once; another under its id would vanish."""
    known = state.workloads.get(asked.id)
    if known is None or known.workload.submitted_at == asked.submitted_at:
        return ""
    return f"the id {asked.id!r} is taken; submit it once more under another"


def _leaf(state: ClusterState, budget: Any) -> str:
    if budget not in state.budgets.by_id:
        return f"no budget {budget!r}"
    return "" if budget in state.budgets.leaves else f"budget {budget!r} has children: only leaves hold workloads"


# -- what has become of it since it was planned --------------------------------------------------------------------


def _declared(state: ClusterState, asked: HostDeclared) -> str:
    record = state.hosts[asked.host]
    return declare_refusal(asked.what, record.state, record.reach, bool(record.runs), bool(record.foreign))


def _moved(state: ClusterState, asked: WorkloadMoved) -> str:
    return _live(state.workloads[asked.workload]) or (_leaf(state, asked.budget) if asked.budget is not None else "")


def _live(record: WorkloadRecord) -> str:
    return "it has ended" if record.phase is WorkloadPhase.ENDED else ""


def _stoppable(state: ClusterState, record: WorkloadRecord) -> str:
    if record.run is None:
        return f"it is {record.phase.value}: there is no run to stop"
    return "it stops already" if state.runs[record.run].stop is not None else ""


def _table(event: HostEvent) -> Callable[[ClusterState, Any], str]:
    return lambda state, asked: refusal_now(state, asked.host, event)


def _phase(wanted: WorkloadPhase) -> Callable[[ClusterState, Any], str]:
    def why(state: ClusterState, asked: Any) -> str:
        now = state.workloads[asked.workload].phase
        return "" if now is wanted else f"it is {now.value}, not {wanted.value}"

    return why


_NOW: dict[type, Callable[[ClusterState, Any], str]] = {
    CancelRequested: lambda state, asked: _live(state.workloads[asked.workload]),
    RequeueRequested: lambda state, asked: _stoppable(state, state.workloads[asked.workload]),
    HoldRequested: _phase(WorkloadPhase.WAITING),
    ReleaseRequested: _phase(WorkloadPhase.HELD),
    WorkloadMoved: _moved,
    CordonRequested: _table(HostEvent.CORDON),
    DrainRequested: _table(HostEvent.DRAIN),
    UndrainRequested: _table(HostEvent.UNDRAIN),
    HostDeclared: _declared,
}
