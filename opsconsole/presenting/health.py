"""Hardware health for people and scripts: verdicts with their evidence, rules, faults of many hosts at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from opsconsole.health.finding import Finding
from opsconsole.health.incidents import Incident
from opsconsole.health.lemon import Lemon
from opsconsole.health.rules import Rule, Rules, Severity
from opsconsole.health.verdict import Status, Verdict
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count, few, span
from opsconsole.presenting.verdicts import MARKS, sentence, verdict_of
from opsconsole.presenting.view import ClusterView

TOKENS = {Severity.WATCH: "warn", Severity.DEGRADED: "bad", Severity.FATAL: "bad"}
ORDER = tuple(status.value for status in (Status.FAIL, Status.DEGRADED, Status.UNKNOWN, Status.WARN, Status.OK))
HOSTS = (
    Column("HOST", 12, by="host"),
    Column("HEALTH", 11, by="status", order=ORDER),
    Column("SINCE", 6, right=True, by="since_s"),
    Column("RULE", 14, by="rule"),
    Column("WHAT", 30, grow=True),
    Column("DO", 30),
)
FINDINGS = (
    Column("WHERE", 8, by="gpu"),
    Column("SEV", 3, by="severity"),
    Column("RULE", 14, by="rule"),
    Column("SINCE", 6, right=True, by="since_s"),
    Column("WHAT", 30, grow=True),
    Column("DO", 30),
)
LEMONS = (
    Column("SCORE", 5, right=True, by="score"),
    Column("KIND", 4, by="kind"),
    Column("WHICH", 20, grow=True, by="name"),
    Column("FAULTS", 6, right=True, by="fault_count"),
    Column("NEWEST", 6, right=True, by="newest_s"),
    Column("RULES", 16, by="rules"),
    Column("FOLLOWS", 24),
)
FOLLOWS = {
    "card": "the card: it broke in several slots",
    "slot": "the slot: several cards broke there",
    "": "too few to tell",
}
RULES = (
    Column("RULE", 18, by="rule"),
    Column("SEV", 3, by="severity"),
    Column("MEANING", 30, grow=True),
    Column("DO", 30),
    Column("SOURCE", 20, by="source"),
    Column("OF", 10, by="date"),
)


def verdicts(view: ClusterView) -> dict[str, Verdict]:
    return {name: verdict_of(view, record) for name, record in view.state.hosts.items()}


def verdicts_table(found: Mapping[str, Verdict]) -> TableView:
    """The worst first."""
    order = sorted(found, key=lambda name: (ORDER.index(found[name].status.value), name))
    return TableView("Health", HOSTS, tuple(_host_row(name, found[name]) for name in order), "no hosts")


def _host_row(name: str, verdict: Verdict) -> Row:
    worst = verdict.worst
    cells = (
        Cell(name),
        MARKS[verdict.status],
        Cell(_span(worst.first_ago_s) if worst else ""),
        Cell(worst.rule.id if worst else ""),
        Cell(_what(verdict), MARKS[verdict.status].token),
        Cell(clean(worst.action) if worst and worst.severity.rank else "", "dim"),
    )
    return Row(name, cells, {"host": name, **verdict_data(verdict)})


def _what(verdict: Verdict) -> str:
    """Why nobody knows; else the worst, and how much more there is."""
    worst, why = verdict.worst, clean("; ".join(verdict.unknown), 200)
    if worst is None:
        return why
    more = f"; {len(verdict.findings) - 1} more" if len(verdict.findings) > 1 else ""
    was = f"{why}; last heard of: " if verdict.status is Status.UNKNOWN else ""
    return f"{was}{sentence(worst)}{more}"


def findings_table(verdict: Verdict) -> TableView:
    rows = tuple(_finding_row(n, one) for n, one in enumerate(verdict.findings))
    return TableView(
        "Findings", FINDINGS, rows, "nothing speaks against it" if not verdict.unknown else "nothing is known"
    )


def _finding_row(n: int, one: Finding) -> Row:
    cells = (
        Cell(one.where),
        Cell(one.severity.value, TOKENS.get(one.severity, "dim")),
        Cell(one.rule.id),
        Cell(_span(one.first_ago_s)),
        Cell(sentence(one).partition(": ")[2], TOKENS.get(one.weight, "")),
        Cell(clean(one.action), "dim"),
    )
    return Row(f"{one.rule.id}:{one.pci}:{n}", cells, finding_data(one))


def evidence_lines(verdict: Verdict) -> list[str]:
    """Below each other: what speaks for each finding, and who says otherwise."""
    lines = [f"Not known: {clean(why, 200)}." for why in verdict.unknown]
    for one in verdict.findings:
        lines.append(f"{one.where}, {one.rule.id}: {one.rule.source}{', ' * bool(one.rule.date)}{one.rule.date}")
        for evidence in one.evidence:
            ago = "" if evidence.ago_s is None else f"{_span(evidence.ago_s)} ago: "
            lines.append(f"  {evidence.source}: {ago}{clean(evidence.text, 300)}")
        lines += [f"  otherwise: {clean(who)} says {clean(says, 200)}" for who, says in one.differ]
    return lines


def incident_lines(found: Sequence[Incident]) -> list[str]:
    """Of those of many hosts alone: each other one is its host's."""
    return [
        f"One incident, {one.place}: {count(len(one.hosts), 'host')} within minutes ({few(one.hosts, 5)}). "
        "More likely one cause than many: nothing of it is drained automatically."
        for one in found
        if one.many
    ]


