"""Walking the waiting workloads in rule 6's order while commitments change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from scheduler_core.ids import ROOT, BudgetId, WorkloadId
from scheduler_core.index import LeafKey, LeafQueue, Signature
from scheduler_core.state import ClusterState


class LeafCursor:
    """The waiting workloads of a leaf, in order. Signatures that cannot start any more in this pass are left out."""

    def __init__(self, queue: LeafQueue) -> None:
        self._lists = queue.by_signature
        self._heads: list[tuple[LeafKey, Signature, int]] = [(k[0], s, 0) for s, k in self._lists.items()]
        heapify(self._heads)
        self.head_blocked = False

    def next(self, dead: dict[Signature, None]) -> tuple[WorkloadId, Signature] | None:
        """The next one in order whose signature is not in `dead`."""
        while self._heads:
            key, signature, at = heappop(self._heads)
            if self.head_blocked and signature in dead:
                continue
            keys = self._lists[signature]
            if at + 1 < len(keys):
                heappush(self._heads, (keys[at + 1], signature, at + 1))
            return key[2], signature
        return None


class TreeCursor:
    """Takes leaf after leaf, depth first: at each level the best-standing branch that still has work."""

    def __init__(self, state: ClusterState, queues: dict[BudgetId, LeafQueue], order: Callable[[BudgetId], object]):
        self._children: dict[BudgetId, list[BudgetId]] = {}
        self._state, self._order = state, order
        self.leaves = {leaf: LeafCursor(queue) for leaf, queue in queues.items() if queue.by_signature}
        for leaf in self.leaves:
            child = leaf
            for parent in (*state.budgets.chains[leaf][1:], ROOT):
                kids = self._children.setdefault(parent, [])
                if child in kids:
                    break
                kids.append(child)
                child = parent

    def best(self) -> BudgetId | None:
        """The leaf whose turn it is at the standings of this moment."""
        at = ROOT
        while kids := self._children.get(at):
            at = kids[0] if len(kids) == 1 else min(kids, key=self._order)  # type: ignore[arg-type]
        return at if at != ROOT else None

    def exhaust(self, leaf: BudgetId) -> None:
        """The leaf has nothing more that could start in this pass."""
        child = leaf
        for parent in (*self._state.budgets.chains[leaf][1:], ROOT):
            self._children[parent].remove(child)
            if self._children[parent]:
                return
            child = parent


def in_order(state: ClusterState, cursor: TreeCursor) -> Iterator[WorkloadId]:
    """Every waiting workload at unchanging standings: the queue as people see it."""
    while (leaf := cursor.best()) is not None:
        while (found := cursor.leaves[leaf].next({})) is not None:
            yield found[0]
        cursor.exhaust(leaf)
