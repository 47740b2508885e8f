"""What the ledgers tell of the last day: real integrals, no samples. An hour of which they know nothing is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from opsconsole.presenting.view import ClusterView
from scheduler_core.ids import BudgetId
from scheduler_core.units import HOUR
from scheduler_core.usage import Ledgers, StepFunction

HOURS = 24


def occupancy_by_hour(view: ClusterView) -> list[float | None]:
    """Percent of the GPU time in service that runs held, allocated or not, in each of the last hours, oldest first."""
    state = view.state
    ledgers, now = state.ledgers, state.now
    tops = [chain[-1] for chain in state.budgets.chains.values() if len(chain) == 1]
    held = [step for budget in tops for step in _both(ledgers, budget) if step.times]
    hours: list[float | None] = []
    for hour in range(HOURS, 0, -1):
        service = _between(ledgers.service, now, hour) if _known(ledgers.service, now - hour * HOUR) else 0
        used = sum(_between(step, now, hour) for step in held)
        hours.append(100 * used / service if service else None)
    return hours


def _both(ledgers: Ledgers, budget: BudgetId) -> Sequence[StepFunction]:
    found = (kept.get(budget) for kept in (ledgers.allocated, ledgers.unallocated))
    return [step for step in found if step is not None]


def _known(step: StepFunction, at: int) -> bool:
    return bool(step.times) and step.times[0] <= at + HOUR // 2


def _between(step: StepFunction, now: int, hour: int) -> int:
    """The integral over the hour that began so many hours ago."""
    return step.within(now, hour * HOUR) - step.within(now, (hour - 1) * HOUR)
