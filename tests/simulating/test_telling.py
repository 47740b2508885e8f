"""Who gains and who loses between two policies, and how amounts are told."""

from __future__ import annotations

from typing import Any

import pytest

from opsconsole.simulating.telling import differences_table, gain, over_time


def budget(path: str, owed: float | None, wait_s: float | None) -> dict[str, Any]:
    return {"path": path, "delivered_over_owed": owed, "delivered_gpu_h": 10.0, "wait_s": {"p90": wait_s}}


@pytest.mark.parametrize(
    ("was", "now", "sign"),
    [
        ((0.90, 60), (0.95, 6000), 1),  # what is owed comes first
        ((0.95, 60), (0.90, 60), -1),
        ((0.95, 3600), (0.951, 60), 1),  # where that is the same, the wait decides
        ((0.95, 3600), (0.95, 3700), 0),
        ((0.95, 2), (0.95, 7), 0),  # below a minute nobody minds
        ((None, None), (None, None), 0),
    ],
)
def test_who_gains(was: tuple[float | None, float | None], now: tuple[float | None, float | None], sign: int) -> None:
    better = gain(budget("a", *was), budget("a", *now))
    assert (better > 0) - (better < 0) == sign


def test_those_that_gain_come_first() -> None:
    before = {"policy": "x", "budgets": [budget("a", 0.9, 60), budget("b", 0.9, 60), budget("gone", 1, 1)]}
    after = {"policy": "y", "budgets": [budget("a", 0.8, 60), budget("b", 0.95, 60), budget("new", 1, 1)]}
    rows = differences_table(before, after).rows
    assert [(row.key, row.cells[-1].text) for row in rows] == [("b", "gains"), ("a", "loses")]
    assert rows[0].cells[1].text == "90.0% → 95.0%"


def test_what_went_how_over_time() -> None:
    assert over_time([0.0, 0.5, 1.0, None]) == "▁▅█·"
