"""The cheapest victims on one host, exactly (rule 18): a knapsack over the GPUs that they free.

Sets compare by the GPUs they take from the last tier, then from the one before, and so on; then by work lost, number of
runs, ids. A set from which a run could be left out is no answer. So the smallest run of the set is tried in turn: a set
with smallest run m is whole and minimal exactly when it frees at least what is missing and less than that plus m.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler_core.victims import Victim

BASE = 1 << 12  # more than any host has GPUs: GPUs by tier as digits of one number
UNLIMITED = 1 << 60


class Item(NamedTuple):
    """A victim and the GPUs that it frees on the host in question."""

    victim: Victim
    freed: int


class Marked(NamedTuple):
    """With the digit of its tier, and the bit of its id: the lowest id has the highest bit."""

    item: Item
    digit: int
    bit: int


Cost = tuple[int, int, int, int]  # GPUs by tier as digits, lost, runs, minus the bits of ids
State = tuple[Cost, tuple[Victim, ...]]


def cheapest(items: Sequence[Item], missing: int, allowance: int = UNLIMITED) -> tuple[Victim, ...] | None:
    """The victims that free `missing` GPUs; None where none do. Allocated ones may hold `allowance` GPUs in all."""
    fitting, freed, least = [], 0, missing
    for item in items:
        if item.victim.allocated_gpus <= allowance:
            fitting.append(item)
            freed += item.freed
            least = min(least, item.freed)
    if freed < missing:
        return None
    if least == missing:
        return _single(fitting)
    marked = _marked(fitting)
    best: State | None = None
    for least in sorted({i.freed for i in fitting}):
        found = _fill([m for m in marked if m.item.freed >= least], missing, missing + least - 1, allowance)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return None if best is None else best[1]


def _single(items: Sequence[Item]) -> tuple[Victim, ...]:
    """Each suffices alone."""
    best = min(items, key=lambda i: (i.victim.tier, i.victim.lost, i.victim.run.id))
    return (best.victim,)


def _marked(items: Sequence[Item]) -> list[Marked]:
    """The first tier first, so that what is freed beyond the need is laid to the last one."""
    digits = {tier: BASE**n for n, tier in enumerate(sorted({i.victim.tier for i in items}))}
    bits = {run: 1 << n for n, run in enumerate(sorted((i.victim.run.id for i in items), reverse=True))}
    marked = [Marked(i, digits[i.victim.tier], bits[i.victim.run.id]) for i in items]
    return sorted(marked, key=lambda m: (m.item.victim.tier, -m.bit))


def _fill(items: Sequence[Marked], missing: int, most: int, allowance: int) -> State | None:
    """The best set that frees from `missing` to `most` GPUs."""
    tight = sum(m.item.victim.allocated_gpus for m in items) > allowance
    states: dict[tuple[int, int], State] = {(0, 0): ((0, 0, 0, 0), ())}  # by GPUs freed, GPUs of allocated runs
    for (victim, freed), digit, bit in items:
        held = victim.allocated_gpus if tight else 0
        for (have, allocated), (cost, chosen) in list(states.items()):
            then = have + freed
            if have >= missing or then > most or allocated + held > allowance:
                continue
            taken = min(missing, then) - have
            total = (cost[0] + taken * digit, cost[1] + victim.lost, cost[2] + 1, cost[3] - bit)
            known = states.get((then, allocated + held))
            if known is None or total < known[0]:
                states[then, allocated + held] = (total, (*chosen, victim))
    whole = [state for (have, _), state in states.items() if have >= missing]
    return min(whole, key=lambda state: state[0]) if whole else None
