"""How readings have moved while somebody looked: kept by whoever looks on, for nobody else keeps them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from opsconsole.presenting.hosts import is_fresh, value
from opsconsole.presenting.view import ClusterView
from scheduler_core.ids import HostName

KEPT = 60
STEPS = "▁▂▃▄▅▆▇█"
UNREAD = "·"


def spark(values: Sequence[float | None], width: int, most: float = 100.0) -> str:
    """The newest `width` values as blocks from nothing to `most`; what was not read is a dot."""
    shown = values[-width:]
    return "".join(UNREAD if v is None else STEPS[max(0, min(7, int(v / most * 8)))] for v in shown)


class Trends:
    """Utilisation (percent) of each GPU of one host, a value per reading; another host begins anew."""

    def __init__(self) -> None:
        self.host = ""
        self._read: object = None
        self._kept: dict[int, deque[float | None]] = {}

    def look(self, view: ClusterView, host: str) -> None:
        """Takes in the newest reading, once. One that is not fresh counts as not read."""
        if host != self.host:
            self.host, self._read, self._kept = host, None, {}
        record, probe = view.state.hosts.get(HostName(host)), view.facts(host).probe
        if record is None or probe is None or probe is self._read:
            return
        self._read = probe
        fresh = is_fresh(view, record)
        for gpu in probe.get("gpus", []):
            busy = value(gpu.get("readings", {}).get("utilization_percent")) if fresh else None
            kept = self._kept.setdefault(gpu.get("slot"), deque(maxlen=KEPT))
            kept.append(float(busy) if isinstance(busy, int | float) else None)

    def of(self, slot: int) -> Sequence[float | None]:
        return tuple(self._kept.get(slot, ()))
