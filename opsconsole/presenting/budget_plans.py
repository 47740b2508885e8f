"""Plans for budgets: another weight, usage that is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from opsconsole.presenting.foresight import as_if, queue_lines
from opsconsole.presenting.naming import no_budget
from opsconsole.presenting.plans import NOTHING, PLAIN_COLUMNS, Plan, command_line, refusals, said, undone_by
from opsconsole.presenting.rows import Cell, Row, TableView
from opsconsole.presenting.text import clean, count, few, gpu_hours
from opsconsole.presenting.view import ClusterView
from scheduler_core.apply_budgets import without_past
from scheduler_core.budget import BudgetTree
from scheduler_core.fairshare import Standings
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.observations import UsageForgotten, WeightChanged
from scheduler_core.state import ClusterState
from scheduler_core.units import WEIGHT

MOST_WEIGHT = 1_000_000  # as in inventories


def plan_weight(view: ClusterView, budgets: Sequence[str], to: str = "") -> Plan:
    """Of one budget, by its path. The shares of its siblings change with it."""
    state = view.state
    known = [path for path in budgets if path in state.budgets.by_path]
    weight = parse_weight(to)
    refused = refusals((path, no_budget(state, path)) for path in budgets if path not in known)
    same = [p for p in known if state.budgets.by_id[state.budgets.by_path[p]].weight == weight]
    refused += refusals((path, f"its weight is {to} already") for path in same)
    if len(known) > 1:
        refused += (f"{few(known)}: weights are changed one by one, for each changes the shares of the others",)
    if not known or refused:
        return Plan("weight", (), _table("Weight", ()), (), "", (), lambda by: [], refused=refused)
    path, budget = known[0], state.budgets.by_path[known[0]]
    was = state.budgets.by_id[budget].weight
    then = state.budgets if weight is None else state.budgets.with_weight(budget, weight)
    return Plan(
        "weight",
        (path,),
        _table(f"Weight of {clean(path, 60)}", _share_rows(state, budget, then, weight)),
        () if weight is None else (*_by_hand(state, budget, weight), *queue_lines(view, as_if(state, budgets=then))),
        command_line("weight", [path], "--to", to),
        ((path, was),),
        lambda by: [] if weight is None else [WeightChanged(budget, weight, by)],
        missing="" if weight is not None else f"{said(to)}say a weight of 0 or more, such as 3 or 2.5",
        undo=undone_by("weight", [path], "--to", shown(was)),
    )


def parse_weight(text: str) -> int | None:
    """`3`, `2.5` in millionths, as in inventories; None for anything else."""
    try:
        amount = Decimal(text) * WEIGHT
    except InvalidOperation:
        return None
    exact = amount.is_finite() and 0 <= amount <= MOST_WEIGHT * WEIGHT and amount == int(amount)
    return int(amount) if exact else None


def shown(millionths: int) -> str:
    """A weight as people write it."""
    return f"{Decimal(millionths) / WEIGHT:f}"


def _table(title: str, rows: tuple[Row, ...]) -> TableView:
    return TableView(title, PLAIN_COLUMNS, rows, NOTHING)


def _share_rows(state: ClusterState, budget: BudgetId, then: BudgetTree, weight: int | None) -> tuple[Row, ...]:
    """The budget first, then its siblings: guaranteed shares of the whole cluster."""
    siblings = state.budgets.children[state.budgets.by_id[budget].parent]
    rows = []
    for bid in (budget, *(b for b in siblings if b != budget)):
        share, after = float(state.budgets.fractions[bid]), float(then.fractions[bid])
        of = then.by_id[bid].weight
        now = f"weight {shown(state.budgets.by_id[bid].weight)}, {share:.1%} of the cluster"
        words = "?" if weight is None and bid == budget else f"weight {shown(of)}, {after:.1%}"
        data = {"budget": state.budgets.paths[bid], "share": share, "share_then": after, "weight_then": of / WEIGHT}
        rows.append(Row(bid, (Cell(clean(state.budgets.paths[bid], 60)), Cell(now), Cell(words)), data))
    return tuple(rows)


def _by_hand(state: ClusterState, budget: BudgetId, weight: int) -> tuple[str, ...]:
    """How it stands to the inventory, which has the last word."""
    hand = state.weights.get(budget)
    declared = state.budgets.by_id[budget].weight if hand is None else hand.instead_of
    if weight == declared:
        return ("as the inventory says: nothing is by hand then",)
    return (f"the inventory says {shown(declared)}: this lasts until it says another; edit it there to keep it",)


def plan_forget(view: ClusterView, budgets: Sequence[str]) -> Plan:
    """The past of budgets, by their paths, with all below them."""
    state = view.state
    refused = refusals((path, no_budget(state, path)) for path in budgets if path not in state.budgets.by_path)
    asked = {path: state.budgets.by_path[path] for path in budgets if path in state.budgets.by_path}
    used = [path for path, budget in asked.items() if _has_used(state, budget)]
    refused += refusals((path, "it has used nothing") for path in asked if path not in used)
    then = state
    for path in used:
        then = as_if(then, ledgers=without_past(then, asked[path]))
    below = dict.fromkeys(b for path in used for b in state.budgets.subtree(asked[path]))
    above = dict.fromkeys(b for path in used for b in state.budgets.chains[asked[path]] if b not in below)
    keep = [state.budgets.paths[b] for b in above]
    effect = [f"{few(keep)} keeps what it was charged"] * bool(keep) + ["this cannot be taken back"] * bool(used)
    before, after = Standings(state), Standings(then)
    return Plan(
        "forget",
        tuple(used),
        _table(f"Forget the usage of {count(len(used), 'budget')}", tuple(_usage_row(b, before, after) for b in below)),
        (*effect, *(queue_lines(view, then) if used else ())),
        command_line("forget", used),
        tuple((path, asked[path]) for path in used),
        lambda by: [UsageForgotten(asked[path], by) for path in used],
        refused=refused,
    )


def _has_used(state: ClusterState, budget: BudgetId) -> bool:
    return any(state.ledgers.used(budget, state.now, state.policy.lookback_ms, kind) for kind in (True, False))


def _usage_row(budget: BudgetId, before: Standings, after: Standings) -> Row:
    path = before.tree.paths[budget]
    cells = (Cell(clean(path, 60)), Cell(_stands(before, budget)), Cell(_stands(after, budget)))
    return Row(budget, cells, {"budget": path, "now": cells[1].text, "then": cells[2].text})


def _stands(standings: Standings, budget: BudgetId) -> str:
    balance, parent = standings.balance(budget), standings.tree.by_id[budget].parent
    rank = standings.ranked(parent).index(budget) + 1
    of = f" below {standings.tree.paths[parent]}" if parent != ROOT else ""
    stands = "no share" if balance is None else f"balance {float(balance):.2f}"
    return f"got {gpu_hours(standings.usage(budget))} GPU-h, {stands}, rank {rank}{of}"
