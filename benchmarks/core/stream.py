"""100,000 workloads in 30 days on 1,024 GPUs, 60 leaves, demand 2.5 x, on a virtual clock. Goal: 30 CPU s."""

from __future__ import annotations

import sys
from heapq import heappop, heappush
from random import Random
from time import process_time

from benchmarks.core import worlds
from scheduler_core.commands import StartMember, StopMember
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import MemberExited, MemberReleased, MemberStarted, Observation, WorkloadSubmitted
from scheduler_core.units import DAY, HOUR, MINUTE, SECOND
from scheduler_core.workload import Workload

SPAN = 30 * DAY
GPUS = 1024
DEMAND = 2.5
START_MS, STOP_MS = 2 * SECOND, 3 * SECOND
SIZES = (1, 1, 1, 1, 1, 2, 2, 4, 8, 16)
Entry = tuple[int, int, str, str, str]  # instant, number, kind, run or workload, host


class Stream:
    """Arrivals, and a fleet that answers every command after a fixed delay."""

    def __init__(self, count: int, span: int = SPAN) -> None:
        draw = Random(7)
        self.engine = worlds.engine(GPUS // 8, 6, 60)
        leaves = worlds.leaf_ids(self.engine)
        self.heap: list[Entry] = []
        self.number = 0
        self.left: dict[str, int] = {}  # work left, ms
        self.begun: dict[str, int] = {}  # by run
        self.workloads: dict[str, Workload] = {}
        mean_ms = DEMAND * GPUS * span / count / (sum(SIZES) / len(SIZES))
        for n in range(count):
            at = worlds.T0 + draw.randrange(span)
            wid = WorkloadId(f"w{n:06}")
            minimum = draw.choice((0, 15 * MINUTE, HOUR, 2 * HOUR, 8 * HOUR))
            w = Workload(wid, draw.choice(leaves), draw.choice(SIZES), minimum, at, resumable=True)
            self.workloads[wid] = w
            self.left[wid] = max(MINUTE, int(draw.expovariate(1 / mean_ms)))
            self.push(at, "arrive", wid, "")

    def push(self, at: int, kind: str, name: str, host: str) -> None:
        self.number += 1
        heappush(self.heap, (at, self.number, kind, name, host))

    def run(self, until: int) -> tuple[int, int]:
        """Steps and decisions up to this instant."""
        steps = decisions = 0
        while True:
            wake = self.engine.next_wakeup()
            heap_at = self.heap[0][0] if self.heap else None
            at = min((x for x in (wake, heap_at) if x is not None), default=until + 1)
            if at > until:
                return steps, decisions
            facts: list[Observation] = []
            while self.heap and self.heap[0][0] <= at:
                facts += self.happen(heappop(self.heap))
            step = self.engine.step(at, facts)
            steps += 1
            decisions += len(step.decisions)
            for command in step.commands:
                if isinstance(command, StartMember):
                    self.push(at + START_MS, "start", command.run, command.host)
                elif isinstance(command, StopMember):
                    self.push(at + STOP_MS, "stop", command.run, command.host)

    def happen(self, entry: Entry) -> list[Observation]:
        at, _, kind, name, host = entry
        if kind == "arrive":
            return [WorkloadSubmitted(self.workloads[name])]
        run, where = RunId(name), HostName(host)
        record = self.engine.state.runs.get(run)
        if record is None or where not in record.members:
            return []
        if kind == "start":
            if run not in self.begun:
                self.begun[run] = at
            if where == next(reversed(record.members)):
                for member in record.members:
                    self.push(at + self.left[record.workload], "end", run, member)
            return [MemberStarted(run, where)]
        if kind == "stop":
            if where == next(iter(record.members)):
                self.left[record.workload] = max(1, self.left[record.workload] - (at - self.begun.get(run, at)))
            return [MemberExited(run, where, 143, None, True), MemberReleased(run, where)]
        return [MemberExited(run, where, 0), MemberReleased(run, where)]


def main(count: int = 100_000) -> None:
    """With an argument: so many workloads, in the same density."""
    span = SPAN * count // 100_000
    stream = Stream(count, span)
    before = process_time()
    steps, decisions = stream.run(worlds.T0 + span)
    took = process_time() - before
    state = stream.engine.state
    ended = sum(1 for r in state.workloads.values() if r.ended_at is not None)
    held = state.ledgers.used(state.budgets.leaves[0], state.now, DAY)
    print(f"stream of {count} workloads: {took:.1f} CPU s (goal 30 for 100000), {steps} steps, {decisions} decisions")
    print(f"  at the end {len(state.runs)} runs, {len(state.workloads)} workloads known, {ended} of them ended; {held}")


if __name__ == "__main__":
    main(*(int(arg) for arg in sys.argv[1:2]))
