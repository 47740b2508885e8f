"""What became of an action: requested is not done. Each action has an end that can be seen in the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opsconsole.presenting.text import clean, day_clock, few
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import eta, why_unknown
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.workload import WorkloadPhase


@dataclass(frozen=True, slots=True)
class Followed:
    """An action that the leader has journalled. `runs` are the runs that its workloads had when it was asked for."""

    action: str
    targets: tuple[str, ...]
    asked_wall_ms: int
    runs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.action} {few([clean(t, 40) for t in self.targets])}"


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    of: int
    text: str

    @property
    def ended(self) -> bool:
        return self.done == self.of


def followed(view: ClusterView, action: str, targets: tuple[str, ...]) -> Followed:
    records = (view.state.workloads.get(WorkloadId(t)) for t in targets)
    runs = tuple(r.run for r in records if r is not None and r.run is not None)
    return Followed(action, targets, view.wall_ms, runs)


def progress(view: ClusterView, action: Followed) -> Progress:
    """How many of its targets have come to the end that was asked for."""
    reached = _ENDS.get(action.action, _no_end)
    done = sum(1 for target in action.targets if reached(view, action, target))
    of = len(action.targets)
    at = day_clock(action.asked_wall_ms, view.wall_ms)
    if done == of:
        return Progress(done, of, f"{action.title}: done (asked for at {at})")
    return Progress(done, of, f"{action.title}: requested at {at}, {done} of {of} done{_outlook(view, action)}")


def _outlook(view: ClusterView, action: Followed) -> str:
    if action.action != "drain":
        return ""
    ends = []
    for target in action.targets:
        record = view.state.hosts.get(HostName(target))
        drain = view.state.drains.get(record.drain) if record is not None and record.drain else None
        if drain is None or drain.ended:
            continue
        at = eta(view.state, drain)
        if at is None:
            return f", BLOCKED: {clean(target, 40)}: {why_unknown(view.state, drain)}"
        ends.append(at)
    return f", empty by {day_clock(view.wall(max(ends)), view.wall_ms)}" if ends else ""


def _host_is(*states: HostState) -> Callable[[ClusterView, Followed, str], bool]:
    def reached(view: ClusterView, _: Followed, target: str) -> bool:
        record = view.state.hosts.get(HostName(target))
        return record is not None and record.state in states

    return reached


def _requeued(view: ClusterView, action: Followed, target: str) -> bool:
    """The run that it had then has gone."""
    mine = [run for run in action.runs if run.rpartition("~")[0] == target]
    return all(RunId(run) not in view.state.runs for run in mine)


def _phase_is(*phases: WorkloadPhase) -> Callable[[ClusterView, Followed, str], bool]:
    def reached(view: ClusterView, _: Followed, target: str) -> bool:
        record = view.state.workloads.get(WorkloadId(target))
        return record is not None and record.phase in phases

    return reached


def _no_end(view: ClusterView, action: Followed, target: str) -> bool:
    return True


_ENDS: dict[str, Callable[[ClusterView, Followed, str], bool]] = {
    "drain": _host_is(HostState.DRAINED, HostState.REPAIRING, HostState.VERIFYING),
    "cordon": _host_is(HostState.CORDONED, HostState.DRAINING, HostState.DRAINED),
    "undrain": _host_is(HostState.SERVING),
    "requeue": _requeued,
    "cancel": _phase_is(WorkloadPhase.ENDED),
    "hold": _phase_is(WorkloadPhase.HELD),
    "release": _phase_is(WorkloadPhase.WAITING, WorkloadPhase.RUNNING),
}
