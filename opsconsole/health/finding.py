"""What speaks against a host: a rule that is met, where, since when, and by which evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from opsconsole.health.rules import Rule, Severity

Reading = dict[str, Any]
MOST_EVIDENCE = 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """`source`: kernel log, reading, change, peers, driver. `ago_s`: None where nobody knows when."""

    source: str
    text: str
    ago_s: float | None


@dataclass(frozen=True, slots=True)
class Finding:
    """`pci` and `slot` of its GPU; neither: it is about the host.

    `differ`: who says something else than `action`, and what. `confirmed`: it has lasted as long as its rule wants;
    until then it is only watched, whatever it would be. `first_ago_s`: the oldest of its evidence.
    """

    rule: Rule
    severity: Severity
    action: str
    evidence: tuple[Evidence, ...]
    pci: str = ""
    slot: int | None = None
    count: int = 1
    first_ago_s: float | None = None
    differ: tuple[tuple[str, str], ...] = ()
    confirmed: bool = True

    @property
    def ago_s(self) -> float | None:
        """The newest."""
        return self.evidence[0].ago_s if self.evidence else None

    @property
    def key(self) -> tuple[str, str, int | None]:
        return (self.rule.id, self.pci, None if self.pci else self.slot)

    @property
    def weight(self) -> Severity:
        """What counts of it now."""
        return Severity.WATCH if self.severity.drains and not self.confirmed else self.severity

    @property
    def where(self) -> str:
        if self.slot is not None:
            return f"GPU {self.slot}"
        return self.pci or "host"

    def obeys(self, who: str, severity: Severity, action: str) -> Finding:
        """Somebody with more say wants something else; what the rule wanted is shown beside it."""
        before = (self.rule.source, self.action)
        differ = (*self.differ, before) if action != self.action else self.differ
        evidence = (*self.evidence, Evidence("driver", f"{who} asks: {action}", self.ago_s))
        return replace(self, severity=severity, action=action, differ=differ, evidence=evidence)


def finding(rule: Rule, evidence: Evidence, pci: str = "", slot: int | None = None) -> Finding:
    """As the rule has it; what other sources and the table say differs where they do."""
    differ = rule.others
    if rule.table is not None:
        table = rule.table
        differ = (*differ, (table.source, f"{table.severity.value}: {table.action}"))
    return Finding(rule, rule.severity, rule.action, (evidence,), pci, slot, 1, evidence.ago_s, differ)


def known(reading: Any) -> Any:
    """The value of a reading; None in its other states and for what is no reading."""
    return reading.get("v") if isinstance(reading, dict) else None


def number(found: Any) -> float | None:
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def gap(reading: Any) -> tuple[str, str] | None:
    """(failed or denied, why); None for a value, and for what is absent."""
    if not isinstance(reading, dict) or "v" in reading:
        return None
    return next(((state, str(reading[state])) for state in ("failed", "denied") if state in reading), None)
