"""The machine's brakes (rule 29): what they hold back, how far they are used, and the plan that lets it go on."""

from __future__ import annotations

from opsconsole.presenting.plans import Plan, command_line
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from scheduler_core.breaker import host_moves, preempted_gpus, still_waits, wished_moves
from scheduler_core.ids import HostName
from scheduler_core.observations import BreakerReset
from scheduler_core.state import ClusterState

COLUMNS = (Column("STOPPED", 14, most=40), Column("WHAT IT WOULD DO", 30, grow=True))


def breaker_table(view: ClusterView) -> TableView:
    """What waits for an operator."""
    waiting = [what for what in view.state.tripped if still_waits(view.state, what)]
    rows = tuple(_row(view.state, what) for what in waiting)
    return TableView("Breaker", COLUMNS, rows, "the breaker stops nothing")


def _row(state: ClusterState, what: str) -> Row:
    kind, _, name = what.partition(" ")
    would = wished(state, what)
    data = {"kind": kind, "name": name, "would": would}
    return Row(what, (Cell(clean(what, 60), "bad"), Cell(clean(would, 200))), data)


def wished(state: ClusterState, what: str) -> str:
    """What would be done if the breaker let it."""
    kind, _, name = what.partition(" ")
    move = wished_moves(state).get(HostName(name)) if kind == "host" else None
    return f"{move[0].value.replace('_', ' ')}: {move[1]}" if move else "preempt others so that it starts"


def breaker_figures(view: ClusterView) -> dict[str, int]:
    """How far each brake is used, for scripts."""
    (moves, most_moves), (gpus, most_gpus) = host_moves(view.state), preempted_gpus(view.state)
    used = {"host_moves": moves, "host_moves_max": most_moves}
    return used | {"preempted_gpus": gpus, "preempted_gpus_max": most_gpus}


def breaker_lines(view: ClusterView) -> tuple[str, str]:
    """The same for people."""
    figures = breaker_figures(view)
    return (
        "automatic cordons and drains in the last hour: {host_moves} of {host_moves_max}".format(**figures),
        "GPUs preempted in the last 30 min: {preempted_gpus} of {preempted_gpus_max}".format(**figures),
    )


def plan_breaker_reset(view: ClusterView) -> Plan:
    """An operator lets what it stopped go on; the counts begin anew."""
    table, figures = breaker_table(view), breaker_figures(view)
    used = figures["host_moves"] or figures["preempted_gpus"]
    return Plan(
        "breaker reset",
        (view.cluster,),
        TableView("Reset the breaker: what goes on then", COLUMNS, table.rows, table.empty),
        (*breaker_lines(view), "both counts begin at 0 again"),
        command_line("breaker", ["reset"]),
        tuple((row.key, row.data["would"]) for row in table.rows),
        lambda by: [BreakerReset(by)],
        done="" if table.rows or used else "the breaker stops nothing",
    )
