"""What could stand where the cursor is, on the `:` line: commands, their options, and the names of what there is."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence

from opsconsole.presenting.naming import leaf_paths
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import BY_NAME, Action
from opsconsole.ui.commands import ALIASES, command_words
from opsconsole.ui.window import SPANS

Words = Callable[[ClusterView], Iterable[str]]


def complete_command(text: str, view: ClusterView | None) -> Sequence[str]:
    """Names with blanks come as a shell would want them."""
    *before, word = text.split(" ")
    if not before:
        return command_words()
    action = BY_NAME.get(ALIASES.get(before[0], before[0]))
    if action is None:
        return ()
    if action.plan is not None and (word.startswith("-") or before[-1].startswith("--")):
        return _options(action, before[-1], view)
    if action.words or action.name == "write":
        return (action.words or SPANS) if len(before) == 1 else ()
    names = NAMES.get(action.name) or NAMES.get(action.about)
    return [_as_one_word(name) for name in names(view)] if names is not None and view is not None else ()


def _as_one_word(name: str) -> str:
    return name if name.isprintable() and not set(name) & set(" '\"\\") else shlex.quote(name)


def _options(action: Action, before: str, view: ClusterView | None) -> Sequence[str]:
    """An option, or what the one before it takes."""
    if before == "--mode":
        return action.choices
    if before == "--to":
        return leaf_paths(view.state) if view is not None and action.name == "move" else ()
    if before in ("--for", "--deadline"):
        return SPANS
    return () if before in action.options else [*action.options, *(["--now"] if "now" in action.choices else [])]


def _hosts(view: ClusterView) -> Iterable[str]:
    return sorted(view.state.hosts)


def _workloads(view: ClusterView) -> Iterable[str]:
    """Live ones: ids, then the names that people gave."""
    live = [record.workload for record in view.state.workloads.values() if record.outcome is None]
    return dict.fromkeys([*(w.id for w in live), *(w.name for w in live if w.name)])


def _budgets(view: ClusterView) -> Iterable[str]:
    return view.state.budgets.paths.values()


def _runs(view: ClusterView) -> Iterable[str]:
    return view.state.runs


def _things(view: ClusterView) -> Iterable[str]:
    return [*_hosts(view), *_workloads(view), *_runs(view)]


NAMES: dict[str, Words] = {
    "host": _hosts,
    "workload": _workloads,
    "budget": _budgets,
    "explain": lambda view: [*_things(view), *_budgets(view)],
    "go": _things,
    "notify": _things,
}
