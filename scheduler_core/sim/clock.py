"""Virtual time: a heap of what happens when. Ties go by the order in which they were put there."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from scheduler_core.ids import HostName, RunId


class Happening(NamedTuple):
    """`link`: the connection it travels on, 0 for what happens whether anybody is connected or not; negative: one of
    the leader before, in so many boots of the host."""

    at: int
    order: int
    kind: str
    host: HostName
    run: RunId
    link: int


class Agenda:
    """What will happen, the earliest first."""

    def __init__(self) -> None:
        self._heap: list[Happening] = []
        self._count = 0

    def push(self, at: int, kind: str, host: HostName, run: RunId, link: int = 0) -> None:
        self._count += 1
        heappush(self._heap, Happening(at, self._count, kind, host, run, link))

    def next_at(self) -> int | None:
        return self._heap[0].at if self._heap else None

    def pop_until(self, now: int) -> Happening | None:
        """The next happening up to `now`; None when there is none left."""
        return heappop(self._heap) if self._heap and self._heap[0].at <= now else None
