"""Hosts and their states (rule 24)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.ids import HostName


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the cluster as the inventory declares it. GPUs are slots 0..gpus-1; a mask is a set of slots."""

    name: HostName
    gpus: int
    labels: tuple[tuple[str, str], ...] = ()
    fence: bool = False  # the inventory has a command that powers it off (rule 27)

    @property
    def all_slots(self) -> int:
        return (1 << self.gpus) - 1


class HostState(StrEnum):
    """What the host is for, by decision of people or of the machine. Whether it answers is Reach, beside it."""

    SERVING = "serving"
    CORDONED = "cordoned"
    DRAINING = "draining"
    DRAINED = "drained"  # known empty (rule 26)
    REPAIRING = "repairing"
    VERIFYING = "verifying"
    VERIFY_FAILED = "verify_failed"
    SUSPECT = "suspect"  # cordoned by rule 13 (leak) or 28 (black hole)


class Reach(StrEnum):
    """Whether readings of the host can be trusted. Only FRESH lets anything new be placed (rule 26)."""

    NEVER_SEEN = "never_seen"
    FRESH = "fresh"
    STALE = "stale"  # the last reading is too old
    UNREACHABLE = "unreachable"  # keeps its runs and GPUs (rule 27)
    LOST = "lost"  # unreachable for longer than lost_after
