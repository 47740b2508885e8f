"""What the journal tells of the past, for handovers and explanations."""

from __future__ import annotations

from opsconsole.ports import ClusterStore
from opsconsole.presenting.handover import TOLD
from opsconsole.presenting.view import Happening

ROWS = 200_000  # of the journal, the newest: what is older is not looked at


def told_since(store: ClusterStore, since_ms: int) -> tuple[list[Happening], int]:
    """What people would want to know, since an instant of the wall clock; and since when that is all there was."""
    events = store.since(since_ms, ROWS)
    told = [Happening(e.seq, e.wall_ms, e.kind, e.value) for e in events if e.kind in TOLD]
    return told, events[0].wall_ms if len(events) == ROWS else since_ms
