"""Why a budget stands where it stands (rules 4 to 8), with the figures of the moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opsconsole.presenting.budgets import running_by_budget, waiting_by_budget
from opsconsole.presenting.text import count, gpu_hours, ordinal, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.decisions import Standing
from scheduler_core.fairshare import Standings
from scheduler_core.grounds import told_apart
from scheduler_core.ids import BudgetId
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU_HOUR, WEIGHT


def budget_lines(view: ClusterView, budget: BudgetId) -> list[str]:
    """Its share, what it has got, where it stands at each level and why, what limits it, what runs and waits."""
    state = view.state
    state.index.expire(state.now)
    standings = Standings(state)
    levels = [_stands(standings, level) for level in reversed(state.budgets.chains[budget])]
    limits = [_limit(state, level) for level in state.budgets.chains[budget]]
    work = [*_by_hand(state, budget), *filter(None, limits), _work(state, budget)]
    return [*_share(state, standings, budget), *levels, *work]


def _share(state: ClusterState, standings: Standings, budget: BudgetId) -> Iterator[str]:
    tree, path = state.budgets, state.budgets.paths[budget]
    b = tree.by_id[budget]
    siblings = sum(tree.by_id[kid].weight for kid in tree.children[b.parent])
    weight = f"weight {b.weight / WEIGHT:g} of {siblings / WEIGHT:g} among its siblings"
    yield (
        f"{path} is guaranteed {float(tree.fractions[budget]):.1%} of the cluster: "
        f"{gpu_hours(int(standings.entitlement(budget)))} GPU-h in {span(standings.lookback)}; {weight}."
    )
    yield (
        f"It has got {gpu_hours(standings.usage(budget))} GPU-h and has "
        f"{gpu_hours(standings.committed(budget))} GPU-h promised to runs, which counts as got."
    )


def _stands(standings: Standings, level: BudgetId) -> str:
    """Its place among its siblings, and what keeps it from the one before and from the one behind."""
    tree = standings.tree
    siblings = standings.ranked(tree.by_id[level].parent)
    place, path = siblings.index(level), tree.paths[level]
    if len(siblings) == 1:
        return f"{path} has no siblings to stand against: it has got {_balance(standings, level)}."
    line = f"{path} stands {ordinal(place + 1)} of {len(siblings)} among its siblings at {_balance(standings, level)}"
    if place:
        line += f"; behind {_than(standings, siblings[place - 1], level)}"
    if place + 1 < len(siblings):
        line += f"; before {_than(standings, level, siblings[place + 1], of_other=True)}"
    return f"{line}."


def _than(standings: Standings, better: BudgetId, worse: BudgetId, of_other: bool = False) -> str:
    """The other one, both balances in figures that differ, and which part of the standing tells them apart (rule 6)."""
    tree, (mine, other) = standings.tree, (better, worse) if of_other else (worse, better)
    one, two = tree.paths[better], tree.paths[worse]
    (no_share, over, priority, ratio), than = standings.key(better), standings.key(worse)
    if no_share != than[0]:
        why = f"{two} has no share of its own"
    elif over != than[1]:
        why = f"only {two} is over its share"
    elif priority != than[2]:
        why = f"both are over their share and {one} goes first then (over_budget_priority)"
    elif ratio != than[3]:
        why = f"{one} has had less of its share{', as over_budget_weight counts' if over else ''}"
    else:
        why = "they are level, so their names decide"
    return f"{tree.paths[other]} ({_against(standings, mine, other)}), for {why}"


def _against(standings: Standings, mine: BudgetId, other: BudgetId) -> str:
    owed = [standings.entitlement(b) for b in (mine, other)]
    if not all(owed):
        return _balance(standings, other)
    charged = (standings.charged(b) for b in (mine, other))
    return "{} against {}".format(*told_apart(*(float(c / e) for c, e in zip(charged, owed, strict=True))))


def _balance(standings: Standings, budget: BudgetId) -> str:
    """With what is promised."""
    owed = standings.entitlement(budget)
    return f"{float(standings.charged(budget) / owed):.2f} of its share" if owed else "no share"


def _by_hand(state: ClusterState, budget: BudgetId) -> Iterator[str]:
    if (hand := state.weights.get(budget)) is not None:
        before = f"the inventory says {hand.instead_of / WEIGHT:g}"
        yield f"Its weight {hand.weight / WEIGHT:g} is by hand, {before}: {hand.by}."


def _limit(state: ClusterState, level: BudgetId) -> str:
    most = state.budgets.by_id[level].max_gpus
    if most is None:
        return ""
    held = state.index.held[level] + state.index.claimed[level]
    return f"{state.budgets.paths[level]} uses {held} of max_gpus {most}: {max(0, most - held)} left."


def _work(state: ClusterState, budget: BudgetId) -> str:
    allocated, free = running_by_budget(state)
    wanted, since = waiting_by_budget(state)
    runs = [run for run in state.runs.values() if budget in state.budgets.chains[run.budget] and run.allocated]
    protected = sum(run.gpus for run in runs if run.protected(state.now))
    line = f"{count(allocated[budget], 'GPU')} run for it, {protected} of them protected"
    line += f", and {free[budget]} unallocated" if free[budget] else ""
    longest = f", the longest for {span(state.now - min(since[budget]))}" if since.get(budget) else ""
    return f"{line}; {count(wanted[budget], 'GPU')} wait{longest}."


def budget_figures(view: ClusterView, budget: BudgetId) -> dict[str, Any]:
    """The same for scripts. `levels` from the top: all siblings in their order."""
    state = view.state
    state.index.expire(state.now)
    standings = Standings(state)
    tree = state.budgets
    levels = [
        [standing_figures(state, standings.standing(b)) for b in standings.ranked(tree.by_id[level].parent)]
        for level in reversed(tree.chains[budget])
    ]
    own = standing_figures(state, standings.standing(budget))
    return {"fraction": float(tree.fractions[budget]), **own, "levels": levels}


def standing_figures(state: ClusterState, s: Standing) -> dict[str, Any]:
    """Of now, or of the moment of a preemption. `balance` counts what is promised; None without a share."""
    return {
        "budget": state.budgets.paths.get(s.budget, s.budget),
        "owed_gpu_h": round(s.entitlement / GPU_HOUR, 3),
        "got_gpu_h": round(s.usage / GPU_HOUR, 3),
        "promised_gpu_h": round(s.committed / GPU_HOUR, 3),
        "balance": (s.usage + s.committed) / s.entitlement if s.entitlement else None,
        "rank": s.rank,
    }
