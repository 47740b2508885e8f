"""What is reserved for whom, and from when on (rule 21), in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opsconsole.presenting.text import clean, day_clock
from opsconsole.presenting.view import ClusterView
from scheduler_core.decisions import Reserved
from scheduler_core.ids import HostName, RunId
from scheduler_core.state import WorkloadRecord
from scheduler_core.units import few


def _all(view: ClusterView) -> Iterator[tuple[WorkloadRecord, Reserved]]:
    for wid in view.state.index.reservations:
        record = view.state.workloads[wid]
        if record.reserved is not None:
            yield record, record.reserved


def _for_whom(view: ClusterView, record: WorkloadRecord, made: Reserved) -> str:
    label = clean(record.workload.name or record.workload.id, 40)
    return f"{label} from {day_clock(view.wall(made.at), view.wall_ms)} on"


def on_host(view: ClusterView, host: HostName) -> list[tuple[int, str]]:
    """Its reserved slots, as masks, each with for whom and from when on."""
    return [
        (member.slots, _for_whom(view, record, made))
        for record, made in _all(view)
        for member in made.members
        if member.host == host
    ]


def of_run(view: ClusterView, run: RunId) -> str:
    """For whom GPUs of this run are reserved; empty where for nobody."""
    members = view.state.runs[run].members
    theirs = {name: member.slots for name, member in members.items() if member.phase.holds_gpus}
    found = {text: None for name, slots in theirs.items() for mask, text in on_host(view, name) if mask & slots}
    return few(list(found))


def planned_anew(view: ClusterView, leaving: Collection[HostName]) -> tuple[str, ...]:
    """The promises that end when these hosts take nothing new."""
    broken = [
        _for_whom(view, record, made) for record, made in _all(view) if any(m.host in leaving for m in made.members)
    ]
    return (f"reserved there and planned anew: {few(broken)}",) if broken else ()
