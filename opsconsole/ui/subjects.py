"""What a key is about: rows of any table to what they name. Names only, never places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opsconsole.presenting.gpus import run_at
from opsconsole.presenting.naming import find_workload
from opsconsole.presenting.needs import Need, needs
from opsconsole.presenting.sentences import subject_of
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.places import Place, detail_of
from opsconsole.ui.widgets.table import Table
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId

STEP = "step:"  # rows of the steps of a drain
NAMELESS = ("log", "line", "kernel", "verdict", "warning", "counter", "gpu")  # rows of nothing that has a name

if TYPE_CHECKING:
    from opsconsole.ui.screens.text import Text


def subjects(table: Table | None, about: str, view: ClusterView) -> list[str]:
    """Of the marked rows, else of the row under the cursor."""
    keys = table.rowset.chosen() if table is not None else ()
    return named([subject for key in keys for subject in _of_row(key, about, view)], about, view)


def named(words: Iterable[str], about: str, view: ClusterView) -> list[str]:
    """Each once, in order; workloads by their names too. What is unknown stays: the plan says that there is none."""
    return list(dict.fromkeys(workload_of(view, word) if about == "workload" else word for word in words))


def workload_of(view: ClusterView, word: str) -> str:
    """Its id, where it is an id, a run's, or the name that one live workload has; else the word."""
    try:
        return find_workload(view.state, word)
    except ValueError:
        return word


def _of_row(key: str, about: str, view: ClusterView) -> Sequence[str]:
    name = explained_name(view, key)
    if about == "host":
        return [name] if HostName(name) in view.state.hosts else []
    if about == "budget":
        return [name] if name in view.state.budgets.by_path else []
    workload = name if WorkloadId(name) in view.state.workloads else name.rpartition("~")[0]
    return [workload] if WorkloadId(workload) in view.state.workloads else []


def explained_name(view: ClusterView, key: str) -> str:
    """The thing that a row is about: rows of needs, drains, budgets and the timeline have keys of their own."""
    state = view.state
    if key.startswith(STEP):
        key = key.removeprefix(STEP).rpartition(":")[0]
    if (drain := state.drains.get(DrainId(key))) is not None:
        return drain.host
    if (need := _need(view, key)) is not None:
        return need.about
    if BudgetId(key) in state.budgets.by_id:
        return state.budgets.paths[BudgetId(key)]
    if key.isdigit() and WorkloadId(key) not in state.workloads:
        happened = next((h for h in reversed(view.happenings) if h.seq == int(key)), None)
        return subject_of(happened.event) if happened is not None else key
    return key


def opened(view: ClusterView, key: str, here: Place) -> Place | None:
    """The detail that a row leads to. `here`: the page that it stands on. None: it has none."""
    kind, _, slot = key.partition(":")
    record = view.state.hosts.get(HostName(here.subject))
    if kind == "gpu" and record is not None:
        run = run_at(view.state, record, int(slot))
        return None if run is None else detail_of(view, run)
    name = explained_name(view, key)
    return detail_of(view, name) or detail_of(view, workload_of(view, name)) if name else None


def _need(view: ClusterView, key: str, alerts: Mapping[str, str] | None = None) -> Need | None:
    """Rows of needs have a colon in their keys, which no name has."""
    return next((need for need in needs(view, alerts) if need.key == key), None) if ":" in key else None


def explained(view: ClusterView, key: str, alerts: Mapping[str, str] | None = None) -> Text:
    """A row's key, or a name, with why it stands as it does; a host with its GPUs."""
    from opsconsole.presenting.explaining import explain_anything, explain_past, unknown_name
    from opsconsole.presenting.gpus import gpus_table
    from opsconsole.ui.screens.text import Text

    need = _need(view, key, alerts)
    if need is not None and not need.about:
        return Text(f"Needs a person: {need.what}", need.sentences())
    name = explained_name(view, key)
    found = explain_anything(view, name) or explain_anything(view, workload_of(view, name))
    found = found or explain_past(view, view.happenings, name)
    if found is None:
        return Text(f"Explain {name or key}", [unknown_name(view, name or key)])
    table = gpus_table(view, HostName(name)) if found.kind == "host" else None
    return Text(f"Explain {name}", found.lines, table)
