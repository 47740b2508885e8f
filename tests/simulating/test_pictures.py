"""What pictures are made from; that they are made is seen by `test_command`."""

from __future__ import annotations

from opsconsole.simulating.gantt import Run, Span, boxes, rows_of, stretches
from opsconsole.simulating.pictures import balances
from opsconsole.simulating.setup import parse_cluster
from scheduler_core.decisions import Member
from scheduler_core.ids import BudgetId, HostName
from scheduler_core.units import HOUR


def test_neighbouring_gpus_make_one_box() -> None:
    assert list(stretches(0b1011_0111)) == [(0, 3), (4, 6), (7, 8)] and not list(stretches(0))
    rows, total = rows_of(parse_cluster("2x8"))
    run = Run((Member(HostName("gpu00002"), 0b110),), BudgetId("a"), 0, HOUR)
    assert total == 16
    assert boxes([Span(run, HOUR, 3 * HOUR)], 0, rows) == [((1, 9), (3, 9), (3, 11), (1, 11))]


def test_a_run_is_protected_from_its_start_on() -> None:
    run = Run((), BudgetId("a"), 0, HOUR)
    assert run.protected_until(9) == 9
    run.started_at = 5
    assert run.protected_until(9) == HOUR + 5


def test_balances_are_those_of_a_sliding_window() -> None:
    used = [2 * HOUR, 4 * HOUR, 0, 2 * HOUR]
    assert balances(used, 2.0, 2) == [0.5, 1.5, 1.0, 0.5]
