"""Walking the waiting workloads in rule 6's order while commitments change it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from heapq import heapify, heappop, heappush

from scheduler_core.ids import ROOT, BudgetId, WorkloadId
from scheduler_core.index import LeafQueue
from scheduler_core.settled import Blocked, LeafKey, Signature, Spans, covered
from scheduler_core.state import ClusterState

NOBODY: Spans = {}


class LeafCursor:
    """The waiting workloads of a leaf, in order, and what a pass has met among them."""

    def __init__(self, queue: LeafQueue) -> None:
        self.signatures = queue.by_signature
        spans = ((kind, span, keys) for kind, spans in self.signatures.items() for span, keys in spans.items())
        self._heads: list[tuple[LeafKey, Signature, int, int]] = [
            (keys[0], kind, span, 0) for kind, span, keys in spans
        ]
        heapify(self._heads)
        self.blocked: Blocked | None = None  # the first that cannot start, once it was met
        self.capped: dict[Signature, None] = {}  # over a cap (rule 8)
        self.certain = True  # none was kept from starting by a cap or a brake alone

    def next(self, out: Spans = NOBODY) -> tuple[WorkloadId, Signature] | None:
        """The next one in order. Those in `out`, and those over a cap, are left out from now on."""
        while self._heads:
            key, kind, span, at = heappop(self._heads)
            if covered(out, kind, span) or kind in self.capped:
                continue
            keys = self.signatures[kind][span]
            if at + 1 < len(keys):
                heappush(self._heads, (keys[at + 1], kind, span, at + 1))
            return key[2], kind
        return None


class TreeCursor:
    """Takes leaf after leaf, depth first: at each level the best-standing branch that still has work.

    `first` gives the best-standing of some children of a branch.
    """

    def __init__(
        self,
        state: ClusterState,
        queues: dict[BudgetId, LeafQueue],
        first: Callable[[BudgetId, Collection[BudgetId]], BudgetId],
    ) -> None:
        self._chains, self._queues, self._first = state.budgets.chains, queues, first
        self._cursors: dict[BudgetId, LeafCursor] = {}
        self._children: dict[BudgetId, dict[BudgetId, None]] = {}
        self._exhausted: dict[BudgetId, None] = {}
        self._open: dict[BudgetId, None] = {}  # an edit may have given children to one that holds workloads

    def retain(self, leaves: Iterable[BudgetId]) -> None:
        """From now on only these."""
        self._children, self._open = {}, {}
        self.add(leaves)

    def add(self, leaves: Iterable[BudgetId]) -> None:
        """From now on these too, but for those that are exhausted."""
        for leaf in leaves:
            if leaf in self._exhausted:
                continue
            self._open[leaf] = None
            child = leaf
            for parent in (*self._chains[leaf][1:], ROOT):
                kids = self._children.setdefault(parent, {})
                if child in kids:
                    break
                kids[child] = None
                child = parent

    def leaf(self, leaf: BudgetId) -> LeafCursor:
        """Where the walk of this leaf stands."""
        if (cursor := self._cursors.get(leaf)) is None:
            cursor = self._cursors[leaf] = LeafCursor(self._queues[leaf])
        return cursor

    def best(self) -> BudgetId | None:
        """The leaf whose turn it is at the standings of this moment."""
        at = ROOT
        while kids := self._children.get(at):
            at = next(iter(kids)) if len(kids) == 1 else self._first(at, kids)
        return at if at != ROOT else None

    def exhaust(self, leaf: BudgetId) -> None:
        """The leaf has nothing more that could start in this pass."""
        self._exhausted[leaf] = None
        self.drop(leaf)

    def drop(self, leaf: BudgetId) -> None:
        """Not now; it may be added again."""
        child = leaf
        del self._open[leaf]
        for parent in (*self._chains[leaf][1:], ROOT):
            kids = self._children[parent]
            del kids[child]
            if kids or parent in self._open:
                return
            child = parent
