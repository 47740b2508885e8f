"""What a host has told, put together for a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opsconsole.health.verdict import Said
from scheduler_core.fleet import Reach
from scheduler_core.state import HostRecord

OLD_INTERVALS = 5  # of probes: readings that are older say nothing of now


def said_of(
    record: HostRecord,
    probe: Mapping[str, Any] | None,
    age_s: float | None,
    kernel: Sequence[Mapping[str, Any]],
    now_ms: int,
    interval_s: float,
) -> Said:
    """What a person has seen to is over. `now_ms`: cluster time."""
    answers = record.reach in (Reach.FRESH, Reach.STALE)
    fresh = answers and age_s is not None and age_s <= OLD_INTERVALS * interval_s
    cleared_s = None if record.by is None else max(0, now_ms - record.since) / 1000
    return Said(record.host.gpus, probe, age_s, kernel, fresh, cleared_s)
