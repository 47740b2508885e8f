"""What a typed word names: ids always, names where one live workload alone has them."""

from __future__ import annotations

import difflib
import re

from opsconsole.presenting.text import clean, few
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.state import ClusterState, WorkloadRecord
from scheduler_core.workload import WorkloadPhase


def split_run(word: str) -> tuple[str, str]:
    """`loop~2` as `loop` and `~2`; the second is empty where the word is no run's."""
    found = re.fullmatch(r"(.+)(~\d+(?:\.\d+)?)", word)
    return (found[1], found[2]) if found else (word, "")


def find_workload(state: ClusterState, word: str) -> WorkloadId:
    """By its id, by the id of a run of it, or by its name, also with the number of a run as plans print it.

    Raises ValueError "what is wrong; what to do".
    """
    stem, _ = split_run(word)
    for name in (word, stem):
        if WorkloadId(name) in state.workloads:
            return WorkloadId(name)
    named = [record for record in state.workloads.values() if record.workload.name == stem]
    live = [record for record in named if record.phase is not WorkloadPhase.ENDED]
    if len(live) == 1:
        return live[0].workload.id
    if named:
        how_many = f"{len(live)} live workloads are" if live else "no live workload is"
        raise ValueError(f"{how_many} called {clean(stem, 60)!r}; say which one: {_ids(live or named)}")
    known = [name for r in state.workloads.values() for name in (r.workload.id, r.workload.name) if name]
    near = difflib.get_close_matches(stem, known, n=1)
    fix = f"did you mean {near[0]!r}?" if near else "opsconsole queue and opsconsole runs --all list them"
    raise ValueError(f"no workload {clean(word, 60)!r}; {fix}")


def find_leaf(state: ClusterState, path: str) -> BudgetId:
    """A budget that holds workloads, by its path. Raises ValueError "what is wrong; what to do"."""
    if not path:
        raise ValueError(f"say to which budget: {few(sorted(leaf_paths(state)), 6)}")
    found = state.budgets.by_path.get(path)
    if found is None:
        raise ValueError(f"{clean(path, 60)}: {no_budget(state, path)}")
    if not state.budgets.is_leaf(found):
        below = [state.budgets.paths[leaf] for leaf in state.budgets.leaves_below[found]]
        raise ValueError(f"{path} has budgets below it, and only those hold workloads: {few(below, 6)}")
    return found


def leaf_paths(state: ClusterState) -> list[str]:
    """Of the budgets that hold workloads."""
    return [state.budgets.paths[leaf] for leaf in state.budgets.leaves]


def no_budget(state: ClusterState, path: str) -> str:
    """Why a path is none; the nearest one, or what there is."""
    near = difflib.get_close_matches(path, state.budgets.by_path, n=1)
    known = f"did you mean {near[0]}?" if near else f"there are {few(sorted(state.budgets.by_path), 6) or 'none'}"
    return f"no such budget; {known}"


def _ids(records: list[WorkloadRecord]) -> str:
    """The newest first."""
    ids = [record.workload.id for record in sorted(records, key=lambda r: -r.workload.submitted_at)]
    return ", ".join(ids[:10]) + (f", … {len(ids) - 10} more" if len(ids) > 10 else "")
