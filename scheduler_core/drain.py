"""Drains (rule 25): who stops when, when a host will be empty, and what a drain would cost, before it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler_core.contract import graces_ms, lost_gpu_ms
from scheduler_core.decisions import Decision, HostMoved, StopCause, StopDecided
from scheduler_core.fleet import HostState, Reach
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.state import ClusterState, DrainRecord, HostRecord, Run


def active_drains(state: ClusterState) -> list[DrainRecord]:
    return [drain for drain in state.drains.values() if not drain.ended]


def due_stops(state: ClusterState) -> list[StopDecided]:
    """The runs whose drain may stop them now. A gang on two draining hosts stops once."""
    stops: dict[RunId, StopDecided] = {}
    for drain in active_drains(state):
        mode = mode_now(state, drain.mode, drain.deadline_at)
        for run_id in state.hosts[drain.host].runs:
            run = state.runs[run_id]
            protected = run.protected(state.now)
            if run.stop is None and mode != "finish" and (mode == "now" or not protected):
                reason = f"{drain.host} is drained" + (f": {drain.by.reason}" if drain.by.reason else "")
                override = mode == "now" and protected
                stops[run_id] = StopDecided(run_id, StopCause.DRAIN, reason, drain.by.actor, override)
    return [stops[run_id] for run_id in sorted(stops)]


def mode_now(state: ClusterState, mode: str, deadline_at: int | None) -> str:
    """A finish becomes a contract at its deadline."""
    if mode == "finish" and deadline_at is not None and state.now >= deadline_at:
        return "contract"
    return mode


def drained(state: ClusterState) -> list[Decision]:
    """Hosts that are known empty: the host itself says so, now (rule 26)."""
    found: list[Decision] = []
    for drain in active_drains(state):
        host = state.hosts[drain.host]
        if host.state is HostState.DRAINING and host.reach is Reach.FRESH and host.empty and not host.runs:
            found.append(HostMoved(drain.host, HostState.DRAINED, "known empty"))
    return found


def next_release(state: ClusterState) -> int | None:
    """The next instant at which a draining host may stop a run."""
    ends = [
        until
        for drain in active_drains(state)
        if mode_now(state, drain.mode, drain.deadline_at) == "contract"
        for run_id in state.hosts[drain.host].runs
        if (run := state.runs[run_id]).stop is None and (until := run.protected_until()) is not None
    ]
    return min(ends, default=None)


# -- previews -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrainRow:
    """What a drain does to one run. Instants in ms; None where nobody can know, with `blocked` saying why."""

    host: HostName
    run: RunId
    workload: WorkloadId
    ran_ms: int | None
    min_runtime_ms: int
    stops_at: int | None
    released_at: int | None
    then: str  # requeue, restart, ends as preempted
    lost_gpu_ms: int  # GPU-thousandths x ms, if it stopped now
    breaks_guarantee: bool
    gang_hosts: int
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """Nothing is sent yet. `empty_at`: when each host is empty at the latest; None where that cannot be known."""

    hosts: tuple[HostName, ...]
    mode: str
    rows: tuple[DrainRow, ...]
    empty_at: tuple[int | None, ...]

    @property
    def guarantees_broken(self) -> int:
        return len({row.run for row in self.rows if row.breaks_guarantee})


def drain_plan(
    state: ClusterState, hosts: Iterable[HostName], mode: str = "contract", deadline_at: int | None = None
) -> DrainPlan:
    """What draining these hosts would do, by the rules that `due_stops` follows."""
    names = tuple(dict.fromkeys(hosts))
    rows = tuple(
        drain_row(state, state.hosts[name], state.runs[run], mode, deadline_at)
        for name in names
        for run in state.hosts[name].runs
    )
    empty_at = tuple(_latest(state, name, rows) for name in names)
    return DrainPlan(names, mode, rows, empty_at)


def drain_row(state: ClusterState, host: HostRecord, run: Run, mode: str, deadline_at: int | None) -> DrainRow:
    record = state.workloads[run.workload]
    stops_at = None if _blocked(host) else _stops_at(state, run, mode, deadline_at)
    released_at = None if stops_at is None else stops_at + graces_ms(state, run)
    then = "requeue" if record.workload.resumable else "ends as preempted"
    if not record.workload.resumable and record.workload.on_preempt.value == "restart":
        then = "restart"
    return DrainRow(
        host.host.name,
        run.id,
        run.workload,
        None if run.started_at is None or _blocked(host) else state.now - run.started_at,
        run.min_runtime_ms,
        stops_at,
        released_at,
        then,
        lost_gpu_ms(state, run),
        mode == "now" and run.protected(state.now) and run.stop is None,
        len(run.members),
        _blocked(host) or ("" if stops_at is not None else "goes on to its natural end"),
    )


def why_unknown(state: ClusterState, drain: DrainRecord) -> str:
    """Why no instant can be given for a drain, or nothing."""
    host = state.hosts.get(drain.host)
    if host is None:
        return "the host left the inventory"
    if blocked := _blocked(host):
        return blocked
    if not host.runs and host.foreign:
        return f"foreign processes on {host.foreign.bit_count()} of its GPUs"
    if any(host.leaked & state.runs[run].members[drain.host].slots for run in host.runs):
        return "processes that could not be killed still hold GPUs"
    return "" if eta(state, drain) is not None else "its runs go on to their natural end"


def _blocked(host: HostRecord) -> str:
    if host.reach in (Reach.UNREACHABLE, Reach.LOST, Reach.NEVER_SEEN):
        return f"host {host.reach.value.replace('_', ' ')}, unverified"
    return ""


def _stops_at(state: ClusterState, run: Run, mode: str, deadline_at: int | None) -> int | None:
    """When the drain stops the run at the latest; None where it waits for an end that nobody knows."""
    if run.stop is not None:
        return run.stop_at or state.now
    if mode == "now" or not run.allocated:
        earliest = state.now
    else:
        begun = state.now if run.started_at is None else run.started_at
        earliest = max(state.now, begun + run.min_runtime_ms)
    if mode != "finish":
        return earliest
    limit_ms = state.workloads[run.workload].workload.time_limit_ms
    ends = [] if deadline_at is None else [max(earliest, deadline_at)]
    if limit_ms is not None:
        ends.append((state.now if run.started_at is None else run.started_at) + limit_ms)
    return min(ends, default=None)


def _latest(state: ClusterState, name: HostName, rows: tuple[DrainRow, ...]) -> int | None:
    host = state.hosts[name]
    if _blocked(host) or host.leaked or (host.foreign and not host.runs):
        return None
    ends = [row.released_at for row in rows if row.host == name]
    return None if None in ends else max((e for e in ends if e is not None), default=state.now)


def eta(state: ClusterState, drain: DrainRecord) -> int | None:
    """When the host of a drain is empty at the latest: protection end plus both graces (rule 25).

    None where nobody can know: `why_unknown`.
    """
    return drain_plan(state, [drain.host], drain.mode, drain.deadline_at).empty_at[0]
