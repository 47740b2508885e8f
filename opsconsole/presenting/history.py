"""What the last day was like, of the hours that are known: real integrals of the ledgers, no samples.

The state keeps every workload until a day after its end, so that who waited in that day is known too. Two things it
does not keep: earlier holds count as waiting, and who moved has waited in the budget where it is now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from opsconsole.presenting.budgets import p90
from opsconsole.presenting.view import ClusterView
from scheduler_core.ids import BudgetId
from scheduler_core.index import signature
from scheduler_core.shapes import shape_problem
from scheduler_core.shares.owed import owed_hourly
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.units import GPU, HOUR, MINUTE
from scheduler_core.usage import Ledgers, StepFunction
from scheduler_core.workload import WorkloadPhase

HOURS = 24
MARKS = 6  # at which waits are told, an hour apart: more have no room in a title


@dataclass(frozen=True, slots=True)
class Day:
    """`known_ms`: how far back the ledgers reach, a day at most.

    `occupancy` in percent by the hour, the oldest first, None where it is not known. `impact`: delivered over owed
    (rule 31); None where nothing was owed. `waits`: p90 (ms) of the waits so far an hour apart, the last one now.
    """

    known_ms: int
    occupancy: Sequence[float | None]
    impact: Fraction | None
    waits: Sequence[int | None]


class LastDay:
    """Worked out anew each minute at most, for whoever looks on: it moves slowly and ten thousand take a while."""

    def __init__(self) -> None:
        self._at: tuple[int, int] | None = None
        self._day = Day(0, (), None, ())

    def of(self, view: ClusterView) -> Day:
        at = (view.state.began_at, view.state.now // MINUTE)
        if at != self._at:
            self._at, self._day = at, day(view.state)
        return self._day


def day(state: ClusterState) -> Day:
    service = state.ledgers.service
    known = min(HOURS * HOUR, state.now - service.times[0]) if service.times else 0
    waited = [*_waited(state)]
    return Day(known, occupancy_by_hour(state), _impact(state, waited), _waits(state, waited, known))


# -- occupancy ---------------------------------------------------------------------------------------------------------


def occupancy_by_hour(state: ClusterState) -> list[float | None]:
    """Percent of the GPU time in service that runs held, allocated or not, in each of the last hours, oldest first."""
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


def _hourly(step: StepFunction | None, now: int) -> list[int]:
    return [0 if step is None else _between(step, now, hour) for hour in range(HOURS, 0, -1)]


# -- who waited --------------------------------------------------------------------------------------------------------


class Waited(NamedTuple):
    """A span of the last day in which a workload waited; one that still waits does until now."""

    record: WorkloadRecord
    begin: int
    end: int


def _waited(state: ClusterState) -> Iterator[Waited]:
    since = state.now - HOURS * HOUR
    for record in state.workloads.values():
        begin = record.workload.submitted_at
        for attempt in record.attempts:
            if attempt.placed_at > since:
                yield Waited(record, begin, attempt.placed_at)
            begin = attempt.ended_at
        end = _end_of_wait(state, record)
        if end > max(begin, since):
            yield Waited(record, begin, end)


def _end_of_wait(state: ClusterState, record: WorkloadRecord) -> int:
    """Of the last wait, as far as there was one; for how long who is held now had waited before, nobody knows."""
    if record.phase is WorkloadPhase.WAITING:
        return state.now
    if record.run is not None:
        return state.runs[record.run].placed_at
    return (record.ended_at or 0) if not record.attempts else 0


def _waits(state: ClusterState, waited: Sequence[Waited], known_ms: int) -> list[int | None]:
    """By the hour, the last one now: None where the ledgers do not reach, 0 where nobody waited."""
    spans = sorted((-record.workload.submitted_at, begin, end) for record, begin, end in waited)
    found: list[int | None] = []
    for ago in range((MARKS - 1) * HOUR, -1, -HOUR):
        at = state.now - ago
        now = [at + least for least, begin, end in spans if begin < at <= end]  # shortest first: nothing to sort
        found.append((p90(now) or 0) if ago <= known_ms else None)
    return found


# -- owed and delivered ------------------------------------------------------------------------------------------------


def _impact(state: ClusterState, waited: Sequence[Waited]) -> Fraction | None:
    """What was delivered of what was owed to all leaves, each for itself, in the last day as a whole (rule 31)."""
    now, service = state.now, _hourly(state.ledgers.service, state.now)
    wanted = _wanted(state, waited)
    all_owed, toward = Fraction(0), Fraction(0)
    for leaf in state.budgets.leaves:
        delivered, (part, whole) = _hourly(state.ledgers.allocated.get(leaf), now), state.budgets.shares[leaf]
        most = _most(state, leaf) * GPU * HOUR
        both = zip(delivered, wanted.get(leaf, [0] * HOURS), strict=True)
        demand = [whole * min(got + more, most) for got, more in both]  # times the denominator, to stay with integers
        owed = Fraction(sum(owed_hourly([part * gpus for gpus in service], demand)), whole)
        all_owed, toward = all_owed + owed, toward + min(owed, Fraction(sum(delivered)))
    return toward / all_owed if all_owed else None


def _most(state: ClusterState, leaf: BudgetId) -> int:
    """GPUs that may run for it at once (rule 8), as far as that is less than there are."""
    caps = (state.budgets.by_id[budget].max_gpus for budget in state.budgets.chains[leaf])
    return min((cap for cap in caps if cap is not None), default=sum(r.host.gpus for r in state.hosts.values()))


def _wanted(state: ClusterState, waited: Sequence[Waited]) -> Mapping[BudgetId, list[int]]:
    """GPU-thousandths x ms by leaf and hour, of the allocated work that waited and that this cluster can start."""
    hosts, since = [record.host for record in state.hosts.values()], state.now - HOURS * HOUR
    fits: dict[object, bool] = {}
    parts: defaultdict[BudgetId, list[int]] = defaultdict(lambda: [0] * HOURS)
    rates: defaultdict[BudgetId, list[int]] = defaultdict(lambda: [0] * (HOURS + 1))  # of hours waited as a whole
    for record, began, end in waited:
        w = record.workload
        if not w.allocated:
            continue
        if (shape := signature(w)) not in fits:
            fits[shape] = shape_problem(w, hosts) is None
        if not fits[shape]:
            continue
        begin, rate, part = max(began, since) - since, w.gpus * GPU, parts[w.budget]
        first, last = begin // HOUR, (end - since - 1) // HOUR
        if first == last:
            part[first] += rate * (end - since - begin)
            continue
        part[first] += rate * ((first + 1) * HOUR - begin)
        part[last] += rate * (end - since - last * HOUR)
        rates[w.budget][first + 1] += rate
        rates[w.budget][last] -= rate
    return {
        leaf: [p + HOUR * r for p, r in zip(part, accumulate(rates[leaf][:HOURS]), strict=True)]
        for leaf, part in parts.items()
    }
