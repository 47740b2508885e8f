"""Many futures as ranges: the median, and between which two values four of five lie. The same keys as `--json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from fractions import Fraction
from typing import Any

from opsconsole.config.units import format_instant
from opsconsole.forecasting.draft import NO_CHANGE
from opsconsole.forecasting.futures import Lived, Question
from opsconsole.forecasting.past import BASES
from opsconsole.forecasting.world import ANSWERS
from opsconsole.simulating.metrics import DIGITS, quantile
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.units import MINUTE
from scheduler_core.workload import Workload, WorkloadPhase

Values = Sequence[float | None]  # one of each future; None: later than the horizon, or nothing to measure
SIDES = ("now", "draft")
PARTS = {"low": Fraction(1, 10), "median": Fraction(1, 2), "high": Fraction(9, 10)}
MOVED_S = MINUTE / 1000  # what starts so much sooner or later, in the median, moves


def spread(values: Values) -> dict[str, float | None]:
    """`low median high`. None counts as more than everything."""
    ordered = sorted(values, key=lambda value: (value is None, value or 0.0))
    places = {name: quantile(range(len(ordered)), part) for name, part in PARTS.items()}
    return {name: None if at is None else ordered[at] for name, at in places.items()}


def as_json(question: Question, lived: Sequence[Sequence[Lived]], as_of_ms: int) -> dict[str, Any]:
    """The keys of docs/whatif.md. `as_of_ms`: the wall clock of the state. Spans in s, from then on."""
    draft = question.draft or NO_CHANGE
    return {
        "as_of": format_instant(as_of_ms),
        "horizon_s": question.horizon_ms / 1000,
        "futures": question.futures,
        "seed": question.seed,
        "draft": list(draft.said),
        "rests_on": _rests_on(question),
        "figures": _figures(lived, lambda future: future.figures),
        "budgets": _budgets(question, lived),
        "hosts": _hosts(lived),
        "starts": _starts(question, lived),
        "stops": _stops(question, lived),
    }


def _rests_on(question: Question) -> dict[str, Any]:
    """What the lengths and the arrivals were drawn from, and which hosts nobody hears."""
    nearest = Counter(BASES[question.past.basis(w).nearest] for w in question.living)
    hosts, workloads = question.state.hosts, question.state.workloads.values()
    return {
        "ended": sum(record.phase is WorkloadPhase.ENDED for record in workloads),
        "lengths": {basis: nearest[basis] for basis in BASES if nearest[basis]},
        "arrivals": {"window_s": question.arrivals.window_ms / 1000, "workloads": len(question.arrivals.seen)},
        "silent_hosts": sorted(name for name, record in hosts.items() if record.reach not in ANSWERS),
    }


def _compared(sides: Sequence[Values]) -> dict[str, Any]:
    """With a draft also the difference, future by future; None where either side has no value."""
    found: dict[str, Any] = {name: spread(values) for name, values in zip(SIDES, sides, strict=False)}
    if len(sides) == 2:
        pairs = [(a, b) for a, b in zip(*sides, strict=True) if a is not None and b is not None]
        found["difference"] = spread([round(b - a, DIGITS) for a, b in pairs]) if pairs else None
    return found


def _figures(lived: Sequence[Sequence[Lived]], of: Callable[[Lived], dict[str, Any]]) -> dict[str, Any]:
    keys = of(lived[0][0])
    return {key: _compared([[of(future).get(key) for future in side] for side in lived]) for key in keys}


def _budgets(question: Question, lived: Sequence[Sequence[Lived]]) -> list[dict[str, Any]]:
    """Those that have work in any future."""
    paths = question.state.budgets.paths
    leaves = {leaf for side in lived for future in side for leaf in future.budgets}
    keys = next((list(found) for side in lived for future in side for found in future.budgets.values()), [])
    nothing = dict.fromkeys(keys)
    found = []
    for leaf in sorted(leaves, key=lambda leaf: paths[leaf]):
        sides = [[future.budgets.get(leaf, nothing) for future in side] for side in lived]
        figures = {key: _compared([[got[key] for got in side] for side in sides]) for key in keys}
        found.append({"path": paths[leaf], **figures})
    return found


def _hosts(lived: Sequence[Sequence[Lived]]) -> list[dict[str, Any]]:
    """When those that are drained are known empty."""
    names: dict[HostName, None] = {name: None for side in lived for future in side for name in future.emptied}
    found = []
    for name in names:
        sides = [[_s(future.emptied.get(name)) for future in side] for side in lived]
        known = [any(name in future.emptied for future in side) for side in lived]
        row: dict[str, Any] = {
            side: spread(values) if is_known else None
            for side, values, is_known in zip(SIDES, sides, known, strict=False)
        }
        found.append({"host": name, "empty": row})
    return found


def _starts(question: Question, lived: Sequence[Sequence[Lived]]) -> list[dict[str, Any]]:
    """Of what waits now and what the draft submits: when it starts, those that move most first."""
    draft, paths = question.draft or NO_CHANGE, question.state.budgets.paths
    own = {w.id for w in draft.submitted}
    workloads = {w.id: w for w in (*question.living, *draft.submitted)}
    found = []
    for wid in dict.fromkeys(wid for side in lived for wid in side[0].starts):
        sides = [[_s(future.starts.get(wid)) for future in side] for side in lived]
        row = _start(workloads[wid], paths, sides, wid in own)
        row["moved_s"] = None if wid in own or len(sides) < 2 else _moved(sides, question.horizon_ms / 1000)
        row["moves"] = _word(row["moved_s"])
        found.append(row)
    found.sort(key=lambda row: (not row["submitted_by_draft"], -abs(row["moved_s"] or 0)))
    return found


def _start(w: Workload, paths: Mapping[BudgetId, str], sides: Sequence[Values], own: bool) -> dict[str, Any]:
    """`within`: the part of the futures in which it starts before the horizon. Now there is none that is `own`."""
    known = {name: values for name, values in zip(SIDES, sides, strict=False) if not own or name == "draft"}
    return {
        "workload": w.id,
        "name": w.name,
        "budget": paths[w.budget],
        "gpus": w.gpus,
        "submitted_by_draft": own,
        "starts": {name: spread(values) for name, values in known.items()} if own else _compared(sides),
        "within": {name: _share([value is not None for value in values]) for name, values in known.items()},
    }


def _word(moved_s: float | None) -> str:
    if moved_s is None:
        return ""
    return "sooner" if moved_s <= -MOVED_S else "later" if moved_s >= MOVED_S else "same"


def _moved(sides: Sequence[Values], horizon_s: float) -> float:
    """The median of how much later it starts, in s; what does not start counts as if it did at the horizon."""
    ends = [[horizon_s if value is None else value for value in side] for side in sides]
    differences = spread([round(b - a, DIGITS) for a, b in zip(*ends, strict=True)])
    return differences["median"] or 0.0


def _stops(question: Question, lived: Sequence[Sequence[Lived]]) -> list[dict[str, Any]]:
    """Of what runs now: in which part of the futures it is stopped for others or for a drain, and for whom."""
    state, paths = question.state, question.state.budgets.paths
    known = {w.id for w in (*question.living, *(question.draft or NO_CHANGE).submitted)}
    found: list[dict[str, Any]] = []
    for wid in dict.fromkeys(wid for side in lived for future in side for wid in future.stopped):
        record = state.workloads[wid]
        stops = [future.stopped[wid] for future in lived[-1] if wid in future.stopped]
        whom = Counter(_whom(stop, known) for stop in stops)
        found.append(
            {
                "workload": wid,
                "run": record.run,
                "name": record.workload.name,
                "budget": paths[record.workload.budget],
                "gpus": record.workload.gpus,
                "comes_back": record.workload.comes_back,
                "share": {
                    name: _share([wid in future.stopped for future in side])
                    for name, side in zip(SIDES, lived, strict=False)
                },
                "for": [name for name, _ in whom.most_common()],
            }
        )
    found.sort(key=lambda row: -max(row["share"].values()))
    return found


def _whom(stop: StopDecided, known: Container[WorkloadId]) -> str:
    if stop.cause is not StopCause.PREEMPT or stop.for_workload is None:
        return "a drain"
    return stop.for_workload if stop.for_workload in known else "an arrival"


def _share(holds: Sequence[bool]) -> float:
    return round(sum(holds) / len(holds), DIGITS)


def _s(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
