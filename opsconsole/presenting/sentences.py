"""Events as sentences, for the timeline, `events` and explanations: one table, a line for each kind of event.

A line is a format of the event `e`, of `by` (who and why) where a person asked, and of `on` (its members' hosts).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opsconsole.presenting.text import clean, count, span
from scheduler_core import decisions as d
from scheduler_core import observations as o
from scheduler_core.units import WEIGHT


def by_text(by: o.By) -> str:
    """Who, and why where that was said."""
    return str(by)


def _submitted(e: o.WorkloadSubmitted) -> str:
    w = e.workload
    promised = f"min runtime {span(w.min_runtime_ms)}" if w.allocated else "unallocated"
    return f"{w.id} submitted to {w.budget}: {count(w.gpus, 'GPU')}, {promised}, by {w.owner or 'nobody'}"


ASKED = {  # kinds of requests, as the commands are called
    "WorkloadSubmitted": "submit",
    "CancelRequested": "cancel",
    "RequeueRequested": "requeue",
    "HoldRequested": "hold",
    "ReleaseRequested": "release",
    "WorkloadMoved": "move",
    "CordonRequested": "cordon",
    "DrainRequested": "drain",
    "UndrainRequested": "undrain",
    "HostDeclared": "declare",
    "WeightChanged": "weight",
    "UsageForgotten": "forget",
    "ReloadRequested": "reload",
    "BreakerReset": "breaker",
}


def _claimed(e: d.Claimed) -> str:
    if not e.members:
        return f"nothing is kept for {e.workload} any more: it would come too late for what is reserved there"
    return f"{_hosts(e.members)} kept for {e.workload}, which waits for {', '.join(e.waits_for)}"


def _for_a_while(e: o.CordonRequested | o.HoldRequested) -> str:
    return "" if e.until_at is None else " for a while"


def _moved(e: o.WorkloadMoved) -> str:
    """To where, and to which priority, as far as they were asked for."""
    to = [f"moved to {e.budget}"] * (e.budget is not None) + [f"given priority {e.priority}"] * (e.priority is not None)
    return " and ".join(to) or "left as it is"


def _seen(e: o.HostSeen) -> str:
    notes = [count(e.unfit.bit_count(), "unfit GPU")] * bool(e.unfit) + ["foreign processes"] * bool(e.foreign)
    return f"{e.host} answers (boot {e.boot_id[:8]})" + (f": {', '.join(notes)}" if notes else "")


def _clock_stepped(e: o.ClockStepped) -> str:
    way = "forward" if e.by_ms > 0 else "back"
    told = f"the head node's clock was set {way} by {span(abs(e.by_ms))}"
    return f"{told}: times before are in the old time; no promise moves"


def _exited(e: o.MemberExited) -> str:
    how = f"exit status {e.exit_code}" if e.exit_code is not None else e.signal or "nobody knows how"
    return f"{e.run} ended on {e.host}: {how}{', after a stop' if e.signalled else ''}"


def _wishes(e: o.AutoDrainProposed) -> str:
    what = "cordon" if e.cordon_only else "drain"
    return f"asks a person to {what}" if e.confirm else f"proposes to {what}"


SENTENCES: dict[type, str | Callable[[Any], str]] = {
    # what people asked for
    o.InventoryLoaded: lambda e: f"inventory read: {count(len(e.hosts), 'host')}, {count(len(e.budgets), 'budget')}",
    o.WorkloadSubmitted: _submitted,
    o.CancelRequested: "{e.workload} cancelled by {by}",
    o.RequeueRequested: lambda e: (
        f"requeue of {e.workload} asked for by {by_text(e.by)}{', overriding its guarantee' if e.override else ''}"
    ),
    o.HoldRequested: lambda e: f"{e.workload} held{_for_a_while(e)} by {e.by}",
    o.WeightChanged: lambda e: f"weight of {e.budget} set to {e.weight / WEIGHT:g} by {e.by}",
    o.UsageForgotten: "usage of {e.budget} forgotten by {by}",
    o.RequestRefused: lambda e: f"{ASKED.get(e.asked, e.asked)} {e.about} refused to {e.by.actor}: {e.why}",
    o.ReleaseRequested: "{e.workload} released by {by}",
    o.WorkloadMoved: lambda e: f"{e.workload} {_moved(e)} by {e.by}",
    o.CordonRequested: lambda e: f"{e.host} cordoned{_for_a_while(e)} by {e.by}",
    o.DrainRequested: "drain ({e.mode}) of {e.host} asked for by {by}",
    o.UndrainRequested: "{e.host} returned to service by {by}",
    o.HostAdvanced: "{e.host} is {e.to}: {by}",
    o.HostDeclared: "{e.host} declared {e.what} by {by}",
    o.ReloadRequested: "inventory reloaded by {by}",
    o.BreakerReset: "breaker reset by {by}",
    # what hosts and runs said
    o.HostSeen: _seen,
    o.HostStale: "readings of {e.host} are too old",
    o.HostUnreachable: "{e.host} cannot be reached: {e.why}",
    o.HostFenced: "{e.host} was powered off",
    o.ClockStepped: _clock_stepped,
    o.AutoDrainProposed: lambda e: f"health {_wishes(e)} {e.host}: {e.reason}",
    o.AutoDrainWithdrawn: "health asks no longer for a drain of {e.host}: {e.reason}",
    o.MemberStarted: "{e.run} runs on {e.host}",
    o.MemberExited: _exited,
    o.MemberReleased: "{e.run} gave its GPUs on {e.host} back",
    o.MemberNeverStarted: "{e.run} did not start on {e.host}: {e.why}",
    # what was decided
    d.Placed: "{e.run} placed on {on}",
    d.Claimed: _claimed,
    d.Reserved: lambda e: f"{_hosts(e.members)} reserved for {e.workload}, once the runs on them may be stopped",
    d.ReservationEnded: "nothing is reserved for {e.workload} any more: {e.reason}",
    d.StopDecided: "{e.run} stops ({e.cause}): {e.reason}",
    d.HostMoved: lambda e: f"{e.host} is {e.to.replace('_', ' ')}: {e.reason}",
    d.HostLost: "{e.host} is lost: unreachable for too long",
    d.MemberLeaked: "{e.run} still uses GPUs of {e.host} after SIGKILL: out of service",
    d.StrayFound: "{e.run} was declared dead and lives on {e.host}: it is stopped",
    d.WorkloadHeld: "{e.workload} held: {e.reason}",
    d.BreakerTripped: "breaker: {e.what} waits for an operator: {e.reason}",
    d.PassDone: lambda e: f"planned{f'; max_blast alone keeps {len(e.blocked)} waiting' if e.blocked else ''}",
}
HARDWARE = (
    o.HostSeen,
    o.HostStale,
    o.HostUnreachable,
    o.HostFenced,
    o.ClockStepped,
    o.AutoDrainProposed,
    o.AutoDrainWithdrawn,
    d.HostLost,
    d.MemberLeaked,
    d.StrayFound,
)
RUN = (o.MemberStarted, o.MemberExited, o.MemberReleased, o.MemberNeverStarted)


def _hosts(members: tuple[d.Member, ...]) -> str:
    return ", ".join(f"{m.host}:{m.gpus}" for m in members)


def sentence(event: Any) -> str:
    """One line, cleaned. The kind's name where it has no sentence."""
    says = SENTENCES.get(type(event), type(event).__name__)
    if callable(says):
        return clean(says(event))
    parts = {"by": by_text(event.by)} if hasattr(event, "by") else {}
    on = {"on": _hosts(event.members)} if hasattr(event, "members") else {}
    return clean(says.format(e=event, **parts, **on))


def source_of(event: Any) -> str:
    """Who made it happen: hardware, a run, a person (all that says by whom), or the scheduler."""
    if isinstance(event, HARDWARE):
        return "hardware"
    if isinstance(event, RUN):
        return "run"
    return "person" if isinstance(event, o.WorkloadSubmitted) or hasattr(event, "by") else "scheduler"


def subject_of(event: Any) -> str:
    """The host, run, workload or budget that it is about."""
    for name in ("host", "run", "workload", "budget", "about"):
        subject = getattr(event, name, None)
        if isinstance(subject, str):
            return subject
        if subject is not None:
            return str(subject.id)
    return ""
