"""What speaks for or against a host: its readings, its kernel's log, and what was observed, asked for and decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opsconsole.health.finding import Finding
from opsconsole.health.rules import Severity
from opsconsole.presenting.hosts import value, warnings
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.sentences import sentence, source_of, subject_of
from opsconsole.presenting.text import clean, day_clock, span
from opsconsole.presenting.verdicts import sentence as finding_sentence
from opsconsole.presenting.verdicts import verdict_of
from opsconsole.presenting.view import ClusterView, HostFacts
from scheduler_core.ids import HostName
from scheduler_core.observations import MemberExited, MemberReleased, MemberStarted

COLUMNS = (
    Column("AGO", 6, right=True, by="ago_s"),
    Column("SOURCE", 10, by="source"),
    Column("WHAT", 30, grow=True),
)
# Counters of a GPU that a sound one keeps at nothing.
COUNTERS = (
    "ecc_volatile_uncorrected",
    "ecc_aggregate_uncorrected",
    "rows_remapped_uncorrected",
    "row_remap_pending",
    "row_remap_failed",
    "retired_pages_double_bit",
    "retired_pages_pending",
    "nvlinks_down",
    "nvlink_recovery_errors",
)
BRAKES = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
TOLD = 200
TOKENS = {"hardware": "warn", "person": "accent"}
OF_SEVERITY = {
    Severity.INFO: "dim",
    Severity.APPLICATION: "",
    Severity.WATCH: "warn",
    Severity.DEGRADED: "bad",
    Severity.FATAL: "bad",
}


def evidence_table(view: ClusterView, name: str) -> TableView:
    """What is so now first, then the newest."""
    record = view.state.hosts.get(HostName(name))
    if record is None:
        return TableView("Evidence", COLUMNS, (), "this host is not known")
    facts = view.facts(name)
    rows = []
    if facts.probe is not None:
        rows = [_verdict(facts, n, one) for n, one in enumerate(verdict_of(view, record).findings)]
        rows += [_now(facts, f"warning:{n}", "verdict", what, "warn") for n, what in enumerate(warnings(record, facts))]
        rows += [_now(facts, f"counter:{what}", "counter", what, "warn") for what in _counters(facts.probe)]
    since = sorted([*_kernel(view, facts), *_told(view, name)], key=lambda row: row.data["ago_s"])
    empty = "nothing speaks against it" if facts.probe is not None else "no readings, and nothing has happened to it"
    return TableView("Evidence", COLUMNS, (*rows, *since), empty)


def _row(key: str, ago_s: float, ago: str, source: str, what: str, token: str) -> Row:
    cells = (Cell(ago, "dim"), Cell(source, "dim"), Cell(clean(what), token))
    return Row(key, cells, {"ago_s": ago_s, "source": source, "what": what})


def _now(facts: HostFacts, key: str, source: str, what: str, token: str) -> Row:
    """As old as the readings that it follows from."""
    age_s = facts.age_s or 0.0
    return _row(key, age_s, span(int(age_s * 1000)), source, what, token)


def _verdict(facts: HostFacts, n: int, one: Finding) -> Row:
    """By which rule of whom, what it asks for, and who would say otherwise."""
    rule = " ".join(filter(None, (one.rule.id, one.rule.source, one.rule.date)))
    otherwise = "".join(f"; {who} says: {says}" for who, says in one.differ)
    what = f"{finding_sentence(one)} [{rule}: {one.action}{otherwise}]"
    return _now(facts, f"verdict:{n}", "verdict", what, OF_SEVERITY[one.weight])


def _counters(probe: Any) -> Iterator[str]:
    """Error counters that are not nothing, and what slows a GPU down."""
    for gpu in probe.get("gpus", []):
        readings = gpu.get("readings", {})
        for key in COUNTERS:
            found = value(readings.get(key))
            if found:
                yield f"GPU {gpu.get('slot')}: {key.replace('_', ' ')} {_amount(found)}".rstrip()
        reasons = value(readings.get("clock_event_reasons")) or ()
        if slowed := [str(reason) for reason in reasons if reason in BRAKES]:
            yield f"GPU {gpu.get('slot')} is slowed down: {', '.join(slowed).replace('_', ' ')}"


def _amount(found: Any) -> str:
    if isinstance(found, bool):
        return ""
    return ", ".join(map(str, found)) if isinstance(found, list) else str(found)


def _kernel(view: ClusterView, facts: HostFacts) -> Iterator[Row]:
    """Lines of the kernel's log since boot, each with what its code means and asks for."""
    for n, line in enumerate(facts.kernel):
        ago = _ago_s(line, facts)
        age_s = max(0.0, ago or 0.0)
        told = line.get("xid")
        xid: dict[str, Any] = told if isinstance(told, dict) else {}
        code = xid.get("code")
        rule = view.rounds.rules[f"xid:{code}"] if type(code) is int and not xid.get("sxid") else None
        meaning = f" [XID {code}: {rule.meaning}; {rule.action}]" if rule else ""
        text = clean(str(line.get("text") or f"XID {code}"), 200) + meaning
        yield _row(
            f"kernel:{line.get('monotonic_s')}:{n}",
            age_s,
            "?" if ago is None else span(int(age_s * 1000)),
            "kernel log",
            text,
            OF_SEVERITY[rule.severity] if rule else "",
        )


def _ago_s(line: Mapping[str, Any], facts: HostFacts) -> float | None:
    """How long ago a line of the kernel's log was written; None where it or the readings do not say."""
    at, uptime_s = line.get("monotonic_s"), (facts.probe or {}).get("uptime_s")
    if not isinstance(at, int | float) or not isinstance(uptime_s, int | float):
        return None
    return uptime_s - at + (facts.age_s or 0.0)


def _told(view: ClusterView, name: str) -> Iterator[Row]:
    """Of the timeline, what is about this host."""
    told = 0
    for happening in reversed(view.happenings):
        if subject_of(happening.event) != name or not _speaks(happening.event):
            continue
        ago_ms = max(0, view.wall_ms - happening.wall_ms)
        source = source_of(happening.event)
        at = day_clock(happening.wall_ms, view.wall_ms)
        what = f"{at} {sentence(happening.event)}"
        yield _row(str(happening.seq), ago_ms / 1000, span(ago_ms), source, what, TOKENS.get(source, ""))
        told += 1
        if told == TOLD:
            return


def _speaks(event: Any) -> bool:
    """Runs that come and go as they should say nothing of their host."""
    if isinstance(event, MemberExited):
        return event.exit_code != 0 and not event.signalled
    return not isinstance(event, MemberStarted | MemberReleased)
