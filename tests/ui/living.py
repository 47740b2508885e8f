"""A cluster that goes on: with every poll somebody submits and somebody ends, hosts say other figures."""

from __future__ import annotations

from itertools import count

from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.observations import By, CancelRequested, WorkloadSubmitted
from scheduler_core.units import MINUTE
from scheduler_core.workload import Workload
from tests.ui.worlds import busy_world, probe

KEPT = 200  # lines of the timeline, as a follower keeps some thousands
LIVES = 6  # polls
ASKED = By("kim", "soak")


class LivingWorld:
    """Half an hour passes with every poll, so that a day, for which what has ended is known, takes 48 of them."""

    def __init__(self) -> None:
        self.source = busy_world()
        self._number = count()

    def poll(self) -> None:
        source, number = self.source, next(self._number)
        leaf = BudgetId(source.state.budgets.leaves[number % len(source.state.budgets.leaves)])
        workload = Workload(WorkloadId(f"soak-{number}"), leaf, 1 + number % 8, 0, source.cluster.now, owner="bo")
        source.happen(WorkloadSubmitted(workload), later_ms=30 * MINUTE)
        if number >= LIVES:
            source.happen(CancelRequested(WorkloadId(f"soak-{number - LIVES}"), ASKED))
        del source.happenings[:-KEPT]
        for at, name in enumerate(source.cluster.hosts):
            source.probes[name] = probe(8, busy=(number + at) % 100)
            source.ages[name] = 0.1 * (number % 30)
        source.changed()
