"""`health` of inventory.yaml: what the machine may do by itself, and a site's own word on rules (docs/health.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from yaml.nodes import MappingNode, Node, ScalarNode

from opsconsole.config.scalars import parse_decimal, shown, suggestion
from opsconsole.config.yamlio import Source
from opsconsole.health.acting import MODES, Automatic
from opsconsole.health.rules import Override, Rule, Rules, Severity, builtin_rules
from scheduler_core.units import PPM

FIELDS = ("auto", "floor", "rules")
CLUSTER_FIELDS = ("auto", "floor")
RULE_FIELDS = ("severity", "action", "limit", "because")
MOST_LIMIT = 1_000_000
LETTERS = ("D", "F")


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """A site's own word on rules, and what counts in clusters that say nothing of their own."""

    overrides: Mapping[str, Override] = field(default_factory=dict)
    auto: Automatic = field(default_factory=Automatic)

    @property
    def rules(self) -> Rules:
        return builtin_rules().overridden(self.overrides)


def read_health(source: Source, node: Node | None) -> HealthSettings:
    entries = source.mapping(node, "health", FIELDS)
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
    return HealthSettings(overrides, _automatic(source, entries, "health", Automatic()))


def read_automatic(source: Source, node: Node | None, place: str, above: Automatic) -> Automatic:
    """`health` of a cluster; `above` counts where it says nothing."""
    return _automatic(source, source.mapping(node, place, CLUSTER_FIELDS), place, above)


def _automatic(source: Source, entries: Mapping[str, Node], place: str, above: Automatic) -> Automatic:
    found = _modes(source, entries.get("auto"), f"{place}.auto", above)
    if (floor := entries.get("floor")) is None:
        return found
    if isinstance(floor, ScalarNode) and floor.value.endswith("%"):
        ppm = source.percent_ppm(floor, f"{place}.floor")
        if ppm is not None and ppm > PPM:
            source.fail(floor, f"{place}.floor", f"{floor.value} is more than all hosts", "write up to 100%")
        return replace(found, floor=0, floor_ppm=ppm or 0)
    hosts = source.integer(floor, f"{place}.floor", 0, MOST_LIMIT)
    return replace(found, floor=hosts or 0, floor_ppm=0)


def _modes(source: Source, node: Node | None, place: str, above: Automatic) -> Automatic:
    """One word for all that asks for a drain, or one for each severity."""
    if not isinstance(node, MappingNode):
        mode = source.choice(node, place, MODES)
        return replace(above, degraded=mode, fatal=mode) if mode else above
    entries = source.mapping(node, place, LETTERS)
    degraded = source.choice(entries.get("D"), f"{place}.D", MODES)
    fatal = source.choice(entries.get("F"), f"{place}.F", MODES)
    return replace(above, degraded=degraded or above.degraded, fatal=fatal or above.fatal)


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


def write_automatic(auto: Automatic) -> dict[str, str]:
    """As a file has it, with what it leaves out."""
    floor = f"{auto.floor_ppm * 100 / PPM:g}%" if auto.floor_ppm else str(auto.floor)
    return {"auto.D": auto.degraded, "auto.F": auto.fatal, "floor": floor}
