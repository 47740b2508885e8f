"""What a leader refuses of what it is asked, before it becomes part of the journal."""

from __future__ import annotations

from typing import Any

from scheduler_core.hosttable import declare_refusal
from scheduler_core.observations import HostDeclared, WorkloadMoved, WorkloadSubmitted
from scheduler_core.state import ClusterState
from scheduler_core.workload import Workload


def refusal(state: ClusterState, asked: Any) -> str:
    """Why nothing could come of it, for the one who asked; empty where it may be journalled.

    Plans check much more, on the asking side; between a plan and its request things can vanish.
    """
    host, workload = getattr(asked, "host", None), getattr(asked, "workload", None)
    if host is not None and host not in state.hosts:
        return f"no host {host!r}"
    if isinstance(asked, HostDeclared):
        record = state.hosts[asked.host]
        why = declare_refusal(asked.what, record.state, record.reach, bool(record.runs), bool(record.foreign))
        return f"{host}: {why}" if why else ""
    if isinstance(asked, WorkloadSubmitted):
        return _taken(state, asked.workload) or _budget(state, asked.workload.budget)
    if workload is not None and workload not in state.workloads:
        return f"no workload {workload!r}"
    if isinstance(asked, WorkloadMoved) and asked.budget is not None:
        return _budget(state, asked.budget)
    return ""


def _taken(state: ClusterState, asked: Workload) -> str:
    """The same submission may come twice, and counts once; another under its id would vanish."""
    known = state.workloads.get(asked.id)
    if known is None or known.workload.submitted_at == asked.submitted_at:
        return ""
    return f"the id {asked.id!r} is taken; submit it once more under another"


def _budget(state: ClusterState, budget: Any) -> str:
    if budget not in state.budgets.by_id:
        return f"no budget {budget!r}"
    return "" if budget in state.budgets.leaves else f"budget {budget!r} has children: only leaves hold workloads"
