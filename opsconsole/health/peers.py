"""GPUs of one host beside each other: the same box, the same air, the same work. One that stands out is news."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from opsconsole.health.finding import Finding, known, number
from opsconsole.health.rules import Rules

if TYPE_CHECKING:
    from opsconsole.health.observing import Gpu

LEAST_PEERS = 3
BUSY_PERCENT, IDLE_PERCENT = 50.0, 5.0


def peer_findings(gpus: Sequence[Gpu], rules: Rules) -> Iterator[Finding]:
    """Compared is only with those that are as busy, or as idle; of fewer than three nothing follows."""
    yield from _links(gpus, rules)
    busy = [gpu for gpu in gpus if gpu.busy is not None and gpu.busy >= BUSY_PERCENT]
    idle = [gpu for gpu in gpus if gpu.busy is not None and gpu.busy < IDLE_PERCENT]
    heat, clock = rules["heat:peers"], rules["clock:peers"]
    for name, group in (("busy", busy), ("idle", idle)):
        for gpu, own, others in _beside(group, "temperature_c"):
            if own - others >= (heat.limit or 0.0):
                yield gpu.find(heat, "peers", f"{own:g} C, the median of its {name} peers is {others:g} C")
    for gpu, own, others in _beside(busy, "sm_clock_mhz"):
        if own <= others * (1 - (clock.limit or 0.0) / 100):
            yield gpu.find(clock, "peers", f"{own:g} MHz, the median of its busy peers is {others:g} MHz")


def _beside(gpus: Sequence[Gpu], key: str) -> Iterator[tuple[Gpu, float, float]]:
    """Each with its own reading and the median of the others'."""
    found = [(gpu, value) for gpu in gpus if (value := number(known(gpu.reading(key)))) is not None]
    values = sorted(value for _, value in found)
    if len(found) <= LEAST_PEERS or values[0] == values[-1]:
        return
    for gpu, value in found:
        others = values.copy()
        others.remove(value)
        yield gpu, value, median(others)


def _links(gpus: Sequence[Gpu], rules: Rules) -> Iterator[Finding]:
    """A card without a bridge has all its links down by design, and so have its peers."""
    up = [number(known(gpu.reading("nvlinks_up"))) for gpu in gpus]
    for gpu, own in zip(gpus, up, strict=True):
        down = known(gpu.reading("nvlinks_down"))
        if isinstance(down, list) and down and (own or any(up)):
            yield gpu.find(rules["nvlink:down"], "reading", f"NVLinks down: {', '.join(map(str, down))}")
