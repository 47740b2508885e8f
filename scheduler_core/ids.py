"""Names of things. Distinct types, so that a host name is never handed over as a workload id."""

from typing import NewType

BudgetId = NewType("BudgetId", str)  # stays when a budget is renamed or moved
WorkloadId = NewType("WorkloadId", str)
RunId = NewType("RunId", str)  # WORKLOAD~ATTEMPT, or WORKLOAD~ATTEMPT.DAY: the token that a host starts at most once
HostName = NewType("HostName", str)
DrainId = NewType("DrainId", str)
CommandId = NewType("CommandId", str)

ROOT = BudgetId("")  # parent of the top-level budgets; holds no workloads and is never shown


def run_id(workload: WorkloadId, attempt: int, day: int = 0) -> RunId:
    """The id of one attempt, from 1. A retry after any start is a new attempt, so ids never repeat.

    Nor do they when somebody takes the id of a workload again that was forgotten: it cannot be the same `day`
    (`state.ClusterState.day`). Hosts answer a token that they know with what became of it then.
    """
    return RunId(f"{workload}~{attempt}.{day}" if day else f"{workload}~{attempt}")
