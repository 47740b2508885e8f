"""Hosts as they stand: freshness first, then health. Silence is unknown, never well."""

from __future__ import annotations

from typing import Any

from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, count, few, span
from opsconsole.presenting.view import ClusterView, HostFacts
from opsconsole.presenting.xids import fatal_xids
from opsconsole.probes import is_calm
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
    """A first word on health: what the readings themselves say. Silence is unknown, never ok."""
    facts = view.facts(record.host.name)
    if facts.probe is None or record.reach not in (Reach.FRESH, Reach.STALE):
        return Cell("? unknown", "unknown")
    if failures(view, record):
        return Cell("✖ fail", "bad")
    if record.foreign or record.leaked:
        return Cell("! warn", "warn")
    return Cell("✓ ok", "good")


def failures(view: ClusterView, record: HostRecord) -> list[str]:
    """What makes a host unfit to serve: fatal errors that its kernel log tells, then what its readings say."""
    name = record.host.name
    if name not in view.failing:
        facts = view.facts(name)
        told = [what for what, _ in fatal_xids(record, facts, view.state.now)]
        view.failing[name] = told + problems(record, facts) if facts.probe is not None else []
    return view.failing[name]


def problems(record: HostRecord, facts: HostFacts) -> list[str]:
    """What is wrong with GPUs of a host, in words."""
    if is_calm(facts.probe) and all(record.gpu_ids) and len(record.gpu_ids) >= record.host.gpus:
        return []
    driver = (facts.probe or {}).get("driver")
    if isinstance(driver, dict) and "v" not in driver:
        return [f"driver: {clean(str(driver.get('failed') or driver.get('denied') or 'absent'), 80)}"]
    found = []
    gpus = {gpu.get("slot"): gpu for gpu in (facts.probe or {}).get("gpus", [])}
    for slot in range(record.host.gpus):
        gpu = gpus.get(slot)
        if gpu is None:
            found.append(f"GPU {slot} is missing")
        elif "failed" in (gpu.get("uuid") or {}):
            found.append(f"GPU {slot}: {clean(str(gpu['uuid']['failed']), 80)}")
        elif any("failed" in r for r in gpu.get("readings", {}).values() if isinstance(r, dict)):
            found.append(f"GPU {slot} has readings that fail")
    return found


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
