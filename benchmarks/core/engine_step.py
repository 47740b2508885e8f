"""`Engine.step` after one event: 1,000 hosts x 8 GPUs held, 10,000 waiting, 200 budgets. Goal: 1 ms, p99 10 ms."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from time import process_time

from benchmarks.core import worlds
from scheduler_core.engine import Engine
from scheduler_core.ids import WorkloadId
from scheduler_core.observations import MemberExited, MemberReleased, MemberStarted, Observation, WorkloadSubmitted
from scheduler_core.units import SECOND
from scheduler_core.workload import Workload

EVENTS = 3000
GAP_MS = 1 * SECOND  # so that every fifth step is also a pass


def events(made: Engine, draw: Random, now: int) -> Iterator[list[Observation]]:
    """One thing happens at a time: a start is reported, a run ends and gives its GPUs back, somebody submits."""
    leaves = worlds.leaf_ids(made)
    number = 0
    while True:
        starting = [r for r in made.state.runs.values() if r.started_at is None]
        for run in starting[:3]:
            yield [MemberStarted(run.id, host) for host in run.members]
        live = [r for r in made.state.runs.values() if r.started_at is not None]
        run = draw.choice(live)
        yield [fact for host in run.members for fact in (MemberExited(run.id, host, 0), MemberReleased(run.id, host))]
        number += 1
        gpus, minimum = draw.choice(worlds.SIZES), draw.choice(worlds.MIN_RUNTIMES)
        w = Workload(WorkloadId(f"new{number:05}"), draw.choice(leaves), gpus, minimum, now, resumable=True)
        yield [WorkloadSubmitted(w)]


def measure() -> tuple[list[float], list[float]]:
    """CPU milliseconds of steps without and with a pass."""
    made, now = worlds.full()
    now += 60 * SECOND
    made.step(now)
    plain, passes = [], []
    source = events(made, Random(3), now)
    for _ in range(EVENTS):
        now += GAP_MS
        facts = next(source)
        last = made.state.last_pass_at
        before = process_time()
        made.step(now, facts)
        took = (process_time() - before) * 1000
        (plain if made.state.last_pass_at == last else passes).append(took)
    return plain, passes


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def main() -> None:
    plain, passes = measure()
    both = plain + passes
    print(f"Engine.step after one event, {len(both)} steps, {len(passes)} with a pass:")
    for name, values in (("all", both), ("without a pass", plain), ("with a pass", passes)):
        print(f"  {name}: median {quantile(values, 0.5):.2f} ms, p99 {quantile(values, 0.99):.2f} ms")
    print("  goal: median 1 ms, p99 10 ms over all")


if __name__ == "__main__":
    main()
