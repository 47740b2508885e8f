"""What passes have found impossible, and what has happened since: a pass looks only at what that could help.

Theory of operation. After a pass nothing more can start: every signature that waits is *dead* (it fits no free GPUs,
and nobody without a guarantee is in its way), and every leaf is *blocked* at its head, for which no victims were found
among the branches that it stood better than. That holds until GPUs come free, a run loses its protection, waiting work
comes or goes (`Index.news`), or standings turn. The latter they do slowly: they are read again when a thousandth of the
window has passed or has been promised. A `Settled` may be dropped at any time: the next pass looks at everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_core.ids import BudgetId, HostName, RunId, WorkloadId

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


@dataclass(slots=True)
class News:
    """What has changed since the last pass and could help somebody who could not start then (module settled)."""

    everything: bool = True
    hosts: dict[HostName, None] = field(default_factory=dict)  # more is free there, or comes free
    runs: dict[RunId, None] = field(default_factory=dict)  # allocated ones past their protection
    leaves: dict[BudgetId, None] = field(default_factory=dict)  # waiting work came or went
    relieved: dict[BudgetId, None] = field(default_factory=dict)  # leaves with commitments that ended early
    moved: int = 0  # commitments made and ended, GPU-thousandths x ms

    def promised(self, amount: int) -> None:
        """A commitment was made."""
        self.moved += amount

    def relieve(self, leaf: BudgetId, amount: int) -> None:
        """A commitment of this leaf ended before it was used up: its branches stand better."""
        self.moved += amount
        self.relieved[leaf] = None

    def __bool__(self) -> bool:
        return bool(self.everything or self.hosts or self.runs or self.leaves or self.relieved)


class Blocked(NamedTuple):
    """The first of a leaf that could start if there were room, and the branches among whose runs it found no victims.

    `rights` is None where nobody's leaving would help; `head` and `kind` are where all wait for something of their own.
    """

    head: LeafKey | None = None
    kind: Signature | None = None
    rights: dict[BudgetId, int] | None = None

    def within(self, rights: dict[BudgetId, int] | None) -> Blocked:
        """It has looked at what is new with these rights alone; with None it was not enough whatever its rights."""
        if rights is None:
            return self
        kept = rights if self.rights is None else {b: tier for b, tier in self.rights.items() if b in rights}
        return self._replace(rights=kept)


@dataclass(slots=True)
class Settled:
    """Holds as of the last pass."""

    fresh: bool = True
    dead: dict[Signature, None] = field(default_factory=dict)
    unfit: dict[Signature, None] = field(default_factory=dict)  # unallocated ones that fit no free GPUs
    blocked: dict[BudgetId, Blocked] = field(default_factory=dict)
    open: dict[BudgetId, None] = field(default_factory=dict)  # leaves that a cap blocks
    blast: dict[BudgetId, None] = field(default_factory=dict)  # leaves whose head only `max_blast` blocks
    braked: dict[BudgetId, int] = field(default_factory=dict)  # GPUs that the breaker must let go for the leaf

    def clear(self) -> None:
        """Nothing is known any more."""
        self.fresh, self.dead, self.unfit = False, {}, {}
        self.blocked, self.open, self.blast, self.braked = {}, {}, {}, {}

    def blast_blocked(self) -> tuple[WorkloadId, ...]:
        """Those that wait for rule 18's patience."""
        heads = [self.blocked[leaf].head for leaf in self.blast if leaf in self.blocked]
        return tuple(head[2] for head in heads if head is not None)

    def ahead_of(self, leaf: BudgetId, key: LeafKey) -> bool:
        """Is the leaf blocked by one that comes before this one?"""
        blocked = self.blocked.get(leaf)
        return blocked is not None and blocked.head is not None and blocked.head < key

    def covers(self, leaf: BudgetId, key: LeafKey, kind: Signature, allocated: bool) -> bool:
        """Could a workload of this kind, new in the leaf's queue, not start either?"""
        return (kind in self.dead and self.ahead_of(leaf, key)) if allocated else kind in self.unfit

    def settle(self, leaf: BudgetId, blocked: Blocked | None) -> None:
        """A pass is done with the leaf. None: look again whatever happens."""
        if blocked is None:
            self.blocked.pop(leaf, None)
            self.open[leaf] = None
        else:
            self.blocked[leaf] = blocked

    def drop(self, leaf: BudgetId) -> None:
        """Nothing waits there any more."""
        for known in (self.blocked, self.open, self.blast, self.braked):
            known.pop(leaf, None)
