"""Where one is in the console: a page, and of a detail whose; and the way there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from scheduler_core.ids import HostName, WorkloadId

DETAILS = ("host", "workload")
LONGEST = 28  # cells of a name in the header


class Place(NamedTuple):
    """`subject` is the host or workload of a detail, empty on the other pages."""

    page: str
    subject: str = ""


def detail_of(view: ClusterView, name: str) -> Place | None:
    """The detail of a host, a workload or a run; None where nothing of that name has one."""
    if HostName(name) in view.state.hosts:
        return Place("host", name)
    for workload in (name, name.rpartition("~")[0]):
        if WorkloadId(workload) in view.state.workloads:
            return Place("workload", workload)
    return None


def trail(past: Sequence[Place], here: Place) -> list[Place]:
    """From the last page that is no detail to here."""
    way = [here]
    for place in reversed(past):
        if way[0].page not in DETAILS:
            break
        way.insert(0, place)
    return way


def name_of(place: Place, view: ClusterView | None) -> str:
    """As the header says it: a page, or whose detail it is."""
    if place.page not in DETAILS:
        return place.page
    record = view.state.workloads.get(WorkloadId(place.subject)) if view is not None else None
    label = workload_label(record.workload.id, record.workload.name) if record is not None else place.subject
    return clean(label, LONGEST)
