"""Explanations in sentences that one understands without knowing the algorithm, with the figures behind them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from opsconsole.presenting.explaining_budgets import budget_figures, budget_lines
from opsconsole.presenting.explaining_hosts import host_figures, host_lines
from opsconsole.presenting.explaining_work import (
    run_figures,
    run_lines,
    stop_figures,
    stop_lines,
    workload_figures,
    workload_lines,
)
from opsconsole.presenting.needs import needs
from opsconsole.presenting.sentences import sentence, subject_of
from opsconsole.presenting.text import clean, day_seconds
from opsconsole.presenting.view import ClusterView, Happening
from scheduler_core.decisions import StopDecided
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.state import WorkloadRecord

WHOLE = 1000  # there is room for it, and what to do stands at its end
MOST_TOLD = 40  # rows of the journal about something that the state has forgotten
Kind = Literal["host", "budget", "workload", "run", "past"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """`lines` are for people, cleaned. `figures` are the same for scripts, by kind."""

    kind: Kind
    name: str
    lines: list[str]
    figures: dict[str, Any]


def explain_anything(view: ClusterView, name: str) -> Explanation | None:
    """A host, a budget's path, a run or a workload, and what a person has to do about it; None where nothing has
    that name.
    """
    state = view.state
    if (host := state.hosts.get(HostName(name))) is not None:
        return _explained(view, "host", name, host_lines(view, host), host_figures(view, host), name)
    if (budget := state.budgets.by_path.get(name)) is not None:
        return _explained(view, "budget", name, budget_lines(view, budget), budget_figures(view, budget))
    if (record := state.workloads.get(WorkloadId(name))) is not None:
        return _explained(view, "workload", name, workload_lines(view, record), workload_figures(view, record), name)
    record = _of_run(view, RunId(name))
    if record is None:
        return None
    lines, figures = run_lines(view, record, RunId(name)), run_figures(view, record, RunId(name))
    return _explained(view, "run", name, lines, figures, record.workload.id)


def _of_run(view: ClusterView, name: RunId) -> WorkloadRecord | None:
    """The workload of a run that lives or is known to have ended."""
    record = view.state.workloads.get(WorkloadId(name.rpartition("~")[0]))
    known = record is not None and (record.run == name or any(a.run == name for a in record.attempts))
    return record if known else None


def _explained(
    view: ClusterView, kind: Kind, name: str, lines: list[str], figures: dict[str, Any], about: str = ""
) -> Explanation:
    """With what a person has to do about it."""
    todo = [line for need in needs(view) if about and need.about == about for line in need.sentences()]
    return Explanation(kind, name, [clean(line, WHOLE) for line in (*lines, *todo)], figures)


def explain_past(view: ClusterView, happenings: Iterable[Happening], name: str) -> Explanation | None:
    """What the journal tells of something that the state has forgotten: a preemption keeps its grounds for ever
    (rule 23). `happenings`, oldest first.
    """
    lines: list[str] = []
    stops: list[dict[str, Any]] = []
    for happening in happenings:
        about = subject_of(happening.event)
        if name in (about, about.rpartition("~")[0]):
            lines.append(f"{day_seconds(happening.wall_ms, view.wall_ms)} {sentence(happening.event)}.")
            if isinstance(happening.event, StopDecided):
                lines += stop_lines(view, happening.event, None)
                stops.append(stop_figures(view, happening.event, None))
    if not lines:
        return None
    shown = lines[-MOST_TOLD:]
    left_out = [f"and {len(lines) - len(shown)} lines before that"] if len(lines) > len(shown) else []
    first = f"{name} is over and forgotten; the journal tells:"
    return Explanation("past", name, [clean(line, WHOLE) for line in (first, *left_out, *shown)], {"stops": stops})


def unknown_name(view: ClusterView, name: str) -> str:
    """That nothing has the name now: with those that are like it, for it may be a slip."""
    state = view.state
    known = [*state.hosts, *state.budgets.by_path, *state.workloads]
    near = difflib.get_close_matches(name, map(str, known), 3)
    if near:
        return clean(f"no host, workload or budget {name!r}; did you mean {' or '.join(near)}?")
    return clean(f"no host, workload or budget {name!r}; what ended long ago is forgotten, the timeline (7) may tell")
