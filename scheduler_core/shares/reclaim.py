"""When a queue may take back from others what goes beyond their share (KAI's reclaim). Amounts of one resource."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler_core.shares.amounts import Exact, Ratio, ratio, within
from scheduler_core.shares.trees import TOP, branches, by_id, path


@dataclass(frozen=True, slots=True)
class Holding:
    """A queue's shares and what it holds, everything below it included. None: no end."""

    id: str
    deserved: Exact | None
    fair_share: Exact | None
    allocated: Exact
    allocated_non_preemptible: Exact = 0
    limit: Exact | None = None
    parent: str = TOP

    @property
    def allocatable(self) -> Exact | None:
        """What it may hold without being over: the larger of what it deserves and its fair share, within its limit."""
        if self.deserved is None or self.fair_share is None:
            return self.limit
        most = max(self.deserved, self.fair_share)
        return most if self.limit is None else min(self.limit, most)


@dataclass(frozen=True, slots=True)
class Reclaimer:
    """Who wants how much; what is not preemptible must stay within what its queues deserve."""

    queue: str
    request: Exact
    preemptible: bool = True


@dataclass(frozen=True, slots=True)
class Victim:
    """What would be taken from a queue at once."""

    queue: str
    amount: Exact


def can_reclaim(holding: Holding, reclaimer: Reclaimer) -> bool:
    """Would its queue stay within its share with it? Who would not reclaims nothing, whoever the victims are."""
    return within(holding.allocated + reclaimer.request, holding.fair_share) and _keeps_quota(holding, reclaimer)


def is_candidate(reclaimer: Holding, victim: Holding, request: Exact) -> bool:
    """The first filter of victims, at the children of the lowest common ancestor.

    To a claim within what the reclaimer deserves, a queue below what it deserves itself is closed; to any other claim
    every queue that holds no more than it may.
    """
    if not within(reclaimer.allocated + request, reclaimer.deserved):
        return not within(victim.allocated, victim.allocatable)
    return victim.deserved is None or victim.allocated >= victim.deserved


@dataclass(slots=True)
class _After:
    """What each queue holds as victims go."""

    tree: dict[str, Holding]
    held: dict[str, Exact] = field(default_factory=dict)  # only of those whose holding has changed

    def of(self, queue: str) -> Exact:
        return self.held.get(queue, self.tree[queue].allocated)

    def add(self, queue: str, amount: Exact) -> None:
        """To a queue and all above it."""
        for name in path(self.tree, queue):
            self.held[name] = self.of(name) + amount


def may_reclaim(
    queues: Iterable[Holding], reclaimer: Reclaimer, victims: Iterable[Victim], saturation_multiplier: Exact = 1
) -> bool:
    """May the reclaimer have the GPUs of these victims?

    Each victim, when its turn comes, must be over its share where the branches part, or over what it deserves while the
    reclaimer's branch stays within what it deserves. And afterwards, at every level, the reclaimer's queue may be above
    its share only where it is less saturated (times the multiplier) than each sibling that lost something.
    """
    after = _After(by_id(queues))
    for victim in victims:
        ours, theirs = (after.tree[name] for name in branches(after.tree, reclaimer.queue, victim.queue))
        if not _over(ours, theirs, reclaimer.request, after.of(theirs.id)):
            return False
        after.add(victim.queue, -victim.amount)
    losers = set(after.held)
    after.add(reclaimer.queue, reclaimer.request)
    return all(
        _stays_below(after, name, losers, saturation_multiplier) and _keeps_quota(after.tree[name], reclaimer)
        for name in path(after.tree, reclaimer.queue)
    )


def _over(ours: Holding, theirs: Holding, request: Exact, remaining: Exact) -> bool:
    """Above its share; or above what it deserves, for a claim within what we deserve."""
    starved = within(ours.allocated + request, ours.deserved)
    return not within(remaining, theirs.allocatable) or (starved and not within(remaining, theirs.deserved))


def _stays_below(after: _After, queue: str, losers: set[str], multiplier: Exact) -> bool:
    """Is the queue within its share, or less saturated than every sibling that loses something?"""
    ours = after.tree[queue]
    saturation = _saturation(after.of(queue), ours.fair_share)
    siblings = [after.tree[n] for n in losers if n != queue and after.tree[n].parent == ours.parent]
    return saturation <= 1 or all(
        not sibling.fair_share or saturation * multiplier < _saturation(after.of(sibling.id), sibling.fair_share)
        for sibling in siblings
    )


def _keeps_quota(queue: Holding, reclaimer: Reclaimer) -> bool:
    return reclaimer.preemptible or within(queue.allocated_non_preemptible + reclaimer.request, queue.deserved)


def _saturation(held: Exact, fair_share: Exact | None) -> Ratio:
    """Held ÷ fair share; 0 where the share has no end."""
    return ratio(0, 1) if fair_share is None else ratio(held, fair_share)
