"""Plans of actions on the cluster as a whole: going by a changed inventory, letting the machine go on."""

from __future__ import annotations

from opsconsole.presenting.plans import Plan, command_line
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count
from opsconsole.presenting.view import ClusterView, InventoryChange
from scheduler_core.observations import ReloadRequested

CHANGES = (
    Column("WHAT", 8, most=10),
    Column("WHICH", 14, most=36),
    Column("CHANGE", 24, grow=True),
    Column("EFFECT", 24, grow=True, most=90),
)


def plan_reload(view: ClusterView) -> Plan:
    """What the inventory's file changes. Runs are never touched by it."""
    found = view.pending
    changes = found.changes if found is not None else ()
    digest = found.digest if found is not None else ""
    return Plan(
        "reload",
        (view.cluster,),
        TableView(
            f"Reload the inventory: {count(len(changes), 'change')}",
            CHANGES,
            tuple(map(_change_row, changes)),
            "no change",
        ),
        ("runs are not touched", *map(clean, found.by_hand)) if found is not None else (),
        command_line("reload", ()),
        (*((f"{c.topic} {c.subject}", c.what) for c in changes), ("the file", digest)),
        lambda by: [ReloadRequested(digest, by)],
        done="" if changes else "the leader goes by this file already",
    )


def _change_row(change: InventoryChange) -> Row:
    cells = (
        Cell(change.topic),
        Cell(clean(change.subject, 80)),
        Cell(clean(change.what, 300)),
        Cell(clean(change.effect, 300), "warn" if "cordoned" in change.effect else ""),
    )
    data = {"topic": change.topic, "subject": change.subject, "what": change.what, "effect": change.effect}
    return Row(f"{change.topic}/{change.subject}", cells, data)
