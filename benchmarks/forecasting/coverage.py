"""How many true starts lie in the range in which four of five should, and the CPU time of a future.

Simulated clusters of 64 GPUs with three users whose runs are short, middling and long; a forecast of 16 h at four
moments of each. The forecaster knows the state of that moment and nothing of how the world was made. With two
arguments: the first and the last seed of the worlds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from random import Random
from typing import Any

from benchmarks.figures import say
from opsconsole.forecasting.futures import Question, all_futures
from opsconsole.forecasting.report import spread
from opsconsole.simulating.replay import Outcome, World
from opsconsole.simulating.rules import Rules
from opsconsole.simulating.workloads import Stream
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState
from scheduler_core.units import DAY, HOUR, MINUTE, WEIGHT
from scheduler_core.workload import Workload

BEGIN, DAYS = 1_800_000_000_000, 5
MOMENTS = tuple(BEGIN + int(day * DAY) for day in (2, 2.7, 3.3, 4))
HORIZON_MS, FUTURES = 16 * HOUR, 20
HOSTS = [Host(HostName(f"h{n}"), 8) for n in range(8)]
TREE = BudgetTree.of(Budget(BudgetId(name), name, weight=w * WEIGHT) for name, w in (("a", 1), ("b", 1), ("c", 2)))
USERS = {"x": -1.0, "y": 0.3, "z": 1.2}  # the logarithm of their median run, in hours


def stream(seed: int) -> Stream:
    """Random arrivals every 14 to 28 min; lengths spread log-normally around each user's own."""
    draw, made, at = Random(seed), Stream(TREE), BEGIN
    every_min = draw.choice((14, 20, 28))
    while at < BEGIN + DAYS * DAY:
        at += round(draw.expovariate(1 / (every_min * MINUTE)))
        user, gpus = draw.choice("xyz"), draw.choice((1, 2, 4, 8, 8, 16))
        shape: dict[str, Any] = {"hosts": 2, "gpus_per_host": 8} if gpus == 16 else {}
        wid, leaf = WorkloadId(f"w{len(made.workloads)}"), BudgetId(draw.choice("abc"))
        least, resumable = draw.choice((15 * MINUTE, HOUR)), draw.random() < 0.7
        made.workloads.append(Workload(wid, leaf, gpus, least, at, user, resumable=resumable, **shape))
        made.run_ms.append(round(draw.lognormvariate(USERS[user], 1.0) * HOUR))
    return made


def lived(made: Stream, until: int) -> tuple[ClusterState, Outcome]:
    world = World(made, HOSTS, Policy(), Rules(), BEGIN)
    outcome = world.run(until, lambda part: True)
    world.engine.state.now = until
    return world.engine.state, outcome


def judge(state: ClusterState, truth: Outcome, seed: int, found: Counter[str]) -> None:
    """Of what has never started: is its true start within the range, before or after it?"""
    (side,) = all_futures(Question(state, None, HORIZON_MS, FUTURES, seed), 1, lambda part: None)
    numbers = {w.id: n for n, w in enumerate(truth.stream.workloads)}
    for wid in side[0].starts:
        at = truth.started_at[numbers[wid]]
        if state.workloads[wid].attempts or at is None:
            continue
        started = at - state.now if at < state.now + HORIZON_MS else None
        low, high = (_end(spread([future.starts[wid] for future in side])[end]) for end in ("low", "high"))
        found["before" if _end(started) < low else "after" if _end(started) > high else "within"] += 1


def _end(value: float | None) -> float:
    return float("inf") if value is None else value


def main(first: int = 1, last: int = 6) -> None:
    found: Counter[str] = Counter()
    cpu = 0.0
    for seed in range(first, last + 1):
        made = stream(seed)
        _, truth = lived(made, BEGIN + DAYS * DAY)
        for moment in MOMENTS:
            state, _ = lived(made, moment)
            begun = time.process_time()
            judge(state, truth, seed, found)
            cpu += time.process_time() - begun
    total, futures = found.total(), (last + 1 - first) * len(MOMENTS) * FUTURES
    beside = f"{100 * found['before'] / total:.0f} % before, {100 * found['after'] / total:.0f} % after it"
    say(f"of {total} true starts within the range of four in five", 100 * found["within"] / total, "%", more=beside)
    say("a future of 16 h on 64 GPUs", 1000 * cpu / futures, "CPU ms")


if __name__ == "__main__":
    main(*(int(arg) for arg in sys.argv[1:3]))
