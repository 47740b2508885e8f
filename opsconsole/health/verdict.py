"""How a host is: ok, warn, degraded, fail or unknown, and what speaks for that. Silence is unknown, never ok."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from opsconsole.health.events import asked_by_driver, event_findings, read_events
from opsconsole.health.finding import Evidence, Finding, finding, known, number
from opsconsole.health.observing import Look, asks, gpus_of, look
from opsconsole.health.rules import OF_CODES, Rules, Severity
from opsconsole.health.watching import Watch, once

DRIVER_OBEYED = ("xid", "ecc", "gpu")  # kinds of rules whose action the driver's own replaces


class Status(Enum):
    """In order, the worst last, but for unknown, which is none of the others."""

    OK = "ok"
    WARN = "warn"
    DEGRADED = "degraded"
    FAIL = "fail"
    UNKNOWN = "unknown"


OF_SEVERITY = {
    Severity.INFO: Status.OK,
    Severity.APPLICATION: Status.OK,
    Severity.WATCH: Status.WARN,
    Severity.DEGRADED: Status.DEGRADED,
    Severity.FATAL: Status.FAIL,
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a host has told. `age_s` of the probe, None: there is none. `fresh`: it still counts as of now.

    `cleared_ago_s`: a person returned it to service so long ago, and has seen to what the kernel wrote before.
    `uptime_s`: of the host where its kernel's lines were read; the probe's, where there is one.
    """

    expected: int
    probe: Mapping[str, Any] | None
    age_s: float | None = None
    kernel: Sequence[Mapping[str, Any]] = ()
    fresh: bool = True
    cleared_ago_s: float | None = None
    uptime_s: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`findings` with the worst first. `unknown`: why nobody can say that it is well; `was`: by what is known alone."""

    status: Status
    was: Status
    findings: tuple[Finding, ...]
    unknown: tuple[str, ...] = ()
    age_s: float | None = None

    @property
    def worst(self) -> Finding | None:
        return self.findings[0] if self.findings else None


def judge(said: Said, rules: Rules, watch: Watch | None = None, now: float = 0.0) -> Verdict:
    """`watch`: what is remembered of this host; without it one look decides, and what must last is only watched.

    `now`: seconds of the clock of the watch.
    """
    age_s = said.age_s or 0.0
    seen = Look(unknown=["there are no readings of it"])
    states: list[Finding] = []
    probe = said.probe or {}
    if said.probe is not None:
        seen = look(probe, age_s, said.expected, rules)
        states = list(once(seen) if watch is None else watch.settle(seen, probe, rules, now, age_s))
        if not said.fresh:
            seen.unknown.insert(0, "its readings are old")
    uptime_s = number(probe.get("uptime_s"))
    events = read_events(said.kernel, said.uptime_s if uptime_s is None else uptime_s, age_s)
    if said.cleared_ago_s is not None:
        events = [event for event in events if event.ago_s is None or event.ago_s <= said.cleared_ago_s]
    slots = {gpu.pci: gpu.slot for gpu in gpus_of(probe, age_s) if gpu.pci and gpu.slot is not None}
    found = [*states, *event_findings(events, slots, rules)]
    found = obey_driver(found, driver_says(probe, asked_by_driver(events)), rules)
    found.sort(key=_order)
    was = OF_SEVERITY[found[0].weight] if found else Status.OK if said.probe is not None else Status.UNKNOWN
    status = Status.UNKNOWN if seen.unknown and not _proven(found, said) else was
    return Verdict(status, was, tuple(found), tuple(seen.unknown), said.age_s)


def _order(one: Finding) -> tuple[Any, ...]:
    """The worst first; among equals what the driver wrote before what follows from it."""
    told = one.rule.id.partition(":")[0] in OF_CODES
    return (-one.weight.rank, -one.severity.rank, not told, one.slot is None, one.slot or 0, one.rule.id)


def _proven(found: Iterable[Finding], said: Said) -> bool:
    """Something is broken, whatever else is not known. Of old readings, or none, nothing follows for now."""
    return said.fresh and any(one.weight.drains for one in found)


def driver_says(probe: Mapping[str, Any], told: Mapping[str, int]) -> dict[str, int]:
    """The driver's recovery action by GPU: as it is now, else as the kernel's log told it last."""
    now = {gpu.pci: known(gpu.reading("recovery_action")) for gpu in gpus_of(probe, 0.0) if gpu.pci}
    return {**told, **{pci: asked for pci, asked in now.items() if type(asked) is int}}


def obey_driver(found: list[Finding], asked: Mapping[str, int], rules: Rules) -> list[Finding]:
    """Its action replaces those of the table and the site. "None" replaces nothing: it may not have noticed."""
    changed = []
    for one in found:
        want = asked.get(one.pci)
        recovery = rules.recovery.get(want or 0)
        if want is None or not one.severity.drains or one.rule.id.partition(":")[0] not in DRIVER_OBEYED:
            changed.append(one)
        elif recovery is None:
            says = "none" if want == 0 else f"{want}: an action that this version does not know"
            changed.append(replace(one, differ=(*one.differ, ("the driver", says))))
        else:
            changed.append(one.obeys("the driver", recovery.severity, recovery.action))
    told = {one.pci for one in found if one.rule.id == "driver:recovery"}
    for pci, number_asked in asked.items():
        if number_asked and pci not in told:
            slot = next((one.slot for one in found if one.pci == pci), None)
            evidence = Evidence("driver", f"XID 154: recovery action {number_asked}", None)
            changed.append(asks(finding(rules["driver:recovery"], evidence, pci, slot), number_asked, rules))
    return changed
