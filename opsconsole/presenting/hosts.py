"""The hosts: freshness first, then health, then what runs there."""

from __future__ import annotations

from typing import Any

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count, few, span
from opsconsole.presenting.view import ClusterView, HostFacts
from opsconsole.presenting.xids import fatal_xids
from scheduler_core.fleet import HostState, Reach
from scheduler_core.state import ClusterState, HostRecord

COLUMNS = (
    Column("HOST", 11, by="host", most=18),
    Column("FRESH", 9, most=20),
    Column("HEALTH", 9),
    Column("GPUS", 5, right=True, by="held"),
    Column("BUSY", 7, right=True, by="busy_percent"),
    Column("TEMP", 7, right=True, from_width=100, by="temperature_c"),
    Column("POWER", 8, right=True, from_width=110, by="power_w"),
    Column("ECC", 4, right=True, from_width=120, by="ecc"),
    Column("XID", 4, right=True, from_width=90, by="xid"),
    Column("RUNS", 4, right=True, by="run_count"),
    Column("PROTECTED FOR", 13, right=True, from_width=80, by="protected_s"),
    Column("STATE", 12, grow=True, by="state"),
)
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
        found.append(f"{count(record.leaked.bit_count(), 'GPU')} leaked: still held after SIGKILL")
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


def last_xid(facts: HostFacts) -> str:
    for line in reversed(list(facts.kernel)):
        xid = line.get("xid")
        if isinstance(xid, dict):
            return str(xid.get("code"))
    return ""


def state_cell(record: HostRecord) -> Cell:
    reason = f": {clean(record.by.reason, 60)}" if record.by and record.by.reason else ""
    if record.removed:
        return Cell("leaving the inventory", "warn")
    if record.state is HostState.SERVING:
        return Cell("serving", "")
    token = "bad" if record.state in (HostState.SUSPECT, HostState.VERIFY_FAILED) else "warn"
    return Cell(f"{record.state.value.replace('_', ' ')}{reason}", token)


def protected_ms(state: ClusterState, record: HostRecord) -> int:
    """For how long the last run there is still protected; 0 where none is."""
    ends = [state.now]
    for run_id in record.runs:
        run = state.runs[run_id]
        if run.protected(state.now):
            until = run.protected_until()
            ends.append(state.now + run.min_runtime_ms if until is None else until)
    return max(ends) - state.now


def protected_for(state: ClusterState, record: HostRecord) -> Cell:
    left = protected_ms(state, record)
    return Cell(span(left), "accent") if left else Cell("–", "dim")


def _was(text: str, fresh: bool) -> Cell:
    """A value that is not current says so and loses its colour."""
    return Cell(text) if fresh else Cell(f"was {text}", "dim")


def host_row(view: ClusterView, record: HostRecord) -> Row:
    name = record.host.name
    facts, fresh = view.facts(name), is_fresh(view, record)
    busy, temps = known(gpu_values(facts, "utilization_percent")), known(gpu_values(facts, "temperature_c"))
    power, ecc = known(gpu_values(facts, "power_w")), known(gpu_values(facts, "ecc_volatile_uncorrected"))
    held = record.held.bit_count()
    word = health(view, record)
    cells = (
        Cell(clean(name, 60)),
        mark(view, record),
        word,
        Cell(f"{held}/{record.host.gpus}"),
        _was(f"{sum(busy) / len(busy):.0f}%", fresh) if busy else Cell("?", "unknown"),
        _was(f"{max(temps):.0f}C", fresh) if temps else Cell("?", "unknown"),
        _was(f"{sum(power) / 1000:.1f}k", fresh) if power else Cell("?", "unknown"),
        Cell(f"{sum(ecc):.0f}", "bad" if sum(ecc) else "") if ecc else Cell("?", "unknown"),
        Cell(last_xid(facts) or "–", "bad" if last_xid(facts) else "dim"),
        Cell(str(len(record.runs))),
        protected_for(view.state, record),
        state_cell(record),
    )
    data = host_data(view, record, facts, word.text) | {
        "busy_percent": round(sum(busy) / len(busy), 1) if busy else None,
        "temperature_c": max(temps, default=None),
        "power_w": sum(power) if power else None,
        "ecc": sum(ecc) if ecc else None,
        "xid": last_xid(facts) or None,
        "run_count": len(record.runs),
        "protected_s": protected_ms(view.state, record) / 1000,
    }
    return Row(name, cells, data)


def host_data(view: ClusterView, record: HostRecord, facts: HostFacts, word: str) -> dict[str, Any]:
    """The keys of `opsconsole hosts --json`."""
    return {
        "host": record.host.name,
        "state": record.state.value,
        "reach": record.reach.value,
        "why": record.unreachable_why,
        "health": word.split()[-1],
        "problems": [*failures(view, record), *warnings(record, facts)] if facts.probe is not None else [],
        "gpus": record.host.gpus,
        "held": record.held.bit_count(),
        "free": record.free.bit_count(),
        "leaked": record.leaked.bit_count(),
        "reading_age_s": None if facts.age_s is None else round(facts.age_s, 1),
        "runs": list(record.runs),
        "reason": record.by.reason if record.by else "",
        "by": record.by.actor if record.by else "",
    }


def hosts_table(view: ClusterView) -> TableView:
    rows = tuple(host_row(view, view.state.hosts[name]) for name in sorted(view.state.hosts))
    return TableView("Hosts", COLUMNS, rows, "no hosts are known: nothing has been read yet")


def freshness_counts(view: ClusterView) -> dict[str, int]:
    """Hosts by mark."""
    counts = {"●": 0, "◐": 0, "○": 0, "✖": 0, "?": 0}
    for record in view.state.hosts.values():
        counts[mark(view, record).text[0]] += 1
    return counts
