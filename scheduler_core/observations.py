"""Facts that reach the engine, in the order in which they were journalled. Nothing here is a guess.

"Could not ask" has its own words (HostStale, HostUnreachable) and never arrives as empty, dead or finished. Each
observation carries only what changes the state; readings for people stay outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.budget import Budget
from scheduler_core.fleet import Host
from scheduler_core.ids import CommandId, DrainId, HostName, RunId
from scheduler_core.policy import Policy
from scheduler_core.requests import BreakerReset as BreakerReset
from scheduler_core.requests import By as By
from scheduler_core.requests import CancelRequested as CancelRequested
from scheduler_core.requests import CordonRequested as CordonRequested
from scheduler_core.requests import DrainRequested as DrainRequested
from scheduler_core.requests import HoldRequested as HoldRequested
from scheduler_core.requests import HostAdvanced as HostAdvanced
from scheduler_core.requests import HostDeclared as HostDeclared
from scheduler_core.requests import ReleaseRequested as ReleaseRequested
from scheduler_core.requests import ReloadRequested as ReloadRequested
from scheduler_core.requests import Request as Request
from scheduler_core.requests import RequeueRequested as RequeueRequested
from scheduler_core.requests import UndrainRequested as UndrainRequested
from scheduler_core.requests import UsageForgotten as UsageForgotten
from scheduler_core.requests import WeightChanged as WeightChanged
from scheduler_core.requests import WorkloadMoved as WorkloadMoved
from scheduler_core.requests import WorkloadSubmitted as WorkloadSubmitted

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
    """Health asks for a drain or a cordon; the breaker decides (rule 29), or a person where it is to `confirm`.

    `causes`: all that stands against the host now, by name (`proposals`). Without any it asks, whatever was decided.
    """

    drain: DrainId
    host: HostName
    reason: str
    cordon_only: bool = False
    causes: tuple[str, ...] = ()
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class AutoDrainWithdrawn:
    """Nothing that health asks a drain for stands against the host any more."""

    host: HostName
    reason: str


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


# -- for the record -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The leader did not do what somebody asked for. It changes nothing.

    `asked`: the kind of the request. `about`: the host, workload or budget; empty where it is the cluster.
    """

    asked: str
    about: str
    why: str
    by: By


@dataclass(frozen=True, slots=True)
class ClockStepped:
    """Somebody set the wall clock of the leader's machine, `by_ms` forward, or back where negative. It changes nothing:
    cluster time knows no wall clock.
    """

    by_ms: int


Observation = (
    Request
    | InventoryLoaded
    | HostSeen
    | HostStale
    | HostUnreachable
    | HostFenced
    | AutoDrainProposed
    | AutoDrainWithdrawn
    | MemberStarted
    | MemberExited
    | MemberReleased
    | MemberNeverStarted
    | RequestRefused
    | ClockStepped
)
