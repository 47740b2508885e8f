"""What an action does to the queue: who stands where now, and where then, as the standings are at this moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.text import ordinal
from opsconsole.presenting.view import ClusterView
from scheduler_core.ids import WorkloadId
from scheduler_core.queueing import queue_order
from scheduler_core.state import ClusterState, WorkloadRecord

FEW = 3  # named one by one


def places(state: ClusterState, also: Collection[WorkloadId] = ()) -> dict[WorkloadId, int]:
    """Where each waiting or held workload stands, from 1. `also`: runs, as if they waited."""
    return {wid: n for n, wid in enumerate(queue_order(state, also), start=1)}


def as_if(state: ClusterState, **changed: Any) -> ClusterState:
    """The state with other parts, to compute standings and `places` from: nothing else follows them.

    It shares all else with the state, but not what is kept of standings.
    """
    state.index.expire(state.now)
    return replace(state, index=replace(state.index, lines={}), **changed)


def with_workloads(state: ClusterState, changed: Mapping[WorkloadId, WorkloadRecord | None]) -> ClusterState:
    """With other records of some workloads, or without them."""
    kept = {wid: record for wid, record in {**state.workloads, **changed}.items() if record is not None}
    return as_if(state, workloads=kept)


def queue_lines(view: ClusterView, then: ClusterState, named: Sequence[WorkloadId] = ()) -> tuple[str, ...]:
    """Where those that are named stand then; of the others, how many move up or down."""
    before, after = places(view.state), places(then)
    stay = [wid for wid in named if wid in before and wid in after]
    lines = [_move(view, wid, before[wid], after[wid]) for wid in stay[:FEW]]
    shifts = [after[wid] - n for wid, n in before.items() if wid in after and wid not in named]
    up, down = sum(by < 0 for by in shifts), sum(by > 0 for by in shifts)
    said = [f"{number} move {way}" for number, way in ((up, "up"), (down, "down")) if number]
    return (*lines, *((f"of the others that wait {', '.join(said)}",) if said else ()))


def _move(view: ClusterView, wid: WorkloadId, before: int, after: int) -> str:
    name = workload_label(wid, view.state.workloads[wid].workload.name)
    return f"{name}: {ordinal(before)} in the queue" + (
        f", then {ordinal(after)}" if after != before else ", as before"
    )
