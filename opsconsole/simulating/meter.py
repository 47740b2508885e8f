"""Integrals of what each budget asked for and held, hour by hour of a period. GPUs x ms, integers throughout."""

from __future__ import annotations

from scheduler_core.budget import BudgetTree
from scheduler_core.ids import BudgetId
from scheduler_core.units import HOUR

DEMAND, ALLOCATED, UNALLOCATED = range(3)


class Account:
    """Of one budget with all below it.

    `hours`: demand, held allocated, held unallocated, by hour; hours without any are left out. Demand is the GPUs of
    allocated runs and of startable allocated work that waits (rule 31); no more than `cap` can start.
    """

    __slots__ = ("begin", "cap", "hours", "rates", "reached")

    def __init__(self, begin: int, cap: int | None) -> None:
        self.begin = self.reached = begin
        self.cap = cap
        self.rates = [0, 0, 0]  # wanted, held allocated, held unallocated: GPUs from `reached` on
        self.hours: dict[int, list[int]] = {}

    def settle(self, at: int) -> None:
        """Integrates up to `at`, which is no earlier than before."""
        reached, (wanted, allocated, unallocated) = self.reached, self.rates
        if at <= reached:
            return
        self.reached = at
        if not (wanted or allocated or unallocated):
            return
        demand = wanted if self.cap is None else min(wanted, self.cap)
        hour = (reached - self.begin) // HOUR
        while reached < at:
            end = min(at, self.begin + (hour + 1) * HOUR)
            took = end - reached
            amounts = self.hours.setdefault(hour, [0, 0, 0])
            amounts[DEMAND] += demand * took
            amounts[ALLOCATED] += allocated * took
            amounts[UNALLOCATED] += unallocated * took
            reached, hour = end, hour + 1

    def total(self, which: int) -> int:
        """Of all hours."""
        return sum(amounts[which] for amounts in self.hours.values())


class Meter:
    """An account for each budget of the tree, from `begin` on; and one of the GPUs in service, as if they were held."""

    def __init__(self, tree: BudgetTree, begin: int) -> None:
        self.tree, self.begin = tree, begin
        self.accounts = {budget: Account(begin, _cap(tree, budget)) for budget in tree.by_id}
        self.service = Account(begin, None)
        self.chains = {leaf: [self.accounts[budget] for budget in tree.chains[leaf]] for leaf in tree.leaves}

    def wants(self, leaf: BudgetId, at: int, gpus: int) -> None:
        """So many more GPUs are asked for by allocated work; fewer where it is negative."""
        for account in self.chains[leaf]:
            account.settle(at)
            account.rates[DEMAND] += gpus

    def holds(self, leaf: BudgetId, at: int, gpus: int, allocated: bool) -> None:
        """So many more GPUs are held."""
        which = ALLOCATED if allocated else UNALLOCATED
        for account in self.chains[leaf]:
            account.settle(at)
            account.rates[which] += gpus

    def serves(self, at: int, gpus: int) -> None:
        """So many GPUs are in service from now on."""
        self.service.settle(at)
        self.service.rates[ALLOCATED] = gpus

    def close(self, end: int) -> None:
        """All hours up to the end of the period."""
        for account in (self.service, *self.accounts.values()):
            account.settle(end)


def _cap(tree: BudgetTree, budget: BudgetId) -> int | None:
    """The least `max_gpus` of the budget and those above it."""
    caps = [cap for at in tree.chains[budget] if (cap := tree.by_id[at].max_gpus) is not None]
    return min(caps, default=None)
