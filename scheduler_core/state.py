"""The state of one cluster: records, and the few primitive changes that keep records, ledgers and indexes together.

`apply` (module lifecycle) is the only caller of the changes here. Everything below can be rebuilt from the
records; the indexes exist so that a pass costs passes x leaves and not workloads x hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from scheduler_core.budget import BudgetTree
from scheduler_core.decisions import Member, Reserved, StopDecided
from scheduler_core.errors import UnknownIdError
from scheduler_core.fleet import Host, HostState, Reach
from scheduler_core.ids import BudgetId, CommandId, DrainId, HostName, RunId, WorkloadId, run_id
from scheduler_core.index import Index
from scheduler_core.observations import AutoDrainProposed, By
from scheduler_core.policy import Policy
from scheduler_core.units import DAY
from scheduler_core.usage import Ledgers
from scheduler_core.workload import Outcome, Workload, WorkloadPhase

ENDED_KEEP_MS = DAY  # so long a late or repeated fact about an ended workload, and a past drain, is known


class MemberPhase(StrEnum):
    """Where a member stands. GPUs are held and charged in the first three phases."""

    DISPATCHED = "dispatched"
    STARTED = "started"
    EXITED = "exited"
    RELEASED = "released"
    NEVER_STARTED = "never_started"
    LEAKED = "leaked"

    @property
    def holds_gpus(self) -> bool:
        return self in _HOLDING

    @property
    def gone(self) -> bool:
        """Known dead. A leaked member is not: its workload may not start again (rule 27)."""
        return self in _GONE


# Asked tens of thousands of times when a journal is folded; a name of an enum costs as much as the answer.
_HOLDING = (MemberPhase.DISPATCHED, MemberPhase.STARTED, MemberPhase.EXITED)
_GONE = (MemberPhase.RELEASED, MemberPhase.NEVER_STARTED)


@dataclass(slots=True)
class MemberRecord:
    """One host's part of a run."""

    slots: int
    phase: MemberPhase = MemberPhase.DISPATCHED
    boot_id: str = ""  # of the host when it started there; "" while the boot is not known
    started_at: int | None = None  # on our clock, from what the host said it had run for
    gone_at: int | None = None  # on our clock, from what the host said how long ago it was
    exit_code: int | None = None
    signal: str | None = None
    signalled: bool = False
    why: str = ""


@dataclass(slots=True)
class Run:
    """One attempt, from dispatch until its last member gave its GPUs back. `members` are in rank order."""

    id: RunId
    workload: WorkloadId
    budget: BudgetId  # charged here, for this run's whole life (rule 2)
    allocated: bool
    min_runtime_ms: int
    placed_at: int
    members: dict[HostName, MemberRecord]
    started_at: int | None = None  # when the last member had started
    checkpoint_at: int | None = None  # of the newest checkpoint known
    stop: StopDecided | None = None
    stop_at: int | None = None
    charged_from: int = 0  # since when in the ledgers of today's budget tree

    @property
    def gpus(self) -> int:
        """GPUs still held."""
        held = 0
        for member in self.members.values():  # asked a dozen times a step
            if member.phase in _HOLDING:
                held += member.slots.bit_count()
        return held

    def protected_until(self) -> int | None:
        """The instant at which protection ends; None while it has not wholly started (then it is protected)."""
        return None if self.started_at is None else self.started_at + self.min_runtime_ms

    def protected(self, now: int) -> bool:
        """Rule 11. A run without min runtime never is."""
        if not self.allocated:
            return False
        return self.started_at is None or now < self.started_at + self.min_runtime_ms


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished run, as history: what it cost, how it ended and who decided (rule 23: kept for ever)."""

    run: RunId
    members: tuple[Member, ...]
    placed_at: int
    started_at: int | None
    ended_at: int
    outcome: str
    exit_code: int | None
    signal: str | None
    stop: StopDecided | None
    why: str = ""  # it ended as it did, in the host's words


@dataclass(slots=True)
class WorkloadRecord:
    workload: Workload
    phase: WorkloadPhase = WorkloadPhase.WAITING
    waiting_since: int = 0
    day: int = 0  # of its submission
    attempt: int = 0  # the last one used
    retries: int = 0
    not_before: int = 0  # retry delay (rule 14)
    run: RunId | None = None
    claim: tuple[Member, ...] = ()  # rule 19
    waits_for: tuple[RunId, ...] = ()  # victims of the claim, still going
    reserved: Reserved | None = None  # rule 21
    reason: str = ""  # why held
    held_by: By | None = None
    pending: StopDecided | None = None  # a requeue that waits for the end of the min runtime
    outcome: Outcome | None = None
    ended_at: int | None = None
    moved_at: int | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def next_run(self) -> RunId:
        return run_id(self.workload.id, self.attempt + 1, self.day)


@dataclass(slots=True)
class HostRecord:
    """A host with what is known of it. `held`, `claimed`, `leaked`, `foreign`, `unfit` are masks of slots."""

    host: Host
    state: HostState = HostState.SERVING
    reach: Reach = Reach.NEVER_SEEN
    since: int = 0  # when state last changed
    by: By | None = None
    boot_id: str = ""
    machine: str = ""  # id of the one that the name stands for
    gpu_ids: tuple[str, ...] = ()
    foreign: int = 0
    unfit: int = 0
    empty: bool = False
    leaked: int = 0
    held: int = 0
    claimed: int = 0
    drain: DrainId | None = None
    reach_since: int = 0  # when reach last changed
    answers_since: int = 0  # since when it could be asked without a break
    unreachable_since: int | None = None
    unreachable_why: str = ""
    counted: int = 0  # GPUs that the service ledger counts for this host
    removed: bool = False  # left the inventory while it still has runs
    runs: list[RunId] = field(default_factory=list)
    buried: list[RunId] = field(default_factory=list)  # dead by somebody's word; the host has not confirmed it
    strays: list[RunId] = field(default_factory=list)  # of those, seen alive after all: they are stopped

    @property
    def fence_id(self) -> CommandId:
        """Of the power-off that follows from the loss of this host (rule 27)."""
        return CommandId(f"{self.host.name}/fence/{self.reach_since}")

    @property
    def places(self) -> bool:
        """May anything new start here (rule 26)?"""
        fit = self.state is HostState.SERVING and not self.removed and not self.strays
        return fit and self.reach is Reach.FRESH

    @property
    def usable(self) -> int:
        """Slots that are free or held by runs or claims: what the host could give if all its runs left."""
        return self.host.all_slots & ~(self.foreign | self.unfit | self.leaked) if self.places else 0

    @property
    def free(self) -> int:
        """Slots that anybody may have now (rule 26)."""
        return self.usable & ~(self.held | self.claimed)

    @property
    def in_service(self) -> int:
        """GPUs in service: all of a serving host that are not leaked, else those held by runs."""
        if self.state is HostState.SERVING and self.reach not in (Reach.NEVER_SEEN, Reach.LOST):
            return (self.host.all_slots & ~self.leaked).bit_count()
        return self.held.bit_count()


@dataclass(slots=True)
class DrainRecord:
    """A drain as a durable operation (rule 25)."""

    id: DrainId
    host: HostName
    mode: str
    by: By
    requested_at: int
    deadline_at: int | None = None
    automatic: bool = False
    done_at: int | None = None
    ended: str = ""  # drained, undrained, superseded


@dataclass(frozen=True, slots=True)
class WeightByHand:
    """A weight (millionths) that somebody set. It counts for as long as the inventory says `instead_of`."""

    weight: int
    instead_of: int
    by: By
    at: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed soon after its start (rule 28)."""

    at: int
    host: HostName
    workload: WorkloadId
    owner: str


