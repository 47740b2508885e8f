"""Which of two sibling queues comes first where quota decides (KAI): to get something, or, backwards, to lose it."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.shares.amounts import Exact, Ratio, ratio, within
from scheduler_core.shares.reclaim import Holding


@dataclass(frozen=True, slots=True)
class Contender:
    """A queue with what its first in line asks for, or with what it would lose with the next of its victims."""

    holding: Holding
    claim: Exact = 0
    losses: Exact = 0
    priority: int = 0
    created: int = 0


Key = tuple[bool, bool, int, bool, Ratio, Ratio, Exact, int, str]


def order_key(one: Contender, total: Exact) -> Key:
    """Sorts: lower comes first. `total` is what the cluster has: the share of a queue without end.

    Not over its share; within what it deserves with the claim; higher priority; not without any share; the smaller part
    of what it may hold, with the claim and without the losses, then as things are; the smaller queue; the older.
    """
    queue, most = one.holding, one.holding.allocatable
    whole = total if most is None else most
    with_claim = queue.allocated + one.claim
    return (
        not within(queue.allocated, queue.fair_share),
        not within(with_claim, queue.deserved),
        -one.priority,
        not whole and with_claim > 0,
        ratio(with_claim - one.losses, whole),
        ratio(queue.allocated, whole),
        whole,
        one.created,
        queue.id,
    )
