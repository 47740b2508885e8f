"""What a changed inventory changes, as sentences for a preview before it is applied (live reload).

Runs are never touched by a reload. Budgets are the same when their ids are: without an explicit id a renamed or moved
budget is one that left and one that came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from opsconsole.config.budgets import number
from opsconsole.config.health import write_automatic
from opsconsole.config.inventory import Cluster, Inventory, InventoryHost
from opsconsole.config.knobs import write_policy
from opsconsole.health.acting import Automatic
from opsconsole.spans import format_span
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.ids import BudgetId
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState
from scheduler_core.units import count

REACH = ("address", "port", "user", "identity", "jump", "python", "state_dir")
AT_RESTART = ("state_dir", "ssh", "system_processes", "on_quit", "allow_write")


class Topic(StrEnum):
    CLUSTER = "cluster"
    HOST = "host"
    BUDGET = "budget"
    POLICY = "policy"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `effect` says what it means for work that runs or waits; empty where nothing follows."""

    topic: Topic
    cluster: str
    subject: str  # a host, a budget's path, a knob
    what: str
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.topic.value} {self.subject}: {self.what}{'; ' + self.effect if self.effect else ''}"

    def as_json(self) -> dict[str, object]:
        return asdict(self)


class _Pair(NamedTuple):
    old: Cluster
    new: Cluster
    state: ClusterState | None


def diff_inventories(old: Inventory, new: Inventory, states: Mapping[str, ClusterState] | None = None) -> list[Change]:
    """All differences, clusters in the order of the new file. `states` by cluster name add what is running now."""
    before, after = {c.name: c for c in old.clusters}, {c.name: c for c in new.clusters}
    found: list[Change] = []
    for name in before:
        if name not in after:
            effect = "nothing new is started for it; its runs go on and its store stays"
            found.append(Change(Topic.CLUSTER, name, name, "leaves the inventory", effect))
    for name, cluster in after.items():
        if name in before:
            found += _cluster(_Pair(before[name], cluster, (states or {}).get(name)))
        else:
            what = f"comes with {count(len(cluster.hosts), 'host')} and {count(len(cluster.budgets.budgets), 'budget')}"
            found.append(Change(Topic.CLUSTER, name, name, what))
    return found + list(_settings(old, new))


def _cluster(pair: _Pair) -> list[Change]:
    policy = _policy(pair.new.name, pair.old.policy, pair.new.policy)
    return [*_hosts(pair), *_budgets(pair), *policy, *_health(pair.new.name, pair.old.auto, pair.new.auto)]


# -- hosts --------------------------------------------------------------------------------------------------------


def _hosts(pair: _Pair) -> Iterator[Change]:
    old, new = ({h.name: h for h in cluster.hosts} for cluster in pair[:2])
    for name, host in old.items():
        if name not in new:
            yield Change(
                Topic.HOST, pair.new.name, name, f"leaves with {count(host.gpus, 'GPU')}", _leaving(pair.state, name)
            )
    for name, host in new.items():
        if name not in old:
            yield Change(
                Topic.HOST, pair.new.name, name, f"joins with {count(host.gpus, 'GPU')}", "takes work once it answers"
            )
        elif what := _host_changes(old[name], host):
            yield Change(Topic.HOST, pair.new.name, name, "; ".join(what), _host_effect(old[name], host))


def _leaving(state: ClusterState | None, name: str) -> str:
    record = None if state is None else next((r for r in state.hosts.values() if r.host.name == name), None)
    if record is None:
        return "cordoned at once; runs there go on until they end"
    if not record.runs:
        return "it has no runs"
    return f"cordoned at once; {', '.join(record.runs)} there go on until they end"


def _host_changes(old: InventoryHost, new: InventoryHost) -> list[str]:
    found = [f"gpus {old.gpus} → {new.gpus}"] if old.gpus != new.gpus else []
    found += [f"labels {_labels(old)} → {_labels(new)}"] if old.labels != new.labels else []
    for name in (*REACH, "fence"):
        a, b = getattr(old, name), getattr(new, name)
        found += [f"{name} {_said(a)} → {_said(b)}"] if a != b else []
    return found


def _host_effect(old: InventoryHost, new: InventoryHost) -> str:
    if new.gpus < old.gpus:
        return "runs on the GPUs beyond go on until they end"
    return "connected anew" if any(getattr(old, name) != getattr(new, name) for name in REACH) else ""


def _labels(host: InventoryHost) -> str:
    return " ".join(f"{key}={value}" for key, value in host.labels) or "none"


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "unset"
    return "unset" if value is None else str(value)


# -- budgets ------------------------------------------------------------------------------------------------------


def _budgets(pair: _Pair) -> Iterator[Change]:
    old, new = pair.old.budgets, pair.new.budgets
    for bid, budget in old.by_id.items():
        if bid not in new.by_id:
            effect = _retired(pair, bid)
            yield Change(Topic.BUDGET, pair.new.name, old.paths[bid], "leaves", effect + _renamed(old, new, budget))
    for bid in new.by_id:
        if bid not in old.by_id:
            yield Change(Topic.BUDGET, pair.new.name, new.paths[bid], f"comes with {_share(new, bid)} of the cluster")
        elif what := _budget_changes(old, new, bid):
            yield Change(Topic.BUDGET, pair.new.name, new.paths[bid], "; ".join(what), _over_cap(pair, bid))


