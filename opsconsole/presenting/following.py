"""What became of an action: requested is not done. Each action has an end that can be seen in the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opsconsole.presenting.drains import drain_of
from opsconsole.presenting.text import clean, day_clock, few
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import eta, why_unknown
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.state import HostRecord, WorkloadRecord
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
class End:
    """How it ended for one target, in a word. Not `well`: what was asked for will not come any more."""

    word: str
    well: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """`ends` has the targets for which it is over; `outcome` says how, once it is over for all."""

    of: int
    ends: dict[str, End]
    text: str

    @property
    def ended(self) -> bool:
        return len(self.ends) == self.of

    @property
    def well(self) -> bool:
        return all(end.well for end in self.ends.values())

    @property
    def outcome(self) -> str:
        return told(self.ends)


def told(ends: dict[str, End]) -> str:
    """One word where it is the same for all; else each with its own."""
    words = dict.fromkeys(end.word for end in ends.values())
    if len(words) == 1:
        return next(iter(words))
    named = {word: few([clean(t, 40) for t, end in ends.items() if end.word == word]) for word in words}
    return ", ".join(f"{names} {word}" for word, names in named.items())


def followed(view: ClusterView, action: str, targets: tuple[str, ...]) -> Followed:
    records = (view.state.workloads.get(WorkloadId(t)) for t in targets)
    runs = tuple(r.run for r in records if r is not None and r.run is not None)
    return Followed(action, targets, view.wall_ms, runs)


def progress(view: ClusterView, action: Followed) -> Progress:
    """For how many of its targets it is over, and how; until then when that will be, as far as anybody can say."""
    ends = {target: end for target in action.targets if (end := _end(view, action, target)) is not None}
    of, at = len(action.targets), day_clock(action.asked_wall_ms, view.wall_ms)
    if len(ends) == of:
        return Progress(of, ends, f"{action.title}: {told(ends)} (asked for at {at})")
    text = f"{action.title}: requested at {at}, {len(ends)} of {of} done{_outlook(view, action)}"
    return Progress(of, ends, text)


def _end(view: ClusterView, action: Followed, target: str) -> End | None:
    if action.action in _HOSTS:
        host = view.state.hosts.get(HostName(target))
        return End("left the inventory", False) if host is None else _HOSTS[action.action](host)
    if action.action in _WORKLOADS:
        workload = view.state.workloads.get(WorkloadId(target))
        return End("ended a day ago", False) if workload is None else _WORKLOADS[action.action](view, action, workload)
    return End("done")


def _outlook(view: ClusterView, action: Followed) -> str:
    if action.action != "drain":
        return ""
    ends = []
    for target in action.targets:
        record = view.state.hosts.get(HostName(target))
        drain = drain_of(view.state, record) if record is not None else None
        if drain is None:
            continue
        at = eta(view.state, drain)
        if at is None:
            return f", BLOCKED: {clean(target, 40)}: {why_unknown(view.state, drain)}"
        ends.append(at)
    return f", empty by {day_clock(view.wall(max(ends)), view.wall_ms)}" if ends else ""


# -- hosts ---------------------------------------------------------------------------------------------------------


def _drained(host: HostRecord) -> End | None:
    if host.state is HostState.DRAINING:
        return None
    emptied = (HostState.DRAINED, HostState.REPAIRING, HostState.VERIFYING, HostState.VERIFY_FAILED)
    return End("drained") if host.state in emptied else _overtaken(host)


def _cordoned(host: HostRecord) -> End:
    return End("cordoned") if host.state is not HostState.SERVING else _overtaken(host)


def _serving(host: HostRecord) -> End:
    return End("serving") if host.state is HostState.SERVING else _overtaken(host)


def _overtaken(host: HostRecord) -> End:
    """Somebody wanted something else since."""
    by = f" by {host.by}" if host.by is not None else ""
    return End(clean(f"overtaken: {host.state.value.replace('_', ' ')}{by}", 120), False)


_HOSTS: dict[str, Callable[[HostRecord], End | None]] = {"drain": _drained, "cordon": _cordoned, "undrain": _serving}


# -- workloads -----------------------------------------------------------------------------------------------------


def _requeued(view: ClusterView, action: Followed, record: WorkloadRecord) -> End | None:
    """The run that it had then has gone."""
    mine = [RunId(run) for run in action.runs if run.rpartition("~")[0] == record.workload.id]
    left = [view.state.runs[run] for run in mine if run in view.state.runs]
    if left:
        coming = record.pending is not None or left[0].stop is not None
        return None if coming else End("runs on", False)
    if record.phase is WorkloadPhase.ENDED:
        return End(f"ended: {record.outcome}", False)
    return End({WorkloadPhase.WAITING: "waits again", WorkloadPhase.HELD: "held"}.get(record.phase, "runs again"))


def _cancelled(view: ClusterView, action: Followed, record: WorkloadRecord) -> End | None:
    return End("ended") if record.phase is WorkloadPhase.ENDED else None


def _held(view: ClusterView, action: Followed, record: WorkloadRecord) -> End:
    held = record.phase is WorkloadPhase.HELD
    return End("held") if held else End(f"not held: {record.phase.value}", False)


def _released(view: ClusterView, action: Followed, record: WorkloadRecord) -> End:
    words = {WorkloadPhase.WAITING: "waits again", WorkloadPhase.RUNNING: "runs"}
    word = words.get(record.phase)
    return End(word) if word is not None else End(f"not released: {record.phase.value}", False)


_WORKLOADS: dict[str, Callable[[ClusterView, Followed, WorkloadRecord], End | None]] = {
    "requeue": _requeued,
    "cancel": _cancelled,
    "hold": _held,
    "release": _released,
}
