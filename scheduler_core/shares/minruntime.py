"""Minimum runtimes by branch (KAI): how long a run is protected from whom. Spans in any one unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scheduler_core.shares.trees import TOP, by_id, path

Method = Literal["lca", "queue"]


@dataclass(frozen=True, slots=True)
class Branch:
    """What a queue sets for all below it; None: whatever is set above."""

    id: str
    parent: str = TOP
    preempt_min_runtime: int | None = None  # against its own queue
    reclaim_min_runtime: int | None = None  # against other queues


def preempt_min_runtime(branches: Iterable[Branch], victim: str, default: int = 0) -> int:
    """Against those of the victim's own queue: the nearest that is set, up the tree."""
    tree = by_id(branches)
    return _nearest([tree[name].preempt_min_runtime for name in path(tree, victim)], default)


def reclaim_min_runtime(
    branches: Iterable[Branch], claimant: str, victim: str, default: int = 0, method: Method = "lca"
) -> int:
    """Against a claimant of another queue.

    `queue`: the nearest that is set, from the victim's queue up. `lca`: the nearest from the victim's side of the
    lowest common ancestor up, so that what a branch sets inside counts inside only.
    """
    tree = by_id(branches)
    ours, theirs = path(tree, claimant), path(tree, victim)
    if method == "lca":
        shared = sum(a == b for a, b in zip(ours, theirs, strict=False))
        theirs = theirs[: shared + 1]
    return _nearest([tree[name].reclaim_min_runtime for name in theirs], default)


def may_evict(ran: int, min_runtime: int, running: int, evicted: int, min_available: int) -> bool:
    """May `evicted` of the `running` members go? Inside the min runtime only such as leave `min_available` behind."""
    return ran >= min_runtime or running - evicted >= min_available


def _nearest(set_on_path: list[int | None], default: int) -> int:
    """The last that is set on a path from the top down."""
    return next((value for value in reversed(set_on_path) if value is not None), default)
