"""The kernel's lines as findings: one for each rule and GPU, with a count; consequences are filed under their cause."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opsconsole.health.finding import MOST_EVIDENCE, Evidence, Finding, finding, number
from opsconsole.health.rules import Repeat, Rules, Severity

PLACE = re.compile(r"GPC\s*\d+,?\s*TPC\s*\d+(?:,?\s*SM\s*\d+)?", re.IGNORECASE)
FATAL = re.compile(r"(?<!non-)\bfatal\b", re.IGNORECASE)
NONFATAL = re.compile(r"\bnon-?fatal\b", re.IGNORECASE)
CAUSED_WITHIN_S = 60.0
TEST_TOOL = "none: a test tool put it there"


@dataclass(frozen=True, slots=True)
class Event:
    """A line that matters. `code` is 0 where it has none."""

    name: str
    pci: str
    text: str
    ago_s: float | None
    code: int = 0
    caused_by: int | None = None
    pid: int | None = None
    process: str = ""
    injected: bool = False
    recovery: int | None = None

    @property
    def fatal(self) -> bool:
        return FATAL.search(self.text) is not None

    def age(self) -> float:
        """As if it were new, where nobody knows."""
        return self.ago_s or 0.0


def read_events(lines: Iterable[Mapping[str, Any]], uptime_s: float | None, age_s: float) -> list[Event]:
    """Oldest first, as the kernel wrote them; `age_s`: how old the uptime is."""
    return [event for line in lines if (event := _event(line, uptime_s, age_s)) is not None]


def _event(line: Mapping[str, Any], uptime_s: float | None, age_s: float) -> Event | None:
    at, text, kind = number(line.get("monotonic_s")), str(line.get("text") or ""), line.get("kind")
    ago_s = None if at is None or uptime_s is None else max(0.0, uptime_s - at + age_s)
    xid = line.get("xid")
    if not isinstance(xid, Mapping) or type(xid.get("code")) is not int:
        if kind == "fallen":
            return Event("xid:79", "", text, ago_s, 79)
        return Event(f"host:{kind}", "", text, ago_s) if kind in ("oom", "aer", "hang") else None
    code = xid["code"]
    return Event(
        f"sxid:{code}" if xid.get("sxid") else f"xid:{code}",
        str(xid.get("pci") or ""),
        text or f"XID {code}",
        ago_s,
        code,
        xid.get("caused_by") if type(xid.get("caused_by")) is int else None,
        xid.get("pid") if type(xid.get("pid")) is int else None,
        str(xid.get("process") or ""),
        xid.get("injected") is True,
        xid.get("recovery_action") if type(xid.get("recovery_action")) is int else None,
    )


def asked_by_driver(events: Iterable[Event]) -> dict[str, int]:
    """The newest recovery action that XID 154 tells, by GPU."""
    return {event.pci: event.recovery for event in events if event.recovery is not None and not event.injected}


def event_findings(events: list[Event], slots: Mapping[str, int], rules: Rules) -> list[Finding]:
    """`slots` by PCI address."""
    groups: dict[tuple[str, str, bool], list[Event]] = defaultdict(list)
    for place, event in enumerate(events):
        groups[_rule_of(event, events[:place], rules), event.pci, event.injected].append(event)
    found = []
    for (name, pci, injected), group in groups.items():
        fades_s = rules[name].fades_s
        lasting = [event for event in group if fades_s is None or event.age() <= fades_s]
        if lasting:
            made = _finding(rules, name, pci, slots.get(pci), lasting)
            found.append(replace(made, severity=Severity.INFO, action=TEST_TOOL) if injected else made)
    return found


def _rule_of(event: Event, before: list[Event], rules: Rules) -> str:
    """Its own code's; of a consequence the one of its cause, be that seen or only named."""
    if event.name.startswith("sxid:"):
        return _of_switch(event, rules)
    under = rules.follows.get(event.code) if event.name.startswith("xid:") else None
    if under is None:
        return event.name
    if under or event.caused_by is not None:
        return f"xid:{under or event.caused_by}"
    causes = (e for e in reversed(before) if e.pci == event.pci and e.code and e.code not in rules.follows)
    cause = next(causes, None)
    near = cause is not None and (event.ago_s is None or abs(cause.age() - event.age()) <= CAUSED_WITHIN_S)
    return cause.name if cause is not None and near else event.name


def _of_switch(event: Event, rules: Rules) -> str:
    """The site may have a rule for the code itself; else the line decides."""
    if event.name in rules.by_id:
        return event.name
    if event.code in rules.always_fatal:
        return "sxid:always-fatal"
    if event.fatal:
        return "sxid:fatal"
    return "sxid:nonfatal" if NONFATAL.search(event.text) else event.name


def _finding(rules: Rules, name: str, pci: str, slot: int | None, group: list[Event]) -> Finding:
    rule = rules[name]
    own = [event for event in group if event.name == name or event.name.startswith("sxid:")]
    newest = sorted(group, key=lambda event: (event not in own, event.age()))
    evidence = tuple(Evidence("kernel log", event.text, event.ago_s) for event in newest[:MOST_EVIDENCE])
    made = replace(
        finding(rule, evidence[0], pci, slot),
        evidence=evidence,
        count=len(own) or len(group),
        first_ago_s=max((event.ago_s for event in group if event.ago_s is not None), default=None),
    )
    if rule.if_fatal is not None and any(event.fatal for event in own):
        made = replace(made, severity=rule.if_fatal)
    if rule.repeat is not None and _repeats(own, rule.repeat):
        made = replace(made, severity=rule.repeat.severity, action=rule.repeat.action)
    return made


def _repeats(group: list[Event], repeat: Repeat) -> bool:
    near = [event for event in group if event.age() <= repeat.within_s]
    if repeat.by == "process":
        return len({event.process or event.pid for event in near}) >= repeat.times
    if repeat.by != "place":
        return len(near) >= repeat.times
    places: dict[str, set[int | None]] = defaultdict(set)
    for event in near:
        for place in PLACE.findall(event.text):
            places[place].add(event.pid)
    return any(len(pids) >= repeat.times for pids in places.values())
