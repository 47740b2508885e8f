"""Whose budget a job is charged to. Where nobody gives a tree, the names of the log make one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opsconsole.config.scalars import shown
from opsconsole.simulating.job import Job
from opsconsole.simulating.oddities import Odd
from opsconsole.simulating.rules import Drawn, Rules
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.ids import BudgetId

NOBODY = "none"  # the leaf of jobs that name nobody, where leaves are made from the log's names


class Leaves:
    """`tree` is the one that is given, or made."""

    def __init__(self, jobs: Sequence[Job], tree: BudgetTree | None, rules: Rules, seed: int) -> None:
        self.source, ruled = (rules.budget, ()) if isinstance(rules.budget, str) else ("", rules.budget)
        self.ruled = Drawn(ruled, seed, "budget", "")
        self.is_free = self.source in ("", "all") and not ruled  # nobody said whose name counts
        if not self.source:
            named = [name for name in ("project", "user") if any(getattr(job, name) for job in jobs)]
            self.source = named[0] if named else "all"
        if tree is None:
            others = [job for job in jobs if job.budget or not any(rule.fits(job) for rule in ruled)]
            tree = tree_of({normal(value) for rule in ruled for _, value in rule.shares} | set(map(self._path, others)))
        self.tree = tree
        self.known = {tree.by_id[leaf].name: leaf for leaf in _called_once(tree)}
        self.known |= {str(leaf): leaf for leaf in tree.leaves} | {tree.paths[leaf]: leaf for leaf in tree.leaves}

    def _path(self, job: Job) -> str:
        return normal(job.budget or ("all" if self.source == "all" else getattr(job, self.source)))

    def of(self, job: Job) -> BudgetId:
        """By its path, its id, or its name where no other leaf has it; else to the only leaf. Raises Odd."""
        drawn = self.ruled.of(job)
        path = normal(drawn) if drawn and not job.budget else self._path(job)
        others = [job.user] if self.is_free and not drawn and not job.budget else []
        leaf = next((self.known[name] for name in (path, *others) if name in self.known), None)
        if leaf is None and others and len(self.tree.leaves) == 1:
            return self.tree.leaves[0]
        if leaf is None:
            raise Odd("no_budget", f"{job.id} of {shown(path)}")
        return leaf


def normal(path: str) -> str:
    """Without empty parts."""
    return "/".join(part for part in path.split("/") if part) or NOBODY


def _called_once(tree: BudgetTree) -> list[BudgetId]:
    """Leaves whose own name no other leaf has."""
    names = [tree.by_id[leaf].name for leaf in tree.leaves]
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    return [leaf for leaf in tree.leaves if tree.by_id[leaf].name not in twice]


def tree_of(paths: Iterable[str]) -> BudgetTree:
    """A leaf of weight 1 for each path, below budgets of weight 1."""
    found: dict[str, Budget] = {}
    for path in paths:
        parts = path.split("/")
        for depth, name in enumerate(parts, start=1):
            above, here = "/".join(parts[: depth - 1]), "/".join(parts[:depth])
            found[here] = Budget(BudgetId(here), name, BudgetId(above))
    return BudgetTree.of(found.values())