@dataclass
class ClusterState:
    """Everything the engine knows at `now` (ms)."""

    now: int = 0
    began_at: int = 0  # when the first inventory was loaded
    policy: Policy = field(default_factory=Policy)
    budgets: BudgetTree = field(default_factory=lambda: BudgetTree(()))
    hosts: dict[HostName, HostRecord] = field(default_factory=dict)
    workloads: dict[WorkloadId, WorkloadRecord] = field(default_factory=dict)
    runs: dict[RunId, Run] = field(default_factory=dict)  # those that hold GPUs
    drains: dict[DrainId, DrainRecord] = field(default_factory=dict)
    ledgers: Ledgers = field(default_factory=Ledgers)
    weights: dict[BudgetId, WeightByHand] = field(default_factory=dict)
    cordons_end: dict[HostName, int] = field(default_factory=dict)  # of cordons that lift by themselves (module lapses)
    parted: dict[HostName, By] = field(default_factory=dict)  # by whom they were out of service when they left
    holds_end: dict[WorkloadId, int] = field(default_factory=dict)
    index: Index = field(default_factory=Index)  # derived
    wanted: dict[RunId, StopDecided] = field(default_factory=dict)  # stops that the next step decides
    proposals: dict[HostName, AutoDrainProposed] = field(default_factory=dict)  # automatic drains not yet begun
    heeded: dict[HostName, tuple[str, ...]] = field(default_factory=dict)  # causes that were decided about
    strays: list[tuple[RunId, HostName]] = field(default_factory=list)  # found, their stop not yet decided
    failures: list[Failure] = field(default_factory=list)  # early ones, in suspect_window (rule 28)
    auto_moves: list[int] = field(default_factory=list)  # instants of automatic cordons and drains (rule 29)
    preempted: list[tuple[int, int]] = field(default_factory=list)  # instant, GPUs (rule 29)
    tripped: dict[str, None] = field(default_factory=dict)  # what the breaker holds back and has said so
    allowed: dict[str, None] = field(default_factory=dict)  # of that, what an operator lets go past the limit
    blast_blocked: dict[WorkloadId, int] = field(default_factory=dict)  # since when, as of the last pass (rule 18)
    last_pass_at: int | None = None
    standings_read_at: int | None = None  # when a pass last compared all standings (module settled)
    dirty: bool = True  # something changed that a pass could use

    @property
    def day(self) -> int:
        """Since the beginning, from 0. Longer than an ended workload is known: its id comes back on a later day."""
        return (self.now - self.began_at) // ENDED_KEEP_MS

    def require_host(self, name: HostName) -> HostRecord:
        try:
            return self.hosts[name]
        except KeyError:
            raise UnknownIdError(f"no host {name!r}") from None

    def require_workload(self, wid: WorkloadId) -> WorkloadRecord:
        try:
            return self.workloads[wid]
        except KeyError:
            raise UnknownIdError(f"no workload {wid!r}") from None

    def knows_drain(self, drain: DrainId) -> bool:
        """Is the id taken, by a drain (also one that ended within a day) or by a proposal?"""
        return drain in self.drains or any(p.drain == drain for p in self.proposals.values())

    def waiting(self) -> Iterator[WorkloadRecord]:
        """Workloads that could start now or later, in no order that matters."""
        return (w for w in self.workloads.values() if w.phase is WorkloadPhase.WAITING)
