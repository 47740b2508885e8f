"""What a key is about: rows of any table to the hosts or workloads that they name. Names only, never places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from opsconsole.presenting.overview import about_host
from opsconsole.presenting.sentences import subject_of
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.widgets.table import Table
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId

if TYPE_CHECKING:
    from opsconsole.ui.screens.text import Text


def subjects(table: Table | None, about: str, view: ClusterView) -> list[str]:
    """Of the marked rows, else of the row under the cursor."""
    keys = table.rowset.chosen() if table is not None else ()
    return named([subject for key in keys for subject in _of_row(key, about, view)], about, view)


def named(words: Iterable[str], about: str, view: ClusterView) -> list[str]:
    """Each once, in order. What is unknown stays: the plan says that there is no such thing."""
    return list(dict.fromkeys(words))


def _of_row(key: str, about: str, view: ClusterView) -> Sequence[str]:
    name = explained_name(view, key)
    if about == "host":
        return [name] if HostName(name) in view.state.hosts else []
    workload = name if WorkloadId(name) in view.state.workloads else name.rpartition("~")[0]
    return [workload] if WorkloadId(workload) in view.state.workloads else []


def explained_name(view: ClusterView, key: str) -> str:
    """The thing that a row is about: rows of needs, drains, budgets and the timeline have keys of their own."""
    state = view.state
    if host := about_host(view, key):
        return host
    if (drain := state.drains.get(DrainId(key.removeprefix("drain:")))) is not None:
        return drain.host
    if key.startswith("held:"):
        return key.removeprefix("held:")
    if BudgetId(key) in state.budgets.by_id:
        return state.budgets.paths[BudgetId(key)]
    if key.isdigit() and WorkloadId(key) not in state.workloads:
        happened = next((h for h in reversed(view.happenings) if h.seq == int(key)), None)
        return subject_of(happened.event) if happened is not None else key
    return key


def explained(view: ClusterView, key: str) -> Text:
    """A row's key, or a name, with why it stands as it does; a host with its GPUs."""
    from opsconsole.presenting.explaining import explain_anything
    from opsconsole.presenting.gpus import gpus_table
    from opsconsole.ui.screens.text import Text

    name = explained_name(view, key)
    lines = explain_anything(view, name)
    if lines is None:
        row = key.partition(":")[2] or key
        return Text(f"Explain {row}", [f"nothing is known of {row!r} now: it has ended or left"])
    host = view.state.hosts.get(name)  # type: ignore[call-overload]
    return Text(f"Explain {name}", lines, gpus_table(view, host.host.name) if host is not None else None)