def lemons_table(found: Sequence[Lemon], now_ms: int) -> TableView:
    rows = tuple(_lemon_row(one, now_ms) for one in found)
    return TableView("Lemons", LEMONS, rows, "no card and no slot has broken since a leader began to keep count")


def _lemon_row(one: Lemon, now_ms: int) -> Row:
    newest = max(one.faults, key=lambda fault: fault.at_ms)
    rules = sorted({fault.rule for fault in one.faults})
    serial = f", serial {newest.serial}" if one.kind == "card" and newest.serial else ""
    cells = (
        Cell(f"{one.score:.1f}", "bad" if one.follows else ""),
        Cell(one.kind),
        Cell(clean(one.name + serial, 80)),
        Cell(str(len(one.faults))),
        Cell(span(max(0, now_ms - newest.at_ms))),
        Cell(few(rules)),
        Cell(FOLLOWS[one.follows], "bad" if one.follows else "dim"),
    )
    data = {
        "kind": one.kind,
        "name": one.name,
        "score": round(one.score, 2),
        "follows": one.follows or None,
        "seen": list(one.seen),
        "fault_count": len(one.faults),
        "newest_s": max(0, now_ms - newest.at_ms) / 1000,
        "rules": rules,
        "faults": [msgspec.to_builtins(fault) for fault in one.faults],
    }
    return Row(f"{one.kind}:{one.name}", cells, data)


def rules_table(rules: Rules) -> TableView:
    return TableView("Rules", RULES, tuple(_rule_row(rule) for rule in rules), "no rules")


def _rule_row(rule: Rule) -> Row:
    otherwise = [*rule.others, *([(rule.table.source, rule.table.action)] if rule.table else [])]
    limit = "" if rule.threshold is None else f" (limit {rule.threshold:g})"
    cells = (
        Cell(rule.id),
        Cell(rule.severity.value, TOKENS.get(rule.severity, "dim")),
        Cell(clean(rule.meaning, 200) + limit),
        Cell("; ".join([rule.action, *(f"{who}: {says}" for who, says in otherwise)])),
        Cell(rule.source, "accent" if rule.table else "dim"),
        Cell(rule.date, "dim"),
    )
    return Row(rule.id, cells, rule_data(rule))


def rule_data(rule: Rule) -> dict[str, Any]:
    repeat = rule.repeat
    return {
        "rule": rule.id,
        "severity": rule.severity.value,
        "severity_if_fatal": rule.if_fatal.value if rule.if_fatal else None,
        "meaning": rule.meaning,
        "action": rule.action,
        "source": rule.source,
        "date": rule.date,
        "check": list(rule.check) if rule.check else None,
        "limit": rule.threshold,
        "lasts_s": rule.lasts_s,
        "fades_s": rule.fades_s,
        "ends_wait": rule.ends_wait,
        "repeat": None
        if repeat is None
        else {
            "times": repeat.times,
            "within_s": repeat.within_s,
            "by": repeat.by,
            "severity": repeat.severity.value,
            "action": repeat.action,
        },
        "differ": _differ(rule.others),
        "overrides": None if rule.table is None else rule_data(rule.table),
    }


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    worst = verdict.worst
    return {
        "status": verdict.status.value,
        "was": verdict.was.value,
        "unknown": list(verdict.unknown),
        "reading_age_s": verdict.age_s,
        "rule": worst.rule.id if worst else None,
        "since_s": worst.first_ago_s if worst else None,
        "findings": [finding_data(one) for one in verdict.findings],
    }


def finding_data(one: Finding) -> dict[str, Any]:
    return {
        "rule": one.rule.id,
        "gpu": one.slot,
        "pci": one.pci or None,
        "severity": one.severity.value,
        "confirmed": one.confirmed,
        "meaning": one.rule.meaning,
        "action": one.action,
        "source": one.rule.source,
        "date": one.rule.date,
        "count": one.count,
        "since_s": one.first_ago_s,
        "newest_s": one.ago_s,
        "ends_wait": one.rule.ends_wait,
        "evidence": [{"source": e.source, "text": e.text, "ago_s": e.ago_s} for e in one.evidence],
        "differ": _differ(one.differ),
    }


def incident_data(one: Incident) -> dict[str, Any]:
    faults = [{"host": fault.host, "rule": fault.rule, "since_s": fault.ago_s} for fault in one.faults]
    return {"place": one.place or None, "many": one.many, "faults": faults}


def _differ(found: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"who": who, "says": says} for who, says in found]


def _span(seconds: float | None) -> str:
    return span(None if seconds is None else int(seconds * 1000))
