"""The contract (rules 10 to 13): how long a run is protected, and the instants by which things must have happened.

Durations here come from the records and the policy of the moment; nothing is decided. What cannot be known (a run that
has not wholly started, a host that cannot be asked) is None, and never an instant that would let somebody act.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.budget import BudgetTree
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.fleet import Reach
from scheduler_core.ids import BudgetId, HostName
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState, MemberPhase, Run
from scheduler_core.units import GPU, MINUTE

REPORT_GRACE_MS = 1 * MINUTE  # so long a host that answers again may take to tell what became of its runs
RETURN_GRACE_MS = 2 * MINUTE  # so long after one host the others may come back: links try at least once a minute
OWN_WORD = (StopCause.CANCEL, StopCause.START_TIMEOUT, StopCause.TIME_LIMIT, StopCause.GANG_BROKEN)


@dataclass(frozen=True, slots=True)
class MinRuntimeRefused:
    """Why a min runtime is not accepted. Spans in ms; both bounds are named (rule 10)."""

    text: str
    low_ms: int
    high_ms: int


def min_runtime(declared_ms: int | None, leaf: BudgetId, tree: BudgetTree, policy: Policy) -> int | MinRuntimeRefused:
    """Rule 10: declared, else inherited; refused outside the bounds, and where nobody gave one. 0 is unallocated."""
    low, high = policy.min_runtime_min_ms, policy.min_runtime_max_ms
    value = tree.min_runtime_default_ms(leaf) if declared_ms is None else declared_ms
    if value is None:
        return MinRuntimeRefused("no min runtime is declared, and no budget above sets a default", low, high)
    if value and not low <= value <= high:
        return MinRuntimeRefused(f"a min runtime of {value} ms is outside {low} to {high} ms", low, high)
    return value


def remaining_ms(run: Run, now: int) -> int | None:
    """How much longer the run is protected; 0 when it is not, None while nobody can know (rule 11)."""
    if not run.allocated:
        return 0
    until = run.protected_until()
    return None if until is None else max(0, until - now)


def breaks_contract(run: Run, stop: StopDecided, at: int) -> bool:
    """Would this stop break rule 11? Owner, broken host and an operator's explicit override may; nothing else."""
    return run.protected(at) and not stop.override and stop.cause not in OWN_WORD


def guarded_ms(run: Run, stop: StopDecided) -> int:
    """What the host itself must have seen the run run for before it accepts the stop: the contract's second guard."""
    return 0 if stop.override or stop.cause in OWN_WORD else run.min_runtime_ms


# -- stopping (rule 13) -------------------------------------------------------------------------------------------


def checkpoint_grace_ms(state: ClusterState, run: Run) -> int:
    """Only where a checkpoint is declared; without one SIGTERM comes at once."""
    launch = state.workloads[run.workload].workload.launch
    return state.policy.checkpoint_grace_ms if launch.checkpoint_signal or launch.checkpoint_argv else 0


def graces_ms(state: ClusterState, run: Run) -> int:
    """From the stop until SIGKILL, at the latest."""
    return checkpoint_grace_ms(state, run) + state.policy.stop_grace_ms


def kill_at(state: ClusterState, run: Run) -> int:
    """When SIGKILL is due at the latest, for a run that stops."""
    return (run.stop_at or 0) + graces_ms(state, run)


def leaks_at(state: ClusterState, run: Run, name: HostName) -> int | None:
    """When what this member still holds counts as leaked; None where the host cannot be asked.

    A host that was out of reach heard of the stop when it answered again, and not before.
    """
    host = state.hosts[name]
    if host.reach not in (Reach.FRESH, Reach.STALE) or not run.members[name].phase.holds_gpus:
        return None
    heard_at = max(run.stop_at or 0, host.answers_since)
    return max(heard_at + graces_ms(state, run) + state.policy.stop_deadline_ms, host.reach_since + REPORT_GRACE_MS)


def lost_gpu_ms(state: ClusterState, run: Run) -> int:
    """Work lost if the run stops now: since its last checkpoint, or all of it where it cannot resume (rule 18)."""
    since = run.started_at if run.started_at is not None else state.now
    if run.checkpoint_at is not None and state.workloads[run.workload].workload.resumable:
        since = max(since, run.checkpoint_at)
    return run.gpus * GPU * max(0, state.now - since)


# -- gangs (rule 27) -----------------------------------------------------------------------------------------------


def gang_breaks_at(state: ClusterState, run: Run) -> int | None:
    """When the reachable members of a gang stop, because a host of it is lost; None where none is, or all are.

    An outage of our own breaks no gang: the first hosts that answer again wait for the others.
    """
    if len(run.members) == 1:
        return None
    hosts = [state.hosts[name] for name, member in run.members.items() if not member.phase.gone]
    lost = [host.reach_since for host in hosts if host.reach is Reach.LOST]
    answer = [host.answers_since for host in hosts if host.reach in (Reach.FRESH, Reach.STALE)]
    return max(min(lost), min(answer) + RETURN_GRACE_MS) if lost and answer else None


# -- starting (rule 11) -------------------------------------------------------------------------------------------


def start_times_out_at(state: ClusterState, run: Run) -> int | None:
    """When the start has taken too long; None while a host that could have started it cannot be asked.

    Such a member may run, protected: its host has the time to say so when it answers again.
    """
    due = run.placed_at + state.policy.start_timeout_ms
    for name, member in run.members.items():
        if member.phase is MemberPhase.DISPATCHED:
            host = state.hosts[name]
            if host.reach not in (Reach.FRESH, Reach.STALE):
                return None
            due = max(due, host.reach_since + REPORT_GRACE_MS)
    return due
