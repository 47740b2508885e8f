"""What the engine decides, with reasons. Journalled, and applied in order, decisions give the same state again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.fleet import HostState
from scheduler_core.ids import BudgetId, HostName, RunId, WorkloadId


class StopCause(StrEnum):
    """Why a run is stopped; decides what becomes of its workload (rule 14)."""

    PREEMPT = "preempt"
    DRAIN = "drain"
    MOVE = "move"  # consolidation (rule 20)
    REQUEUE = "requeue"  # asked for by an operator
    CANCEL = "cancel"
    START_TIMEOUT = "start_timeout"
    TIME_LIMIT = "time_limit"
    GANG_BROKEN = "gang_broken"  # another member failed or is lost


@dataclass(frozen=True, slots=True)
class Member:
    """The part of a placement on one host. `slots` is a mask of its GPUs."""

    host: HostName
    slots: int

    @property
    def gpus(self) -> int:
        return self.slots.bit_count()


@dataclass(frozen=True, slots=True)
class Standing:
    """A branch among its siblings at one moment (rule 6): the figures that decided, for explanations.

    Usage and entitlement in GPU-thousandths x ms; `rank` from 1.
    """

    budget: BudgetId
    usage: int
    committed: int
    entitlement: int
    rank: int


@dataclass(frozen=True, slots=True)
class Placed:
    """The workload starts, as attempt `run`, on these GPUs. Members are in rank order."""

    workload: WorkloadId
    run: RunId
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """GPUs held for a waiting workload until its victims have gone (rule 19). Replaces its earlier claim; without
    members it is given up.

    `members` is the whole place it will start on; `waits_for` are the runs that must go first.
    """

    workload: WorkloadId
    members: tuple[Member, ...]
    waits_for: tuple[RunId, ...]


@dataclass(frozen=True, slots=True)
class Reserved:
    """From `at` (ms) on these GPUs are the waiting workload's, whatever the balances say then (rule 21)."""

    workload: WorkloadId
    at: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ReservationEnded:
    """What was reserved for the workload is anybody's again."""

    workload: WorkloadId
    reason: str


@dataclass(frozen=True, slots=True)
class StopDecided:
    """The run is stopped by rule 13. For a preemption: for whom, both standings, and why this one (rule 23)."""

    run: RunId
    cause: StopCause
    reason: str
    actor: str = ""
    override: bool = False  # rule 11 broken by an operator's explicit word
    for_workload: WorkloadId | None = None
    standings: tuple[Standing, ...] = ()
    lost_gpu_ms: int = 0  # GPU-thousandths x ms since the last checkpoint
    reserved: bool = False  # a reservation came due: the breaker does not count it (rules 21, 29)


@dataclass(frozen=True, slots=True)
class HostMoved:
    """The machine moves a host in rule 24's table: drained when known empty; suspect or cordoned within the breaker."""

    host: HostName
    to: HostState
    reason: str


@dataclass(frozen=True, slots=True)
class HostLost:
    """Unreachable for longer than `lost_after` (rule 27)."""

    host: HostName


@dataclass(frozen=True, slots=True)
class MemberLeaked:
    """Still held `stop_deadline` after SIGKILL: these slots are out of service, charged to nobody (rule 13)."""

    run: RunId
    host: HostName


@dataclass(frozen=True, slots=True)
class StrayFound:
    """A run that somebody declared dead lives after all: it is stopped before anything new starts there (rule 27)."""

    run: RunId
    host: HostName


@dataclass(frozen=True, slots=True)
class WorkloadHeld:
    """Held by the machine: retries used up, or poison (rules 14, 28)."""

    workload: WorkloadId
    reason: str


@dataclass(frozen=True, slots=True)
class BreakerTripped:
    """An automatic action waits for an operator (rule 29). `what` identifies it: "host NAME", "workload ID"."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class PassDone:
    """A planning pass happened: keeps `pass_interval` the same in a replay, and back-off with it."""

    blocked: tuple[WorkloadId, ...] = ()  # heads that `max_blast` alone blocked (rule 18's patience)
    read_standings: bool = False  # it compared all standings, not only those that events touched


Decision = (
    Placed
    | Claimed
    | Reserved
    | ReservationEnded
    | StopDecided
    | HostMoved
    | HostLost
    | MemberLeaked
    | StrayFound
    | WorkloadHeld
    | BreakerTripped
    | PassDone
)
