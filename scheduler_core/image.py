"""The whole state as plain typed data, for snapshots: what is derived is left out and made again."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.decisions import StopDecided
from scheduler_core.ids import BudgetId, DrainId, HostName, RunId, WorkloadId
from scheduler_core.observations import AutoDrainProposed, By
from scheduler_core.policy import Policy
from scheduler_core.rebuilding import rebuild
from scheduler_core.state import ClusterState, DrainRecord, Failure, HostRecord, Run, WeightByHand, WorkloadRecord
from scheduler_core.timers import rebuild_timers
from scheduler_core.usage import Ledgers


@dataclass(slots=True)
class StateImage:
    """Shares its records with the state it was taken from: encode it before the state moves on."""

    now: int
    policy: Policy
    budgets: tuple[Budget, ...]
    hosts: dict[HostName, HostRecord]
    workloads: dict[WorkloadId, WorkloadRecord]
    runs: dict[RunId, Run]
    drains: dict[DrainId, DrainRecord]
    ledgers: Ledgers
    wanted: dict[RunId, StopDecided]
    proposals: dict[HostName, AutoDrainProposed]
    failures: list[Failure]
    auto_moves: list[int]
    preempted: list[tuple[int, int]]
    tripped: dict[str, None]
    blast_blocked: dict[WorkloadId, int]
    last_pass_at: int | None
    dirty: bool
    began_at: int = 0
    allowed: dict[str, None] = field(default_factory=dict)
    strays: list[tuple[RunId, HostName]] = field(default_factory=list)
    standings_read_at: int | None = None
    weights: dict[BudgetId, WeightByHand] = field(default_factory=dict)
    cordons_end: dict[HostName, int] = field(default_factory=dict)
    holds_end: dict[WorkloadId, int] = field(default_factory=dict)
    parted: dict[HostName, By] = field(default_factory=dict)
    heeded: dict[HostName, tuple[str, ...]] = field(default_factory=dict)


def to_image(state: ClusterState) -> StateImage:
    values = {f.name: getattr(state, f.name) for f in fields(StateImage) if f.name != "budgets"}
    return StateImage(budgets=state.budgets.budgets, **values)


def from_image(image: StateImage) -> ClusterState:
    """The state again, ready to step."""
    values = {f.name: getattr(image, f.name) for f in fields(StateImage) if f.name != "budgets"}
    state = ClusterState(budgets=BudgetTree.of(image.budgets), **values)
    rebuild(state)
    rebuild_timers(state)
    return state
