"""Sums over the cluster for the header and the overview. A sum over hosts says how many are unknown."""

from __future__ import annotations

from dataclasses import dataclass

from opsconsole.presenting.budgets import p90
from opsconsole.presenting.hosts import AWAY, failures, freshness_counts, is_fresh, known, value
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, span
from opsconsole.presenting.view import ClusterView
from opsconsole.probes import utilisation
from scheduler_core.drain import active_drains
from scheduler_core.fleet import HostState
from scheduler_core.ids import WorkloadId
from scheduler_core.workload import WorkloadPhase

LATE_LAG_S = 5.0
NOBODY = ("", "nobody")


@dataclass(frozen=True, slots=True)
class Sums:
    """GPU counts at this moment. `utilisation` is how busy the held GPUs are, by the fresh readings of `read` of them;
    None where there are none.
    """

    gpus: int
    in_service: int
    held: int
    free: int
    unknown_hosts: int
    read: int
    utilisation: float | None


def sums(view: ClusterView) -> Sums:
    hosts = view.state.hosts.values()
    busy: list[float] = []
    for record in hosts:
        if is_fresh(view, record):
            said = utilisation(view.facts(record.host.name).probe)
            busy += known([value(busy) for slot, busy in said if isinstance(slot, int) and record.held >> slot & 1])
    return Sums(
        sum(r.host.gpus for r in hosts),
        sum(r.in_service for r in hosts),
        sum(r.held.bit_count() for r in hosts),
        sum(r.free.bit_count() for r in hosts),
        sum(1 for r in hosts if not is_fresh(view, r)),
        len(busy),
        sum(busy) / len(busy) if busy else None,
    )


def is_current(view: ClusterView) -> bool:
    """Does somebody keep this picture true, and is it of now?"""
    return view.leading or (view.leader not in NOBODY and view.lag_s <= LATE_LAG_S)


def leader_cell(view: ClusterView) -> Cell:
    """Who acts; that nobody does, or that this picture is old, is never a quiet word."""
    if view.leading:
        return Cell("leader: this console", "good")
    if view.leader in NOBODY:
        return Cell("NO LEADER: nothing is scheduled", "bad")
    leader = clean(view.leader.partition(" pid ")[0], 40)
    if not is_current(view):
        return Cell(f"leader: {leader}, picture {span(int(view.lag_s * 1000))} OLD", "bad")
    return Cell(f"leader: {leader}")


def lag_cells(view: ClusterView) -> list[Cell]:
    """How far a follower is behind the newest word of its leader, while that is nothing to worry about."""
    follows = not view.leading and is_current(view)
    return [Cell(f"{view.lag_s:.0f}s behind", "dim")] if follows else []


def reach_cells(view: ClusterView) -> list[Cell]:
    """`60● 2◐ 1○ 1✖`; marks of which there are none are left out."""
    tokens = {"●": "good", "◐": "warn", "○": "warn", "✖": "bad", "?": "unknown"}
    cells = [Cell(f"{n}{mark}", tokens[mark]) for mark, n in freshness_counts(view).items() if n]
    return cells or [Cell("no hosts", "unknown")]


def drains_running(view: ClusterView) -> int:
    return len(active_drains(view.state))


def health_line(view: ClusterView) -> str:
    """How many hosts serve, how many of those fail, and how many are out, by why."""
    counts: dict[str, int] = {}
    for record in view.state.hosts.values():
        if record.state is not HostState.SERVING:
            word = record.state.value
        elif record.reach in AWAY:
            word = record.reach.value
        else:
            word = "failing" if failures(view, record) else "serving"
        counts[word] = counts.get(word, 0) + 1
    return "  ".join(f"{n} {word.replace('_', ' ')}" for word, n in sorted(counts.items(), key=lambda i: -i[1]))


def queue_line(view: ClusterView) -> str:
    """How many wait, the longest, and how many are held."""
    since = view.once("since", lambda: sorted(record.workload.submitted_at for record in view.state.waiting()))
    more = f", {len(held)} held" if (held := held_of(view)) else ""
    if not since:
        return f"nobody waits{more}"
    waits = [view.state.now - at for at in reversed(since)]
    return f"{len(waits)} waiting{more}, oldest {span(waits[-1])}, p90 wait {span(p90(waits))}"


def held_of(view: ClusterView) -> list[WorkloadId]:
    """Those that wait for a person."""
    workloads = view.state.workloads
    return view.once("held", lambda: [wid for wid, r in workloads.items() if r.phase is WorkloadPhase.HELD])
