"""What a screen is drawn from: the state of a cluster with the age and source of every fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from opsconsole.health.rounds import Rounds
from opsconsole.health.verdict import Verdict
from scheduler_core.state import ClusterState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """How a host is reached, and its newest probe. `age_s` is that probe's age; None: there is none."""

    link: str  # live, late, lost, connecting, never seen; "" where only the store is known
    why: str = ""
    age_s: float | None = None
    rtt_s: float | None = None
    probe: Mapping[str, Any] | None = None
    kernel: Sequence[Mapping[str, Any]] = ()


NEVER_SEEN = HostFacts("never seen")


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the timeline: a journalled observation or decision, and when people saw it."""

    seq: int
    wall_ms: int
    kind: str
    event: Any


@dataclass(frozen=True, slots=True)
class InventoryChange:
    """`topic` and `subject` say of what: host gpu01, budget olmo/eval, policy lookback. `effect`: on work, or empty."""

    topic: str
    subject: str
    what: str
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.topic} {self.subject}: {self.what}{'; ' + self.effect if self.effect else ''}"


@dataclass(frozen=True, slots=True)
class PendingInventory:
    """What the inventory's file, named by its digest, would change if the leader went by it."""

    digest: str
    changes: tuple[InventoryChange, ...]
    by_hand: tuple[str, ...] = ()  # what becomes of weights that somebody set


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """A plan that somebody has open in another console. `targets` are hosts, workloads or paths of budgets."""

    who: str
    action: str
    targets: tuple[str, ...]
    since_ms: int  # wall time


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Immutable but for `state`, which belongs to the engine: read it, never change it.

    `rounds`: what is thought of hosts' health, from look to look; `verdicts`: at this one. `kept`: what was worked out
    of all workloads, shared by the views of a few seconds in which nothing was decided.
    """

    cluster: str
    state: ClusterState
    wall_ms: int
    hosts: Mapping[str, HostFacts]
    leader: str  # "this console", "serve at head pid 12", "nobody"
    leading: bool
    lag_s: float = 0.0  # how old a follower's picture is
    interval_s: float = 2.0
    alarms: Mapping[str, str] = field(default_factory=dict)
    happenings: Sequence[Happening] = ()
    version: int = 0
    pending: PendingInventory | None = None
    others: Sequence[OpenPlan] = ()
    rounds: Rounds = field(default_factory=Rounds, compare=False)
    kept: dict[str, Any] = field(default_factory=dict, compare=False)
    verdicts: dict[str, Verdict] = field(default_factory=dict, compare=False)

    def wall(self, at_ms: int) -> int:
        """Cluster time as wall time, for people."""
        return self.wall_ms + (at_ms - self.state.now)

    def once(self, what: str, work: Callable[[], T]) -> T:
        """For what takes a look at every workload and moves with decisions, not with the clock."""
        if what not in self.kept:
            self.kept[what] = work()
        found: T = self.kept[what]
        return found

    def facts(self, host: str) -> HostFacts:
        return self.hosts.get(host, NEVER_SEEN)
