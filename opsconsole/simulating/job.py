"""What a log says of one workload, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass, field

from opsconsole.config.units import format_instant
from opsconsole.simulating.oddities import Oddities
from scheduler_core.budget import BudgetTree
from scheduler_core.policy import Policy


@dataclass(frozen=True, slots=True)
class Job:
    """A row that can be replayed. Instants and spans in ms; None and "" where the log says nothing.

    Instants count from 1970, or from wherever a log without dates begins. `run_ms` is how long it held its GPUs.
    `hosts` is on how many it ran, `project` who paid: account, virtual cluster, tenant, group. `line` is where it
    stands.
    """

    id: str
    submitted_at: int
    gpus: int
    run_ms: int
    line: int
    user: str = ""
    project: str = ""
    hosts: int | None = None
    limit_ms: int | None = None
    min_runtime_ms: int | None = None
    resumable: bool | None = None
    budget: str = ""
    priority: int = 0


@dataclass(slots=True)
class Log:
    """A log as it was read: its jobs by submission, and what was wrong with the rest. `rows` counts all there were.

    Our own journal knows its budgets and its policy too.
    """

    file: str
    format: str
    jobs: list[Job] = field(default_factory=list)
    rows: int = 0
    oddities: Oddities = field(default_factory=Oddities)
    tree: BudgetTree | None = None
    policy: Policy | None = None

    @property
    def skipped(self) -> int:
        """Rows that are no job of the replay."""
        return self.rows - len(self.jobs)

    @property
    def first_day(self) -> str:
        """ISO, in UTC; "" where it has no dates."""
        return format_instant(self.jobs[0].submitted_at)[:10] if self.has_dates else ""

    @property
    def has_dates(self) -> bool:
        """Do its instants count from 1970? Some published logs count from their own beginning."""
        return bool(self.jobs) and self.jobs[0].submitted_at >= EARLIEST_DATE_MS


EARLIEST_DATE_MS = 315_532_800_000  # 1980: no log of a cluster with dates is older
