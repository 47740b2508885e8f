"""One look at a host's readings: what speaks against it now. What lasts, and what does not, watching.py decides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from opsconsole.health.finding import Evidence, Finding, Reading, finding, gap, known, number
from opsconsole.health.peers import peer_findings
from opsconsole.health.rules import Rule, Rules

LOST = re.compile(r"\blost\b|fallen off|gone from|does not show|not show this GPU", re.IGNORECASE)
RESET = re.compile(r"requires? (a )?reset|reset required|NVML 16\b", re.IGNORECASE)
SILENT_DRIVERS = ("driver:unavailable", "driver:tool")  # these say nothing of the GPUs
MOST_NAMED = 4


@dataclass
class Look:
    """`unknown`: why nobody can say that the host is well. `blind`: (rule, GPU) of which nothing could be read."""

    findings: list[Finding] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    blind: set[tuple[str, str]] = field(default_factory=set)


class Gpu:
    """One of a probe, foreign data. `busy`: its utilisation in percent, None where that is not known."""

    __slots__ = ("ago_s", "busy", "pci", "readings", "said", "slot")

    def __init__(self, said: Mapping[str, Any], ago_s: float) -> None:
        self.said, self.ago_s = said, ago_s
        slot, readings = said.get("slot"), said.get("readings")
        self.pci = str(said.get("pci") or "")
        self.slot = slot if type(slot) is int else None
        self.readings: Mapping[str, Any] = readings if isinstance(readings, dict) else {}
        self.busy = number(known(self.readings.get("utilization_percent")))

    def find(self, rule: Rule, source: str, text: str) -> Finding:
        return finding(rule, Evidence(source, text, self.ago_s), self.pci, self.slot)

    def reading(self, key: str) -> Reading:
        """`remap_spare_banks.none` is a part of one."""
        found = self.readings.get(key)
        if found is None and "." in key:
            key, _, part = key.partition(".")
            found = self.readings.get(key)
            parts = known(found)
            return {"v": parts.get(part)} if isinstance(parts, dict) else self.reading(key)
        return found if isinstance(found, dict) else {}


def gpus_of(probe: Mapping[str, Any], ago_s: float) -> list[Gpu]:
    listed = probe.get("gpus")
    return [Gpu(gpu, ago_s) for gpu in listed if isinstance(gpu, dict)] if isinstance(listed, list) else []


def look(probe: Mapping[str, Any], ago_s: float, expected: int, rules: Rules) -> Look:
    """`expected`: GPUs of the inventory, in slots from 0 on."""
    found = Look()
    found.findings += _of_host(probe, ago_s, rules)
    if not _of_driver(probe, ago_s, expected, rules, found):
        return found
    gpus = gpus_of(probe, ago_s)
    for gpu in gpus:
        _of_gpu(gpu, rules, found)
    shown = {gpu.slot for gpu in gpus}
    for slot in set(range(expected)) - shown:
        text = f"{len(gpus)} GPUs of {expected} are shown"
        found.findings.append(finding(rules["gpu:missing"], Evidence("reading", text, ago_s), "", slot))
    if not gpus and not expected and not known(probe.get("driver")):
        found.unknown.append("it shows no GPU, and none is expected")
    found.findings += peer_findings(gpus, rules)
    return found


def _of_driver(probe: Mapping[str, Any], ago_s: float, expected: int, rules: Rules, found: Look) -> bool:
    """Whether it answers. Where not, its GPUs say nothing by themselves."""
    driver = probe.get("driver")
    why = gap(driver)
    if why is None:
        if isinstance(driver, dict) and "absent" in driver and expected:
            found.findings.append(finding(rules["driver:no-library"], Evidence("reading", "no driver", ago_s)))
            return False
        if known(driver) is None and expected:
            found.unknown.append("it does not say whether it has a driver")
        return True
    rule = driver_rule(why[1], rules)
    found.findings.append(finding(rule, Evidence("reading", why[1], ago_s)))
    if rule.id in SILENT_DRIVERS:
        found.unknown.append(f"the driver does not answer: {why[1]}")
    return False


def driver_rule(text: str, rules: Rules) -> Rule:
    """By what the driver, or its absence, says."""
    low = text.lower()
    met = (rule for rule in rules if rule.id.startswith("driver:") and rule.says and re.search(rule.says, low))
    return next(met, rules["driver:unavailable"])


def _of_host(probe: Mapping[str, Any], ago_s: float, rules: Rules) -> Iterator[Finding]:
    said = probe.get("host")
    said = said if isinstance(said, Mapping) else {}
    if why := gap(said.get("kernel_log")):
        yield finding(rules["host:kernel-log"], Evidence("reading", f"kernel log {why[0]}: {why[1]}", ago_s))
    errors = probe.get("errors")
    for text in map(str, errors if isinstance(errors, list) else []):
        if re.search(rules["gpu:inforom"].says, text.lower()):
            yield finding(rules["gpu:inforom"], Evidence("reading", text, ago_s))
    stuck = known(said.get("d_state_processes"))
    if isinstance(stuck, list) and stuck:
        text = f"{len(stuck)} processes in D state"
        yield finding(rules["host:stuck"], Evidence("reading", text, ago_s))
    if known(said.get("state_disk_read_only")) is True:
        yield finding(rules["host:disk"], Evidence("reading", "the state folder's disk is read-only", ago_s))


def _of_gpu(gpu: Gpu, rules: Rules, found: Look) -> None:
    odd = {key: reading for key, reading in gpu.readings.items() if not isinstance(reading, dict) or "v" not in reading}
    gaps = {key: why for key, reading in odd.items() if (why := gap(reading))}
    uuid = gpu.said.get("uuid")
    if why := gap(uuid):
        gaps = {"uuid": why, **gaps}
    values = sum(known(reading) is not None for key, reading in gpu.readings.items() if key not in odd)
    if not _gone(gpu, gaps, values, rules, found):
        if not values and not gaps:
            found.unknown.append(f"GPU {gpu.slot}: nothing can be read of it")
        if why := gap(gpu.said.get("processes")):
            found.findings.append(gpu.find(rules["gpu:processes"], "reading", f"processes {why[0]}: {why[1]}"))
        _checks(gpu, rules, found)


def _gone(gpu: Gpu, gaps: dict[str, tuple[str, str]], values: int, rules: Rules, found: Look) -> bool:
    """Whether the GPU as a whole does not answer; else the readings that fail or are denied are told."""
    words = [why for state, why in gaps.values() if state == "failed"]
    reset = next((why for why in words if RESET.search(why)), None)
    lost = next((why for why in words if LOST.search(why)), words[0] if words and not values else None)
    if reset or lost:
        rule = rules["gpu:reset-required" if reset else "gpu:lost"]
        found.findings.append(gpu.find(rule, "reading", reset or lost or ""))
        return True
    for state, name in (("failed", "gpu:unreadable"), ("denied", "gpu:denied")):
        keys = [key for key, (which, _) in gaps.items() if which == state]
        if keys:
            more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
            named = ", ".join(key.replace("_", " ") for key in keys[:MOST_NAMED])
            found.findings.append(gpu.find(rules[name], "reading", f"{named}{more}: {gaps[keys[0]][1]}"))
            if not values:
                found.unknown.append(f"GPU {gpu.slot}: every reading is {state}")
    return False


def _checks(gpu: Gpu, rules: Rules, found: Look) -> None:
    for rule in rules.checks:
        assert rule.check is not None
        key, op, limit = rule.check
        reading = gpu.reading(key)
        if gap(reading):
            found.blind.add((rule.id, gpu.pci))
        elif (text := met(gpu, key, op, limit)) and _busy_enough(gpu, rule):
            found.findings.append(gpu.find(rule, "reading", text))
    asked = known(gpu.reading("recovery_action"))
    if type(asked) is int and asked > 0:
        text = f"recovery action {asked}"
        found.findings.append(asks(gpu.find(rules["driver:recovery"], "driver", text), asked, rules))


def asks(one: Finding, number: int, rules: Rules) -> Finding:
    """What the driver wants, by its number; of one that nobody knows, that it wants something."""
    asked = rules.recovery.get(number)
    if asked is None:
        return replace(one, action=f"{number}: an action that this version does not know")
    return replace(one, severity=asked.severity, action=asked.action)


def _busy_enough(gpu: Gpu, rule: Rule) -> bool:
    return not rule.busy or (gpu.busy or 0.0) >= rule.busy


def met(gpu: Gpu, key: str, op: str, limit: Any) -> str:
    """What to show as evidence; empty where it is not met, or nothing is known."""
    found = known(gpu.reading(key))
    if op == "is":
        return _named(key) if found is limit else ""
    if op == "has":
        return f"{_named(key)}: {limit.replace('_', ' ')}" if isinstance(found, list) and limit in found else ""
    bound = number(known(gpu.reading(limit)) if isinstance(limit, str) else limit)
    have = number(found)
    if have is None or bound is None:
        return ""
    if not (have > bound if op == ">" else have < bound if op == "<" else have <= bound):
        return ""
    beside = f" of {bound:g}" if isinstance(limit, str) else f" ({op} {bound:g})"
    return f"{_named(key)} {have:g}{beside}"


def _named(key: str) -> str:
    return key.replace("_", " ").replace(".", " ")
