"""Events as sentences, for the timeline, `events` and explanations."""

from __future__ import annotations

from typing import Any

from opsconsole.presenting.text import clean, span
from scheduler_core import decisions as d
from scheduler_core import observations as o


def _hosts(members: tuple[d.Member, ...]) -> str:
    return ", ".join(f"{m.host}:{m.gpus}" for m in members)


def _by(by: o.By) -> str:
    return f"{by.actor}: {by.reason}" if by.reason else by.actor


def sentence(event: Any) -> str:
    """One line, cleaned."""
    return clean(_sentence(event))


def _sentence(event: Any) -> str:  # noqa: C901 - one line for each kind of event
    match event:
        case o.WorkloadSubmitted(w):
            return f"{w.id} submitted to {w.budget}: {w.gpus} GPUs, min runtime {span(w.min_runtime_ms)}, by {w.owner}"
        case o.CancelRequested(wid, by):
            return f"{wid} cancelled by {_by(by)}"
        case o.RequeueRequested(wid, by, override):
            return f"requeue of {wid} asked for by {_by(by)}{', overriding its guarantee' if override else ''}"
        case o.HoldRequested(wid, by):
            return f"{wid} held by {_by(by)}"
        case o.ReleaseRequested(wid, by):
            return f"{wid} released by {_by(by)}"
        case o.WorkloadMoved(wid, by):
            return f"{wid} changed by {_by(by)}"
        case o.CordonRequested(host, by):
            return f"{host} cordoned by {_by(by)}"
        case o.DrainRequested(_, host, by, mode):
            return f"drain ({mode}) of {host} asked for by {_by(by)}"
        case o.UndrainRequested(host, by):
            return f"{host} returned to service by {_by(by)}"
        case o.HostAdvanced(host, to, by):
            return f"{host} is {to}: {_by(by)}"
        case o.HostDeclared(host, what, by):
            return f"{host} declared {what} by {_by(by)}"
        case o.BreakerReset(by):
            return f"breaker reset by {_by(by)}"
        case o.HostSeen(host, boot, _, foreign, unfit):
            notes = [f"{unfit.bit_count()} unfit GPUs"] * bool(unfit) + ["foreign processes"] * bool(foreign)
            return f"{host} answers (boot {boot[:8]}){': ' + ', '.join(notes) if notes else ''}"
        case o.HostStale(host):
            return f"readings of {host} are too old"
        case o.HostUnreachable(host, why):
            return f"{host} cannot be reached: {why}"
        case o.HostFenced(host):
            return f"{host} was powered off"
        case o.AutoDrainProposed(_, host, reason):
            return f"health proposes to drain {host}: {reason}"
        case o.MemberStarted(run, host):
            return f"{run} runs on {host}"
        case o.MemberExited(run, host, code, signal, signalled):
            how = f"exit status {code}" if code is not None else signal if signal else "nobody knows how"
            return f"{run} ended on {host}: {how}{', after a stop' if signalled else ''}"
        case o.MemberReleased(run, host):
            return f"{run} gave its GPUs on {host} back"
        case o.MemberNeverStarted(run, host, why):
            return f"{run} did not start on {host}: {why}"
        case d.Placed(_, run, members):
            return f"{run} placed on {_hosts(members)}"
        case d.Claimed(wid, members, waits_for):
            return f"{_hosts(members)} held for {wid}, which waits for {', '.join(waits_for)}"
        case d.StopDecided(run, cause, reason):
            return f"{run} stops ({cause}): {reason}"
        case d.HostMoved(host, to, reason):
            return f"{host} is {to.replace('_', ' ')}: {reason}"
        case d.HostLost(host):
            return f"{host} is lost: unreachable for too long"
        case d.MemberLeaked(run, host):
            return f"{run} still holds GPUs of {host} after SIGKILL: out of service"
        case d.WorkloadHeld(wid, reason):
            return f"{wid} held: {reason}"
        case d.BreakerTripped(what, reason):
            return f"breaker: {what} waits for an operator: {reason}"
    return type(event).__name__


HARDWARE = ("HostSeen", "HostStale", "HostUnreachable", "HostFenced", "HostLost", "MemberLeaked", "AutoDrainProposed")


def source_of(event: Any) -> str:
    """Who made it happen: hardware, scheduler, or a person."""
    name = type(event).__name__
    if name in HARDWARE:
        return "hardware"
    if name.endswith("Requested") or name in ("WorkloadSubmitted", "WorkloadMoved", "HostAdvanced", "HostDeclared"):
        return "person"
    return "run" if name.startswith("Member") else "scheduler"


def subject_of(event: Any) -> str:
    """The host, run or workload that it is about."""
    for name in ("host", "run", "workload"):
        subject = getattr(event, name, None)
        if isinstance(subject, str):
            return subject
        if subject is not None:
            return str(subject.id)
    return ""