def _retired(pair: _Pair, bid: BudgetId) -> str:
    """Rule 2: usage follows the id, runs go on, nothing is lost."""
    text = "kept with weight 0 while it has work or usage; running work goes on, charged as before"
    if pair.state is None:
        return text
    leaves = pair.old.budgets.leaves_below.get(bid, ())
    running = sum(1 for run in pair.state.runs.values() if run.budget in leaves)
    waiting = sum(1 for record in pair.state.waiting() if record.workload.budget in leaves)
    return f"{text} ({running} running, {waiting} waiting)"


def _renamed(old: BudgetTree, new: BudgetTree, budget: Budget) -> str:
    """A rename without an id looks like this; the usage would stay behind."""
    came = [b for b in new.budgets if b.id not in old.by_id]
    near = [b for b in came if b.name == budget.name or (b.parent == budget.parent and b.weight == budget.weight)]
    if len(near) != 1 or near[0].id != new.paths[near[0].id]:
        return ""
    return f"; if it is now called {new.paths[near[0].id]}, give that one id: {budget.id}, so that its usage stays"


def _budget_changes(old: BudgetTree, new: BudgetTree, bid: BudgetId) -> list[str]:
    a, b = old.by_id[bid], new.by_id[bid]
    found = [f"renamed from {a.name}"] if a.name != b.name else []
    found += [f"moved from {old.paths[bid]}"] if a.parent != b.parent else []
    found += [f"weight {number(a.weight)} → {number(b.weight)}"] if a.weight != b.weight else []
    if old.fractions[bid] != new.fractions[bid]:
        found.append(f"share {_share(old, bid)} → {_share(new, bid)}")
    found += _field("max_gpus", _cap(a.max_gpus), _cap(b.max_gpus))
    found += _field("min_runtime_default", _span(a.min_runtime_default_ms), _span(b.min_runtime_default_ms))
    found += _field("over_budget_priority", a.over_budget_priority, b.over_budget_priority)
    found += _field("over_budget_weight", number(a.over_budget_weight), number(b.over_budget_weight))
    return found


def _field(name: str, old: object, new: object) -> list[str]:
    return [f"{name} {old} → {new}"] if old != new else []


def _cap(gpus: int | None) -> str:
    return "no limit" if gpus is None else str(gpus)


def _span(ms: int | None) -> str:
    return "none" if ms is None else format_span(ms)


def _share(tree: BudgetTree, bid: BudgetId) -> str:
    return f"{float(tree.fractions[bid]) * 100:.4g}%"


def _over_cap(pair: _Pair, bid: BudgetId) -> str:
    """Rule 8: over the cap by an edit, nothing is stopped and nothing new starts."""
    cap = pair.new.budgets.by_id[bid].max_gpus
    if cap is None or pair.state is None:
        return ""
    leaves = pair.state.budgets.leaves_below.get(bid, ())
    held = sum(run.gpus for run in pair.state.runs.values() if run.budget in leaves)
    return f"uses {count(held, 'GPU')} now: nothing is stopped, nothing new starts" if held > cap else ""


# -- knobs --------------------------------------------------------------------------------------------------------


def _policy(cluster: str, old: Policy, new: Policy) -> Iterator[Change]:
    a, b = write_policy(old, defaults=True), write_policy(new, defaults=True)
    for name in b:
        if a[name] != b[name]:
            yield Change(Topic.POLICY, cluster, name, f"{_knob(a[name])} → {_knob(b[name])}")


def _health(cluster: str, old: Automatic, new: Automatic) -> Iterator[Change]:
    a, b = write_automatic(old), write_automatic(new)
    for name in b:
        if a[name] != b[name]:
            yield Change(Topic.POLICY, cluster, f"health.{name}", f"{a[name]} → {b[name]}")


def _knob(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _settings(old: Inventory, new: Inventory) -> Iterator[Change]:
    if old.fence_timeout_ms != new.fence_timeout_ms:
        what = f"{format_span(old.fence_timeout_ms)} → {format_span(new.fence_timeout_ms)}"
        yield Change(Topic.SETTING, "", "fence_timeout", what)
    for name in AT_RESTART:
        if getattr(old, name) != getattr(new, name):
            yield Change(Topic.SETTING, "", name, "changed", "counts at the next start")
    if old.health.overrides != new.health.overrides:
        yield Change(Topic.SETTING, "", "health.rules", "changed", "counts at the next start")


def reloaded(old: Inventory, new: Inventory) -> Inventory:
    """The new one, but for the settings that count at the next start."""
    health = replace(new.health, overrides=old.health.overrides)
    return replace(new, health=health, **{name: getattr(old, name) for name in AT_RESTART})
