"""What will be submitted: hours of the last day again, each drawn anew, so that bursts stay bursts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from scheduler_core.ids import WorkloadId
from scheduler_core.state import ClusterState
from scheduler_core.units import DAY, HOUR, MINUTE
from scheduler_core.workload import Workload


class Arrivals:
    """`window_ms`: how far back the state can know what was submitted."""

    def __init__(self, state: ClusterState) -> None:
        self.now = state.now
        self.window_ms = min(DAY, state.now - state.began_at)
        since = state.now - self.window_ms
        seen = [r.workload for r in state.workloads.values() if since < r.workload.submitted_at <= state.now]
        self.seen = sorted(seen, key=lambda w: (w.submitted_at, w.id))
        number = max(1, self.window_ms // HOUR)
        self.block_ms = self.window_ms // number
        self.blocks: list[list[tuple[int, Workload]]] = [[] for _ in range(number)]
        for w in self.seen:
            block, after = divmod(w.submitted_at - since - 1, max(1, self.block_ms))
            self.blocks[min(block, number - 1)].append((after, w))

    def draw(self, horizon_ms: int, seed: str) -> list[Workload]:
        """In the order of their submission, each under an id of its own."""
        found: list[Workload] = []
        random = Random(f"{seed} arrivals")
        if not self.seen or self.window_ms < MINUTE:
            return found
        for begin in range(0, horizon_ms, self.block_ms):
            for after, w in random.choice(self.blocks):
                if begin + after < horizon_ms:
                    wid = WorkloadId(f"{w.id}+{len(found)}")
                    found.append(replace(w, id=wid, submitted_at=self.now + 1 + begin + after))
        found.sort(key=lambda w: w.submitted_at)
        return found
