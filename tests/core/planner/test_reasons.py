"""What people read about a preemption: figures that tell why."""

from __future__ import annotations

import re

from scheduler_core.decisions import StopDecided
from tests.core.clusters import MIN, Cluster, of_kind


def reason(c: Cluster) -> str:
    """Why the run of b, past its min runtime, yields to a workload of a."""
    c.running("squat", "b", 8, MIN, resumable=True)
    c.later(2 * MIN)
    (stop,) = of_kind(c.submit("claim", "a", 8, MIN), StopDecided)
    return stop.reason


def test_two_that_have_got_next_to_nothing_are_told_apart() -> None:
    """On a fresh cluster both balances are 0.00; digits enough are shown, with what is promised."""
    found = re.search(r"a has got ([\d.]+) of its share with what is promised and b ([\d.]+);", reason(Cluster()))
    assert found is not None and float(found[1]) < float(found[2])
