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
    for name, loaded in (("busy", True), ("idle", False)):
        same = [gpu for gpu in gpus if _is_loaded(gpu) is loaded]
        for gpu in same:
            others = [other for other in same if other is not gpu]
            heat = _beside(gpu, others, "temperature_c")
            rule = rules["heat:peers"]
            if heat and rule.limit is not None and heat[0] - heat[1] >= rule.limit:
                yield gpu.find(rule, "peers", f"{heat[0]:g} C, the median of its {name} peers is {heat[1]:g} C")
            clock = _beside(gpu, others, "sm_clock_mhz") if loaded else None
            rule = rules["clock:peers"]
            if clock and rule.limit is not None and clock[0] <= clock[1] * (1 - rule.limit / 100):
                yield gpu.find(rule, "peers", f"{clock[0]:g} MHz, the median of its busy peers is {clock[1]:g} MHz")


def _is_loaded(gpu: Gpu) -> bool | None:
    busy = number(known(gpu.reading("utilization_percent")))
    if busy is None or IDLE_PERCENT <= busy < BUSY_PERCENT:
        return None
    return busy >= BUSY_PERCENT


def _beside(gpu: Gpu, others: Sequence[Gpu], key: str) -> tuple[float, float] | None:
    """(its own, the median of the others); None where there is too little to compare."""
    own = number(known(gpu.reading(key)))
    found = [value for other in others if (value := number(known(other.reading(key)))) is not None]
    return None if own is None or len(found) < LEAST_PEERS else (own, median(found))


def _links(gpus: Sequence[Gpu], rules: Rules) -> Iterator[Finding]:
    """A card without a bridge has all its links down by design, and so have its peers."""
    up = [number(known(gpu.reading("nvlinks_up"))) for gpu in gpus]
    for gpu, own in zip(gpus, up, strict=True):
        down = known(gpu.reading("nvlinks_down"))
        if isinstance(down, list) and down and (own or any(up)):
            yield gpu.find(rules["nvlink:down"], "reading", f"NVLinks down: {', '.join(map(str, down))}")
