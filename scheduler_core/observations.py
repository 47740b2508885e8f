"""Facts that reach the engine, in the order in which they were journalled. Nothing here is a guess.

"Could not ask" has its own words (HostStale, HostUnreachable) and never arrives as empty, dead or finished. Each
observation carries only what changes the state; readings for people stay outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scheduler_core.budget import Budget
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, CommandId, DrainId, HostName, RunId, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.workload import Workload


@dataclass(frozen=True, slots=True)
class By:
    """Who asked and why; kept with what came of it."""

    actor: str
    reason: str = ""

    def __str__(self) -> str:
        """Who, and why where that was said."""
        return f"{self.actor}: {self.reason}" if self.reason else self.actor


# -- what the cluster is ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InventoryLoaded:
    """The whole inventory of this cluster, at the start and after every reload. Runs are never touched by it.

    A host that left while it has runs stays, cordoned, until they are gone; a budget that left while it has
    workloads or usage stays, with weight 0.
    """

    policy: Policy
    budgets: tuple[Budget, ...]
    hosts: tuple[Host, ...]


# -- what people ask ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkloadSubmitted:
    """Validated against the inventory before (opsconsole.config); a known id is ignored: nothing twice."""

    workload: Workload


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The owner or an operator ends the workload; a protected run is stopped (rule 11: its owner may)."""

    workload: WorkloadId
    by: By


@dataclass(frozen=True, slots=True)
class RequeueRequested:
    """Stop the run and put the workload back. Past the minimum at once; else at its end, unless `override`."""

    workload: WorkloadId
    by: By
    override: bool = False


@dataclass(frozen=True, slots=True)
class HoldRequested:
    """A waiting workload waits for a release."""

    workload: WorkloadId
    by: By


@dataclass(frozen=True, slots=True)
class ReleaseRequested:
    workload: WorkloadId
    by: By


@dataclass(frozen=True, slots=True)
class WorkloadMoved:
    """To another leaf, or another priority. What it has used stays where it was charged (rule 2)."""

    workload: WorkloadId
    by: By
    budget: BudgetId | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class CordonRequested:
    """Nothing new starts on the host; its runs go on."""

    host: HostName
    by: By


@dataclass(frozen=True, slots=True)
class DrainRequested:
    """Rule 25. `deadline_at` belongs to mode finish. Sent again for the same host it changes the mode."""

    drain: DrainId
    host: HostName
    by: By
    mode: Literal["contract", "finish", "now"] = "contract"
    deadline_at: int | None = None


@dataclass(frozen=True, slots=True)
class UndrainRequested:
    """Back to serving from any state; runs that already stop go on stopping. Also lifts a cordon or a suspicion."""

    host: HostName
    by: By


@dataclass(frozen=True, slots=True)
class HostAdvanced:
    """An operator or a repair tool moves a drained host on: repairing, verifying, verify_failed."""

    host: HostName
    to: Literal["repairing", "verifying", "verify_failed"]
    by: By


@dataclass(frozen=True, slots=True)
class HostDeclared:
    """An operator's word (rules 26, 27). `dead`: its processes are gone for good. `empty`: nothing runs there."""

    host: HostName
    what: Literal["empty", "dead"]
    by: By


@dataclass(frozen=True, slots=True)
class ReloadRequested:
    """The leader goes by its inventory as it is now, if that is still the text of this digest.

    For the record only: what it changes is `InventoryLoaded` of the same tick.
    """

    digest: str
    by: By


@dataclass(frozen=True, slots=True)
class BreakerReset:
    """An operator lets the waiting automatic actions go on (rule 29)."""

    by: By


# -- what hosts report --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostSeen:
    """The host answers. Sent when it begins to answer and whenever one of these values changes.

    `gpu_ids`: UUID by slot, "" where there is none. `foreign`: slots with a process that is not ours. `unfit`: slots
    that are missing, failed, or hold more memory than `free_memory_mib` without any run. `empty`: the host itself
    reports no workload process and no foreign process on its GPUs. A new `boot_id` proves that whatever ran before is
    dead. `machine`: the id of what the name stands for now, "" where it is not known.
    """

    host: HostName
    boot_id: str
    gpu_ids: tuple[str, ...] = ()
    foreign: int = 0
    unfit: int = 0
    empty: bool = False
    machine: str = ""


@dataclass(frozen=True, slots=True)
class HostStale:
    """Connected, but the last reading is too old to place anything on."""

    host: HostName


@dataclass(frozen=True, slots=True)
class HostUnreachable:
    host: HostName
    why: str


@dataclass(frozen=True, slots=True)
class HostFenced:
    """The inventory's fence command confirmed the power-off: whatever ran there is dead.

    `command` is the FenceHost that it answers: a confirmation that comes late, when the host is back, proves nothing.
    """

    host: HostName
    command: CommandId


@dataclass(frozen=True, slots=True)
class AutoDrainProposed:
    """Health asks for a drain or a cordon; the breaker decides (rule 29)."""

    drain: DrainId
    host: HostName
    reason: str
    cordon_only: bool = False


# -- what becomes of runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemberStarted:
    """The processes of this member run. `ran_ms`: for how long already, on the host's boot-time clock."""

    run: RunId
    host: HostName
    ran_ms: int = 0


@dataclass(frozen=True, slots=True)
class MemberExited:
    """The main process ended by itself or after a stop (`signalled`). The GPUs are not free yet.

    Exactly one of `exit_code` and `signal` is given, or neither where nobody knows. `why`: the host's own words, where
    the program did not even start.
    """

    run: RunId
    host: HostName
    exit_code: int | None = None
    signal: str | None = None  # its name, SIGKILL
    signalled: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class MemberReleased:
    """Processes gone and GPU memory released, as the host reports it: now the GPUs are free (rule 13).

    `ago_ms`: since when already, on the host's boot-time clock; 0 where nobody knows. Until then they are charged.
    """

    run: RunId
    host: HostName
    ago_ms: int = 0


@dataclass(frozen=True, slots=True)
class MemberNeverStarted:
    """The host knows the token as burnt: it did not start and never will. `why` is shown to the owner."""

    run: RunId
    host: HostName
    why: str


Observation = (
    InventoryLoaded
    | WorkloadSubmitted
    | CancelRequested
    | RequeueRequested
    | HoldRequested
    | ReleaseRequested
    | WorkloadMoved
    | CordonRequested
    | DrainRequested
    | UndrainRequested
    | HostAdvanced
    | HostDeclared
    | ReloadRequested
    | BreakerReset
    | HostSeen
    | HostStale
    | HostUnreachable
    | HostFenced
    | AutoDrainProposed
    | MemberStarted
    | MemberExited
    | MemberReleased
    | MemberNeverStarted
)
