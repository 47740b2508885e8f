"""How far each waiting workload has moved in the queue: positions of a while ago, kept by whoever looks on."""

from __future__ import annotations

from collections.abc import Mapping

from opsconsole.presenting.queue import order_of
from opsconsole.presenting.view import ClusterView
from scheduler_core.units import MINUTE

EVERY_MS = MINUTE
KEPT = 10  # so that a move is one of the last ten minutes, or since looking began


class Moves:
    """Positions, a minute apart, oldest first."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, Mapping[str, int]]] = []

    def before(self, view: ClusterView) -> Mapping[str, int]:
        """Where each stood when it was looked at first, at most ten minutes ago."""
        now = view.state.now
        if not self._kept or now - self._kept[-1][0] >= EVERY_MS:
            self._kept.append((now, {wid: n for n, wid in enumerate(order_of(view), start=1)}))
            del self._kept[: -KEPT - 1]
        return self._kept[0][1]
