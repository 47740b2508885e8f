"""`health` of inventory.yaml: what the machine may do by itself, and a site's own word on rules (docs/health.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from yaml.nodes import Node

from opsconsole.config.scalars import parse_decimal, shown, suggestion
from opsconsole.config.yamlio import Source
from opsconsole.health.rules import Override, Rule, Rules, Severity, builtin_rules

FIELDS = ("auto", "rules")
RULE_FIELDS = ("severity", "action", "limit", "because")
MOST_LIMIT = 1_000_000
AUTO = ("off", "propose", "drain")


@dataclass(frozen=True, slots=True)
class HealthSettings:
    auto: str = "propose"
    overrides: Mapping[str, Override] = field(default_factory=dict)

    @property
    def rules(self) -> Rules:
        return builtin_rules().overridden(self.overrides)


def read_health(source: Source, node: Node | None) -> HealthSettings:
    entries = source.mapping(node, "health", FIELDS)
    auto = source.choice(entries.get("auto"), "health.auto", AUTO) or "propose"
    overrides = {}
    for name, rule_node in source.mapping(entries.get("rules"), "health.rules").items():
        try:
            rule = builtin_rules()[name]
        except KeyError:
            names = [known.id for known in builtin_rules()]
            fix = suggestion(name, names) if ":" in name else "write it as xid:79, or as `opsconsole health rules` does"
            source.fail(rule_node, f"health.rules.{name}", f"{shown(name)} is no rule", fix)
            continue
        overrides[name] = _override(source, rule_node, f"health.rules.{name}", rule)
    return HealthSettings(auto, overrides)


def _override(source: Source, node: Node, path: str, rule: Rule) -> Override:
    entries = source.mapping(node, path, RULE_FIELDS)
    letters = [severity.value for severity in Severity]
    severity = source.choice(entries.get("severity"), f"{path}.severity", letters)
    limit = source.parsed(entries.get("limit"), f"{path}.limit", lambda text: parse_decimal(text, 3, MOST_LIMIT))
    if limit is not None and rule.threshold is None:
        source.fail(entries["limit"], f"{path}.limit", "this rule has no limit", "leave it out")
    return Override(
        Severity(severity) if severity else None,
        source.text(entries.get("action"), f"{path}.action"),
        None if limit is None else float(limit),
        source.text(entries.get("because"), f"{path}.because") or "",
    )
