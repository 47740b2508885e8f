"""What people submit, and one attempt at it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.ids import BudgetId, WorkloadId


class OnPreempt(StrEnum):
    """What a preempted workload that is not resumable wants (rule 14)."""

    END = "end"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Launch:
    """How the host starts and checkpoints it. The core carries it and never looks inside."""

    argv: tuple[str, ...] = ()
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    checkpoint_signal: str | None = None
    checkpoint_argv: tuple[str, ...] = ()
    log_bytes_max: int = 64 * 1024 * 1024
    stop_target: str = "tree"  # who gets SIGTERM: main, group, tree


@dataclass(frozen=True, slots=True)
class Workload:
    """The unit of scheduling, as submitted; never changed afterwards but for `budget` and `priority`.

    `gpus` counts whole GPUs over all hosts. A declared shape has `hosts` and `gpus_per_host` with
    hosts x gpus_per_host == gpus; without one, rule 16 chooses. `needs` are host labels that must match.
    `min_runtime_ms` 0 is unallocated.
    """

    id: WorkloadId
    budget: BudgetId
    gpus: int
    min_runtime_ms: int
    submitted_at: int
    owner: str = ""
    name: str = ""
    priority: int = 0
    hosts: int | None = None
    gpus_per_host: int | None = None
    needs: tuple[tuple[str, str], ...] = ()
    resumable: bool = False
    on_preempt: OnPreempt = OnPreempt.END
    max_retries: int | None = None
    time_limit_ms: int | None = None
    launch: Launch = Launch()

    @property
    def allocated(self) -> bool:
        return self.min_runtime_ms > 0

    @property
    def yields_after_ms(self) -> int:
        """So long after its start it has ended by its limit, or may be stopped: rule 21 reckons with that."""
        return self.min_runtime_ms if self.time_limit_ms is None else min(self.min_runtime_ms, self.time_limit_ms)

    @property
    def comes_back(self) -> bool:
        """Waits again after a preemption, and does not end (rule 14)."""
        return self.resumable or self.on_preempt is OnPreempt.RESTART


class WorkloadPhase(StrEnum):
    """`held` waits for an operator or its owner; `ended` never runs again."""

    WAITING = "waiting"
    RUNNING = "running"  # has a run: starting, running or stopping
    HELD = "held"
    ENDED = "ended"


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
