"""What is thought of a host's health, from what it has told, and how that is said in a line."""

from __future__ import annotations

from collections.abc import Iterable

from opsconsole.health.finding import Finding
from opsconsole.health.said import said_of
from opsconsole.health.verdict import Status, Verdict
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, count, few, span
from opsconsole.presenting.view import ClusterView
from opsconsole.probes import Probe, is_calm
from scheduler_core.state import HostRecord

TOGETHER = 3  # GPUs with the same fault are told in one sentence
MARKS = {
    Status.OK: Cell("✓ ok", "good"),
    Status.WARN: Cell("! warn", "warn"),
    Status.DEGRADED: Cell("▼ degraded", "bad"),
    Status.FAIL: Cell("✖ fail", "bad"),
    Status.UNKNOWN: Cell("? unknown", "unknown"),
}


def verdict_of(view: ClusterView, record: HostRecord) -> Verdict:
    name = record.host.name
    if name not in view.verdicts:
        facts = view.facts(name)
        said = said_of(record, facts.probe, facts.age_s, facts.kernel, view.state.now, view.interval_s)
        view.verdicts[name] = view.rounds.verdict(name, said, is_calm(said.probe), view.state.now / 1000)
        if isinstance(said.probe, Probe):
            said.probe.forget()
    return view.verdicts[name]


def sentence(one: Finding) -> str:
    """`GPU 3: XID 79, GPU fell off the bus, 2 times, 5s ago`; of readings what they are."""
    kind, _, name = one.rule.id.partition(":")
    where = "" if one.where == "host" else f"{one.where}: "
    if name.isdigit():
        times = f", {count(one.count, 'time')}" if one.count > 1 else ""
        ago = "" if one.ago_s is None else f", {span(int(one.ago_s * 1000))} ago"
        return clean(f"{where}{kind.upper()} {name}, {one.rule.meaning}{times}{ago}", 200)
    yet = "" if one.confirmed else "; watched, until it has lasted"
    return clean(f"{where}{one.rule.meaning}: {one.evidence[0].text}{yet}", 200)


def sentences(found: Iterable[Finding]) -> list[str]:
    """One for each; where many GPUs have the same, one for all of them."""
    by_rule: dict[str, list[Finding]] = {}
    for one in found:
        by_rule.setdefault(one.rule.id, []).append(one)
    said: list[str] = []
    for same in by_rule.values():
        if len(same) < TOGETHER:
            said += map(sentence, same)
        else:
            said.append(f"{few([one.where for one in same])}: {same[0].rule.meaning}")
    return said
