"""What people ask for. Each names what it is about, and who asked for it and why; `observations` has the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.workload import Workload


@dataclass(frozen=True, slots=True)
class By:
    """Who asked and why, and under which ticket, where there is one; kept with what came of it."""

    actor: str
    reason: str = ""
    ticket: str = ""

    def __str__(self) -> str:
        """Who, and why where that was said."""
        return f"{self.actor}: {self.why}" if self.why else self.actor

    @property
    def why(self) -> str:
        """The reason with its ticket; empty where nobody said one."""
        return f"{self.reason} [{self.ticket}]".lstrip() if self.ticket else self.reason


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
    """A waiting workload waits for a release, which comes by itself at `until_at` where that is given (`lapses`)."""

    workload: WorkloadId
    by: By
    until_at: int | None = None


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
    """Nothing new starts on the host; its runs go on. `until_at` as of a hold."""

    host: HostName
    by: By
    until_at: int | None = None


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


@dataclass(frozen=True, slots=True)
class WeightChanged:
    """In millionths. It counts until the inventory says another weight than when this was asked for."""

    budget: BudgetId
    weight: int
    by: By


@dataclass(frozen=True, slots=True)
class UsageForgotten:
    """The past of the budget and of all below it counts no longer (rule 3). Those above keep what they were charged."""

    budget: BudgetId
    by: By


Request = (
    WorkloadSubmitted
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
    | WeightChanged
    | UsageForgotten
)
