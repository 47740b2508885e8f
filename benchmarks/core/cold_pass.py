"""A cold planning pass: 1,000 hosts x 8 GPUs, 10,000 waiting workloads, 200 budgets. The goal is under 250 ms."""

from __future__ import annotations

from random import Random
from statistics import median
from time import perf_counter

from benchmarks.core import worlds
from scheduler_core.decisions import Claimed, Placed, StopDecided
from scheduler_core.engine import Engine
from scheduler_core.planner import plan_pass
from scheduler_core.rebuilding import rebuild

GOAL_MS = 250


def timed(made: Engine, rounds: int = 5) -> tuple[float, int, int, int]:
    """Median milliseconds of a pass on an index made anew, and how much it placed, claimed and stopped."""
    times = []
    for _ in range(rounds):
        rebuild(made.state)
        before = perf_counter()
        decisions = plan_pass(made.state).decisions
        times.append((perf_counter() - before) * 1000)
    kinds = [sum(isinstance(d, kind) for d in decisions) for kind in (Placed, Claimed, StopDecided)]
    return median(times), kinds[0], kinds[1], kinds[2]


def main() -> None:
    empty = worlds.engine(1000, 20, 180)
    worlds.submit(empty, worlds.workloads(Random(2), worlds.leaf_ids(empty), 10_000, worlds.T0), worlds.T0)
    full, now = worlds.full()
    full.state.now = now + 60_000
    for name, made in (("empty cluster", empty), ("full cluster", full)):
        ms, placed, claimed, stopped = timed(made)
        print(f"cold pass, {name}: {ms:.0f} ms (goal {GOAL_MS}); placed {placed}, claims {claimed}, stops {stopped}")


if __name__ == "__main__":
    main()
