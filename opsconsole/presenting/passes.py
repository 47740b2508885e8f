"""One pass of the scheduler as tables: how budgets stand, and what happens to which workload, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean
from scheduler_core.report import Item, OrderRow
from scheduler_core.state import ClusterState

STANDINGS = (Column("BUDGET", 20, grow=True), Column("BALANCE", 8, right=True), Column("RANK", 4, right=True))
ITEMS = (
    Column("WHAT", 8),
    Column("WORKLOAD", 14),
    Column("FOR", 10),
    Column("HOSTS", 14),
    Column("UNTIL", 8, right=True),
    Column("WHY", 30, grow=True),
)
TOKENS = {"place": "good", "preempt": "warn", "drain": "warn"}


def standings_table(order: Iterable[OrderRow], state: ClusterState) -> TableView:
    rows = []
    for row in order:
        depth = len(state.budgets.chains[row.budget]) - 1
        balance = "no share" if row.balance is None else f"{row.balance:.2f}"
        name = "  " * depth + clean(state.budgets.by_id[row.budget].name, 60)
        rows.append(Row(row.budget, (Cell(name), Cell(balance), Cell(str(row.rank)))))
    return TableView("Budgets by standing", STANDINGS, tuple(rows))


def pass_table(items: Sequence[Item], clock: Callable[[int], str]) -> TableView:
    """`clock` turns the ms of an instant into words. Columns that say nothing are left out."""
    rows = []
    for item in items:
        hosts = " ".join(f"{host}:{gpus}" for host, gpus in item.hosts.items())
        cells = (
            Cell(item.kind, TOKENS.get(item.kind, "")),
            Cell(clean(item.workload, 80)),
            Cell(clean(item.for_workload or "", 80)),
            Cell(hosts),
            Cell("" if item.until is None else clock(item.until)),
            Cell(clean(item.reason)),
        )
        data = {"kind": item.kind, "workload": item.workload, "hosts": dict(item.hosts), "reason": item.reason}
        rows.append(Row(f"{item.kind}/{item.workload}", cells, data))
    said = [at for at in range(len(ITEMS)) if any(row.cells[at].text for row in rows)]
    narrow = tuple(Row(row.key, tuple(row.cells[at] for at in said), row.data) for row in rows)
    columns = tuple(ITEMS[at] for at in said)
    return TableView("One pass", columns, narrow, "nothing happens: nobody waits, and nothing has to stop")
