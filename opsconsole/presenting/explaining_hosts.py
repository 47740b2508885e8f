"""Why a host stands as it does: by whom, how it is reached, what is wrong, until when something holds it."""

from __future__ import annotations

from typing import Any

from opsconsole.presenting.drains import drain_of
from opsconsole.presenting.hosts import AWAY, failures, warnings, watched
from opsconsole.presenting.sentences import by_text
from opsconsole.presenting.text import count, day_clock, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import eta, why_unknown
from scheduler_core.fleet import Reach
from scheduler_core.state import HostRecord, Run


def host_lines(view: ClusterView, record: HostRecord) -> list[str]:
    """Its state and by whom, how it is reached, what is wrong, and when a drain or a cordon ends."""
    name, facts = record.host.name, view.facts(record.host.name)
    by = f", by {by_text(record.by)}" if record.by else ""
    lines = [
        f"{name} is {record.state.value.replace('_', ' ')}{by}.",
        _reached(view, record),
        f"{record.held.bit_count()} of {count(record.host.gpus, 'GPU')} in use, {record.free.bit_count()} free.",
    ]
    lines += [_runs_until(view, view.state.runs[run], record.reach in AWAY) for run in record.runs]
    lines += [f"{warning[0].upper()}{warning[1:]}." for warning in warnings(record, facts)]
    if record.foreign:
        lines.append("Nothing is placed on those GPUs: end the processes, or name them in system_processes.")
    if facts.probe is None:
        lines.append("There are no readings of it: nothing is known of its health.")
    else:
        lines += [f"{said}." for said in (*failures(view, record), *watched(view, record))]
    if (drain := drain_of(view.state, record)) is not None:
        at = eta(view.state, drain)
        lines.append(
            f"It is empty by {day_clock(view.wall(at), view.wall_ms)} at the latest."
            if at is not None
            else f"When it is empty nobody can say: {why_unknown(view.state, drain)}."
        )
    if (ends := view.state.cordons_end.get(name)) is not None:
        lines.append(f"Its cordon lifts by itself at {day_clock(view.wall(ends), view.wall_ms)}.")
    return lines


def host_figures(view: ClusterView, record: HostRecord) -> dict[str, Any]:
    """The same for scripts."""
    facts, drain = view.facts(record.host.name), drain_of(view.state, record)
    empty_at = eta(view.state, drain) if drain is not None else None
    ends = view.state.cordons_end.get(record.host.name)
    return {
        "state": record.state.value,
        "by": record.by.actor if record.by else "",
        "reason": record.by.reason if record.by else "",
        "reach": record.reach.value,
        "why": record.unreachable_why or facts.why,
        "reading_age_s": facts.age_s,
        "gpus": record.host.gpus,
        "held": record.held.bit_count(),
        "free": record.free.bit_count(),
        "leaked": record.leaked.bit_count(),
        "foreign": record.foreign.bit_count(),
        "problems": [*failures(view, record), *watched(view, record), *warnings(record, facts)],
        "runs": {run: _protected_until_ms(view, view.state.runs[run]) for run in record.runs},
        "empty_by_ms": None if empty_at is None else view.wall(empty_at),
        "cordon_ends_ms": None if ends is None else view.wall(ends),
    }


def _protected_until_ms(view: ClusterView, run: Run) -> int | None:
    until = run.protected_until()
    return view.wall(until) if run.allocated and until is not None else None


def _reached(view: ClusterView, record: HostRecord) -> str:
    """How it is reached, and how old what is known of it is."""
    facts = view.facts(record.host.name)
    age = "" if facts.age_s is None else f"the newest readings are {span(int(facts.age_s * 1000))} old"
    if record.reach in (Reach.FRESH, Reach.STALE):
        trip = "" if facts.rtt_s is None else f", a question takes {facts.rtt_s * 1000:.0f} ms"
        return f"It answers{': ' if age else ''}{age}{trip}."
    why = record.unreachable_why or facts.why or "no reason known"
    return f"It is {record.reach.value.replace('_', ' ')} ({why}){'; ' if age else ''}{age}."


def _runs_until(view: ClusterView, run: Run, away: bool) -> str:
    """One run there, as far as the host can be asked, and until when nothing stops it."""
    until = run.protected_until()
    when = "its minimum, once it has started" if until is None else day_clock(view.wall(until), view.wall_ms)
    kept = f"protected until {when}" if run.protected(view.state.now) else "interruptible"
    return f"{run.id} {'ran there when it was last heard of' if away else 'runs there'}, {kept}."
