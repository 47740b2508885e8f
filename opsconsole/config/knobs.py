"""The policy's knobs by their names in a file, each with its unit and range."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from yaml.nodes import Node, ScalarNode, SequenceNode

from opsconsole.config.yamlio import Source
from opsconsole.spans import format_span
from scheduler_core.policy import Policy
from scheduler_core.units import DAY, HOUR, MINUTE, PPM, SECOND

Reader = Callable[[Source, Node, str], Any]


def _span(least: int, most: int) -> Reader:
    return lambda source, node, field: source.span_ms(node, field, least, most)


def _count(least: int, most: int) -> Reader:
    return lambda source, node, field: source.integer(node, field, least, most)


def _percent(most_ppm: int) -> Reader:
    def read(source: Source, node: Node, field: str) -> int | None:
        value = source.percent_ppm(node, field)
        if value is not None and value > most_ppm:
            source.fail(node, field, f"is more than {most_ppm * 100 // PPM}%")
            return None
        return value

    return read


def _times(source: Source, node: Node, field: str) -> int | None:
    value = source.decimal(node, field, 3, 1000)
    return None if value is None else int(value * PPM)


def _boolean(source: Source, node: Node, field: str) -> bool | None:
    return source.boolean(node, field)


def _choice(*options: str) -> Reader:
    return lambda source, node, field: source.choice(node, field, options)


def _resources(source: Source, node: Node, field: str) -> str | None:
    if isinstance(node, ScalarNode) and node.value == "drf":
        source.fail(node, field, "drf (rule 9) is not supported yet", "remove it, or write gpus")
        return None
    return source.choice(node, field, ("gpus",))


# name in the file -> field of Policy, reader
KNOBS: dict[str, tuple[str, Reader]] = {
    "lookback": ("lookback_ms", _span(MINUTE, 30 * DAY)),
    "count_commitments": ("count_commitments", _boolean),
    "start_timeout": ("start_timeout_ms", _span(SECOND, DAY)),
    "checkpoint_grace": ("checkpoint_grace_ms", _span(0, HOUR)),
    "stop_grace": ("stop_grace_ms", _span(0, HOUR)),
    "stop_deadline": ("stop_deadline_ms", _span(SECOND, DAY)),
    "max_retries": ("max_retries", _count(0, 1000)),
    "retry_delay": ("retry_delay_ms", _span(0, DAY)),
    "pass_interval": ("pass_interval_ms", _span(100, HOUR)),
    "pack": ("pack", _choice("aligned", "tight")),
    "claim_horizon": ("claim_horizon_ms", _span(0, 30 * DAY)),
    "preemption_margin": ("preemption_margin_ppm", _percent(PPM)),
    "max_blast": ("max_blast_ppm", _times),
    "blast_patience": ("blast_patience_ms", _span(0, 30 * DAY)),
    "max_reservations": ("max_reservations", _count(0, 1000)),
    "free_memory_mib": ("free_memory_mib", _count(0, 1 << 20)),
    "lost_after": ("lost_after_ms", _span(SECOND, DAY)),
    "suspect_failures": ("suspect_failures", _count(1, 1000)),
    "suspect_owners": ("suspect_owners", _count(1, 1000)),
    "suspect_hosts": ("suspect_hosts", _count(1, 1000)),
    "suspect_within": ("suspect_within_ms", _span(0, HOUR)),
    "suspect_window": ("suspect_window_ms", _span(SECOND, DAY)),
    "breaker_hosts": ("breaker_hosts", _count(0, 100_000)),
    "breaker_hosts_fraction": ("breaker_hosts_ppm", _percent(PPM)),
    "breaker_gpus": ("breaker_gpus", _count(0, 10_000_000)),
    "breaker_gpus_fraction": ("breaker_gpus_ppm", _percent(PPM)),
    "resources": ("resources", _resources),
}
LATER = ("half_life", "kind")  # of rules to come


def read_policy(source: Source, node: Node | None, field: str = "policy") -> Policy:
    """Policy with its defaults where the file says nothing."""
    entries = source.mapping(node, field, [*KNOBS, "min_runtime_bounds", *LATER])
    values: dict[str, Any] = {}
    for name, value in entries.items():
        path = f"{field}.{name}"
        if name in LATER:
            source.fail(value, path, "is not supported yet", "remove it")
        elif name == "min_runtime_bounds":
            values |= _bounds(source, value, path)
        else:
            target, read = KNOBS[name]
            if (known := read(source, value, path)) is not None:
                values[target] = known
    policy = Policy(**values)
    if policy.suspect_owners > policy.suspect_failures:
        what = f"{policy.suspect_owners} owners cannot come from {policy.suspect_failures} suspect_failures"
        source.fail(entries.get("suspect_owners", node), f"{field}.suspect_owners", what, "lower it")
    return policy


def _bounds(source: Source, node: Node, field: str) -> dict[str, int]:
    nodes = source.sequence(node, field)
    read = [source.span_ms(end, f"{field}[{i}]", 0, 30 * DAY) for i, end in enumerate(nodes)]
    known = [end for end in read if end is not None]
    if len(known) != len(read) or not isinstance(node, SequenceNode):
        return {}
    if len(known) != 2:
        source.fail(node, field, "expected the least and the most", "write for example [0, 8h]")
        return {}
    if known[0] > known[1]:
        ends = [format_span(end) for end in known]
        source.fail(node, field, f"{ends[0]} is more than {ends[1]}", f"write [{ends[1]}, {ends[0]}]")
        return {}
    return {"min_runtime_min_ms": known[0], "min_runtime_max_ms": known[1]}


def write_policy(policy: Policy, defaults: bool = False) -> dict[str, Any]:
    """The knobs that differ from their defaults, as a file has them; all of them with `defaults`."""
    default = Policy()
    found: dict[str, Any] = {}
    for name, (target, _) in KNOBS.items():
        value = getattr(policy, target)
        if defaults or value != getattr(default, target):
            found[name] = _written(target, value)
    bounds = (policy.min_runtime_min_ms, policy.min_runtime_max_ms)
    if defaults or bounds != (default.min_runtime_min_ms, default.min_runtime_max_ms):
        found["min_runtime_bounds"] = [format_span(end) for end in bounds]
    return found


def _written(target: str, value: Any) -> Any:
    if target.endswith("_ms"):
        return format_span(value)
    if target == "max_blast_ppm":
        return f"{(Decimal(value) / PPM).normalize():f}"
    if target.endswith("_ppm"):
        return f"{value * 100 / PPM:g}%"
    return value
