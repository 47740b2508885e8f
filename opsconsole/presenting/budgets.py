"""The budget tree: owed, got, balance, rank, and what runs and waits below each."""

from __future__ import annotations

from collections import Counter

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import bar, clean, gpu_hours, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.budget import Budget
from scheduler_core.fairshare import Standings, depth_first
from scheduler_core.ids import BudgetId
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU_HOUR, WEIGHT
from scheduler_core.workload import WorkloadPhase

COLUMNS = (
    Column("BUDGET", 18, grow=True, by="budget"),
    Column("WEIGHT", 6, right=True, from_width=90, by="weight"),
    Column("OWED", 6, right=True, by="owed_gpu_h"),
    Column("GOT", 6, right=True, by="got_gpu_h"),
    Column("BALANCE", 14, by="balance"),
    Column("RANK", 4, right=True, from_width=70, by="rank"),
    Column("RUNNING", 7, right=True, by="running_gpus"),
    Column("UNALLOCATED", 11, right=True, from_width=100, by="unallocated_gpus"),
    Column("WAITING", 7, right=True, from_width=70, by="waiting_gpus"),
    Column("P90 WAIT", 8, right=True, from_width=110, by="p90_wait_s"),
    Column("MAX", 6, right=True, by="max_gpus", extra=True),
)


def waiting_by_budget(state: ClusterState) -> tuple[Counter[BudgetId], dict[BudgetId, list[int]]]:
    """GPUs wanted, and since when each waits, per budget with all below it."""
    wanted: Counter[BudgetId] = Counter()
    since: dict[BudgetId, list[int]] = {}
    for record in state.workloads.values():
        if record.phase is WorkloadPhase.WAITING:
            for budget in state.budgets.chains[record.workload.budget]:
                wanted[budget] += record.workload.gpus
                since.setdefault(budget, []).append(record.workload.submitted_at)
    return wanted, since


def running_by_budget(state: ClusterState) -> tuple[Counter[BudgetId], Counter[BudgetId]]:
    """GPUs held by allocated and by unallocated runs."""
    allocated: Counter[BudgetId] = Counter()
    free: Counter[BudgetId] = Counter()
    for run in state.runs.values():
        for budget in state.budgets.chains[run.budget]:
            (allocated if run.allocated else free)[budget] += run.gpus
    return allocated, free


def p90(values: list[int]) -> int | None:
    """The ninth decile, by rank; None of nothing."""
    return sorted(values)[(len(values) * 9 - 1) // 10] if values else None


def _weight(state: ClusterState, budget: Budget) -> Cell:
    """Of one that somebody set by hand, with what the inventory says instead."""
    hand = state.weights.get(budget.id)
    text = f"{budget.weight / WEIGHT:g}"
    return Cell(text) if hand is None else Cell(f"{text}≠{hand.instead_of / WEIGHT:g}", "warn")


def budgets_table(view: ClusterView) -> TableView:
    state = view.state
    state.index.expire(state.now)
    standings = Standings(state)
    wanted, since = view.once("waiting", lambda: waiting_by_budget(state))
    allocated, free = running_by_budget(state)
    rows = []
    for budget, rank in depth_first(standings):
        b, balance = state.budgets.by_id[budget], standings.balance(budget)
        owed, got = int(standings.entitlement(budget)), standings.usage(budget)
        depth = len(state.budgets.chains[budget]) - 1
        over = balance is not None and balance >= 1
        text = "no share" if balance is None else f"{float(balance):5.2f} {bar(float(balance))}"
        longest = p90([state.now - at for at in since.get(budget, ())])
        cells = (
            Cell("  " * depth + clean(b.name, 60)),
            _weight(state, b),
            Cell(gpu_hours(owed)),
            Cell(gpu_hours(got)),
            Cell(text, "warn" if over else ""),
            Cell(str(rank)),
            Cell(str(allocated[budget])),
            Cell(str(free[budget]), "dim" if not free[budget] else ""),
            Cell(str(wanted[budget])),
            Cell(span(longest) if longest is not None else "–", "dim" if longest is None else ""),
            Cell("–", "dim") if b.max_gpus is None else Cell(str(b.max_gpus)),
        )
        data = {
            "budget": state.budgets.paths[budget],
            "weight": b.weight / WEIGHT,
            "owed_gpu_h": round(owed / GPU_HOUR, 3),
            "got_gpu_h": round(got / GPU_HOUR, 3),
            "balance": None if balance is None else float(balance),
            "rank": rank,
            "running_gpus": allocated[budget],
            "unallocated_gpus": free[budget],
            "waiting_gpus": wanted[budget],
            "p90_wait_s": None if longest is None else longest / 1000,
            "max_gpus": b.max_gpus,
        }
        rows.append(Row(budget, cells, data))
    title = f"Budgets: GPU-hours, last {span(state.policy.lookback_ms)}"
    return TableView(title, COLUMNS, tuple(rows), "no budgets")
