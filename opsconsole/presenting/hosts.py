"""Hosts as they stand: freshness first, then health. Silence is unknown, never well."""

from __future__ import annotations

from typing import Any

from opsconsole.health.rules import Severity
from opsconsole.health.verdict import Status
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, count, few, span
from opsconsole.presenting.verdicts import MARKS, sentences, verdict_of
from opsconsole.presenting.view import ClusterView, HostFacts
from scheduler_core.fleet import Reach
from scheduler_core.state import HostRecord

AWAY = (Reach.UNREACHABLE, Reach.LOST, Reach.NEVER_SEEN)  # it cannot be asked
LATE_INTERVALS = 2
STALE_INTERVALS = 5


def mark(view: ClusterView, record: HostRecord) -> Cell:
    """● live, ◐ late, ○ stale, ✖ lost with its reason: never colour alone."""
    facts = view.facts(record.host.name)
    if record.reach in (Reach.UNREACHABLE, Reach.LOST):
        return Cell(f"✖ {clean(record.unreachable_why or facts.why or record.reach.value, 160)}", "bad")
    if record.reach is Reach.NEVER_SEEN:
        return Cell(f"✖ {clean(facts.why or record.unreachable_why or 'never seen', 160)}", "unknown")
    age = facts.age_s
    if age is None:
        return Cell("? no reading", "unknown")
    if record.reach is Reach.STALE or age > STALE_INTERVALS * view.interval_s:
        return Cell(f"○ {span(int(age * 1000))}", "warn")
    if age > LATE_INTERVALS * view.interval_s:
        return Cell(f"◐ {span(int(age * 1000))}", "warn")
    return Cell("● live", "good")


def is_fresh(view: ClusterView, record: HostRecord) -> bool:
    age = view.facts(record.host.name).age_s
    return record.reach is Reach.FRESH and age is not None and age <= LATE_INTERVALS * view.interval_s


def value(reading: Any) -> Any:
    """The value of a reading; None when it is absent, denied or failed: unknown is not zero."""
    return reading.get("v") if isinstance(reading, dict) else None


def gpu_values(facts: HostFacts, key: str) -> list[Any]:
    gpus = (facts.probe or {}).get("gpus", [])
    return [value(gpu.get("readings", {}).get(key)) for gpu in gpus]


def known(values: list[Any]) -> list[float]:
    return [float(v) for v in values if isinstance(v, int | float)]


def health(view: ClusterView, record: HostRecord) -> Cell:
    """The verdict; a host on which GPUs are in others' hands is not quite well either. Silence is unknown, never ok."""
    found = verdict_of(view, record)
    if found.status is Status.OK and (record.foreign or record.leaked):
        return MARKS[Status.WARN]
    return MARKS[found.status]


def failures(view: ClusterView, record: HostRecord) -> list[str]:
    """What makes a host unfit to serve, in words."""
    return sentences(one for one in verdict_of(view, record).findings if one.weight.drains)


def watched(view: ClusterView, record: HostRecord) -> list[str]:
    """What does not, and is to be watched."""
    return sentences(one for one in verdict_of(view, record).findings if one.weight is Severity.WATCH)


def warnings(record: HostRecord, facts: HostFacts) -> list[str]:
    """What keeps GPUs of a sound host from being used, in words."""
    found = []
    if record.foreign:
        named = strangers(record, facts)
        who = f": {few(named)}" if named else ""
        found.append(f"processes of others are on {count(record.foreign.bit_count(), 'GPU')}{who}")
    if record.leaked:
        found.append(f"{count(record.leaked.bit_count(), 'GPU')} leaked: still in use after SIGKILL")
    return found


def strangers(record: HostRecord, facts: HostFacts) -> list[str]:
    """Processes on its GPUs that are of no run here: name, pid, user."""
    found: dict[Any, str] = {}
    for gpu in (facts.probe or {}).get("gpus", []):
        for process in filter(lambda process: isinstance(process, dict), value(gpu.get("processes")) or ()):
            if not process.get("system") and process.get("run") not in record.runs:
                name, user = (clean(str(process.get(key) or "?"), 40) for key in ("name", "user"))
                found[process.get("pid")] = f"{name} (pid {process.get('pid')} of {user})"
    return list(found.values())


def freshness_counts(view: ClusterView) -> dict[str, int]:
    """Hosts by mark."""
    counts = {"●": 0, "◐": 0, "○": 0, "✖": 0, "?": 0}
    for record in view.state.hosts.values():
        counts[mark(view, record).text[0]] += 1
    return counts
