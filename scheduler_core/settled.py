"""What passes have found impossible, and what has happened since: a pass looks only at what that could help.

Theory of operation. After a pass nothing more can start: every signature that waits is *dead* (it fits no free GPUs,
and nobody without a guarantee is in its way; or what there is was reserved, and it would hold it too long), and every
leaf is *blocked* at its head, for which no victims were found among the branches that it stood better than. That holds
until GPUs come free, a run loses its protection, waiting work comes or goes (`Index.news`), or standings turn. That is
slow: they are read again when a thousandth of the window has passed or has been promised. A `Settled` may be dropped at
any time: the next pass looks at everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_core.ids import BudgetId, HostName, RunId, WorkloadId
from scheduler_core.workload import Workload

LeafKey = tuple[int, int, WorkloadId]  # order inside a leaf (rule 6): -priority, submission, id


class Signature(NamedTuple):
    """What placement can tell apart: workloads with the same signature fit, or do not fit, alike."""

    gpus: int
    hosts: int
    gpus_per_host: int
    needs: tuple[tuple[str, str], ...]

    def least(self, size: int) -> int:
        """The GPUs that it takes, at least, of a host with `size`: all of them, where it is larger than the host."""
        return min(self.gpus_per_host or self.gpus, size)

    def on_hosts(self, size: int) -> int:
        """On how many hosts of `size` GPUs it runs, at least."""
        return self.hosts or -(-self.gpus // size)


Spans = dict[Signature, int]  # those that cannot start, and from which `Workload.yields_after_ms` on


def covered(spans: Spans, kind: Signature, span: int) -> bool:
    """Is it among those that cannot start?"""
    least = spans.get(kind)
    return least is not None and least <= span


@dataclass(slots=True)
class News:
    """What has changed since the last pass and could help somebody who could not start then (module settled)."""

    everything: bool = True
    hosts: dict[HostName, None] = field(default_factory=dict)  # more is free there, or comes free
    runs: dict[RunId, None] = field(default_factory=dict)  # allocated ones past their protection
    leaves: dict[BudgetId, None] = field(default_factory=dict)  # waiting work came or went
    relieved: dict[BudgetId, None] = field(default_factory=dict)  # leaves with commitments that ended early
    opened: dict[HostName, None] = field(default_factory=dict)  # of these, where a reservation has ended
    claims: bool = False  # one may have come true
    moved: int = 0  # commitments made and ended, GPU-thousandths x ms

    def promised(self, amount: int) -> None:
        """A commitment was made."""
        self.moved += amount

    def relieve(self, leaf: BudgetId, amount: int) -> None:
        """A commitment of this leaf ended before it was used up: its branches stand better."""
        self.moved += amount
        self.relieved[leaf] = None

    def __bool__(self) -> bool:
        return bool(self.everything or self.claims or self.hosts or self.runs or self.leaves or self.relieved)


class Blocked(NamedTuple):
    """The first of a leaf that could start if there were room, and the branches among whose runs there are no victims.

    `rights` is None where nobody's leaving would help; `head` and `kind` are where all wait for something of their own.
    """

    head: LeafKey | None = None
    kind: Signature | None = None
    rights: frozenset[BudgetId] | None = None

    def within(self, rights: frozenset[BudgetId] | None) -> Blocked:
        """It has looked at what is new with these rights alone; with None it was not enough whatever its rights."""
        if rights is None:
            return self
        return self._replace(rights=rights if self.rights is None else self.rights & rights)


@dataclass(slots=True)
class Settled:
    """Holds as of the last pass."""

    fresh: bool = True
    dead: Spans = field(default_factory=dict)
    unfit: Spans = field(default_factory=dict)  # unallocated ones that fit no free GPUs
    blocked: dict[BudgetId, Blocked] = field(default_factory=dict)
    by_kind: dict[Signature, dict[BudgetId, None]] = field(default_factory=dict)  # blocked leaves by their head's
    open: dict[BudgetId, None] = field(default_factory=dict)  # leaves that a cap blocks
    blast: dict[BudgetId, WorkloadId] = field(default_factory=dict)  # heads that only `max_blast` blocks
    braked: dict[tuple[BudgetId, Signature], int] = field(default_factory=dict)  # GPUs that the breaker must let go
    unreserved: dict[BudgetId, tuple[LeafKey, int]] = field(default_factory=dict)  # heads without an instant to
    # reserve (rule 21), and since when
    reserve_at: int | None = None  # when the first in order are looked at again, whether they need a reservation
    newcomers: bool = False  # one may be among them that was not there the last time

    def clear(self) -> None:
        """Nothing is known any more."""
        self.fresh, self.dead, self.unfit = False, {}, {}
        self.blocked, self.by_kind, self.open, self.blast, self.braked, self.unreserved = {}, {}, {}, {}, {}, {}
        self.reserve_at, self.newcomers = None, False

    def blast_blocked(self) -> tuple[WorkloadId, ...]:
        """Those that wait for rule 18's patience."""
        return tuple(self.blast.values())

    def ahead_of(self, leaf: BudgetId, key: LeafKey) -> bool:
        """Is the leaf blocked by one that comes before this one?"""
        blocked = self.blocked.get(leaf)
        return blocked is not None and blocked.head is not None and blocked.head < key

    def covers(self, workload: Workload, key: LeafKey, kind: Signature) -> bool:
        """Could this one, new in its leaf's queue, not start either?"""
        if not workload.allocated:
            return kind in self.unfit
        return covered(self.dead, kind, workload.yields_after_ms) and self.ahead_of(workload.budget, key)

    def settle(self, leaf: BudgetId, blocked: Blocked | None) -> None:
        """A pass is done with the leaf. None: look again whatever happens."""
        known = self.blocked.get(leaf)
        self.newcomers |= blocked is not None and (known is None or known.head != blocked.head)
        self._unblock(leaf)
        if blocked is None:
            self.open[leaf] = None
            return
        self.blocked[leaf] = blocked
        if blocked.kind is not None:
            self.by_kind.setdefault(blocked.kind, {})[leaf] = None

    def _unblock(self, leaf: BudgetId) -> None:
        known = self.blocked.pop(leaf, None)
        if known is not None and known.kind is not None:
            del self.by_kind[known.kind][leaf]

    def drop(self, leaf: BudgetId) -> None:
        """Nothing waits there any more."""
        self._unblock(leaf)
        self.open.pop(leaf, None)
        self.blast.pop(leaf, None)
        self.braked = {key: gpus for key, gpus in self.braked.items() if key[0] != leaf}
