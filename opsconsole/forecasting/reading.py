"""A draft as people type it, held against the state that it would change. Everything that is wrong is said at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from opsconsole.config.budgets import read_budgets, write_budgets
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.knobs import read_policy, write_policy
from opsconsole.config.ranges import expand_names
from opsconsole.config.scalars import shown, suggestion
from opsconsole.config.workloads import Site, build_workload
from opsconsole.config.yamlio import Source
from opsconsole.errors import UsageError
from opsconsole.forecasting.draft import Draft
from opsconsole.simulating.setup import parse_cluster
from opsconsole.spans import format_span
from scheduler_core.budget import BudgetTree
from scheduler_core.fleet import Host, HostState
from scheduler_core.hosttable import HostEvent, move
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState
from scheduler_core.units import count, few
from scheduler_core.workload import Workload

COMMAND = "whatif"  # where problems say they are
BUDGET_FIELDS = ("weight", "max_gpus", "min_runtime_default", "over_budget_priority", "over_budget_weight")
WORKLOAD_FIELDS = (
    "budget",
    "gpus",
    "min_runtime",
    "hosts",
    "gpus_per_host",
    "resumable",
    "on_preempt",
    "priority",
    "time_limit",
    "owner",
    "name",
)
SHORT = {"min": "min_runtime"}


@dataclass(frozen=True, slots=True)
class Typed:
    """The words of each option, in order. `owner`: of what is submitted and names none."""

    sets: Sequence[str] = ()
    drains: Sequence[str] = ()
    removes: Sequence[str] = ()
    adds: Sequence[str] = ()
    submits: Sequence[str] = ()
    owner: str = ""


def read_draft(typed: Typed, state: ClusterState) -> Draft | None:
    """None where nothing is to change. Raises ConfigError with everything that is wrong."""
    reader = _Reader(state)
    policy, tree = reader.settings(typed.sets)
    drained = reader.hosts("--drain", typed.drains, reader.drainable)
    removed = reader.hosts("--remove", typed.removes, lambda name: "")
    added = reader.added(typed.adds)
    hosts = [r.host for name, r in state.hosts.items() if name not in removed and not r.removed]
    site = Site(tree or state.budgets, policy or state.policy, [*hosts, *added])
    submitted = [reader.workload(text, site, number, typed.owner) for number, text in enumerate(typed.submits, start=1)]
    if reader.problems:
        raise ConfigError(reader.problems)
    if not reader.said:
        return None
    workloads = tuple(w for w in submitted if w is not None)
    return Draft(policy, None if tree is None else tree.budgets, added, removed, drained, workloads, tuple(reader.said))


@dataclass
class _Reader:
    state: ClusterState
    problems: list[Problem] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def fail(self, option: str, what: str, fix: str = "") -> None:
        self.problems.append(Problem(COMMAND, 0, option, what, fix))

    # -- knobs and budgets -----------------------------------------------------------------------------------------

    def settings(self, texts: Sequence[str]) -> tuple[Policy | None, BudgetTree | None]:
        """What is set is written into the file that the state would be, and that is read as any file is."""
        if not texts:
            return None, None
        policy, budgets = write_policy(self.state.policy, defaults=True), write_budgets(self.state.budgets)
        typed: dict[str, str] = {}  # by place in that file
        for text in texts:
            key, equals, value = (part.strip() for part in text.partition("="))
            if not key or not equals or not value:
                self.fail("--set", f"{shown(text)} sets nothing", "write KNOB=VALUE or budgets.PATH.FIELD=VALUE")
            elif key.startswith("budgets."):
                self._set_budget(key, value, budgets, typed)
            else:
                self._set(policy, key, value, key, f"policy.{key}", typed)
        source = Source(COMMAND, yaml.safe_dump({"policy": policy, "budgets": budgets}, allow_unicode=True))
        top = source.mapping(source.root(), "", ("policy", "budgets"))
        new = read_policy(source, top["policy"])
        tree = read_budgets(source, top["budgets"], policy=new)
        for problem in source.problems:
            place = next((place for place in typed if problem.field in (place, *_ends(place))), "")
            self.fail(f"--set {typed[place]}" if place else problem.field, problem.what, problem.fix)
        return new, tree

    def _set_budget(self, key: str, value: str, budgets: list[dict[str, Any]], typed: dict[str, str]) -> None:
        path, _, name = key.removeprefix("budgets.").rpartition(".")
        if path not in self.state.budgets.by_path:
            self.fail(f"--set {key}", f"no budget {shown(path)}", suggestion(path, self.state.budgets.by_path))
        elif name not in BUDGET_FIELDS:
            self.fail(f"--set {key}", f"{shown(name)} is no field of a budget", suggestion(name, BUDGET_FIELDS))
        else:
            place, level, entry = "budgets", budgets, dict[str, Any]()
            for part in path.split("/"):
                at = next(at for at, row in enumerate(level) if row["name"] == part)
                entry, place = level[at], f"{place}[{at}]"
                level, place = entry.get("children", []), f"{place}.children"
            self._set(entry, name, value, key, f"{place.removesuffix('.children')}.{name}", typed)

    def _set(self, entry: dict[str, Any], name: str, value: str, key: str, place: str, typed: dict[str, str]) -> None:
        if key in typed.values():
            self.fail(f"--set {key}", "is set twice", "keep one")
        old, typed[place] = entry.get(name, "unset"), key
        ends = [end.strip() for end in value.strip("[]").split(",")]
        entry[name] = ends if name == "min_runtime_bounds" else value
        self.said.append(f"{key} {_said(old)} → {_said(entry[name])}")

    # -- hosts -----------------------------------------------------------------------------------------------------

    def hosts(self, option: str, patterns: Sequence[str], refused: Callable[[HostName], str]) -> tuple[HostName, ...]:
        """Names or ranges, each once."""
        found: dict[HostName, None] = {}
        for pattern in patterns:
            try:
                names = [HostName(name) for name in expand_names(pattern)]
            except ValueError as error:
                what, _, fix = str(error).partition("; ")
                self.fail(option, what, fix)
                continue
            for name in names:
                if name not in self.state.hosts:
                    self.fail(option, f"no host {shown(name)}", suggestion(name, self.state.hosts))
                elif why := refused(name):
                    self.fail(option, f"{name} {why}", "leave it out")
                found[name] = None
        if found:
            self.said.append(f"{option.removeprefix('--')} {few(list(found), 5)}")
        return tuple(found)

    def drainable(self, name: HostName) -> str:
        """Why it cannot be drained, or nothing."""
        state = self.state.hosts[name].state
        if state is HostState.DRAINING or move(state, HostEvent.DRAIN) is None:
            return f"is {state.value.replace('_', ' ')} already"
        return ""

    def added(self, texts: Sequence[str]) -> tuple[Host, ...]:
        found: list[Host] = []
        for text in texts:
            try:
                hosts = parse_cluster(text, "--add-hosts")
            except UsageError as error:
                self.fail("--add-hosts", error.message.partition(": ")[2], error.advice or "")
                continue
            for host in hosts:
                found.append(Host(_new(f"added-{len(found) + 1}", self.state.hosts), host.gpus))
            self.said.append(f"add {count(len(hosts), 'host')} with {count(sum(h.gpus for h in hosts), 'GPU')}")
        return tuple(found)

    # -- work ------------------------------------------------------------------------------------------------------

    def workload(self, text: str, site: Site, number: int, owner: str) -> Workload | None:
        """`gpus=64,min=2h,budget=olmo/eval`."""
        fields = {"owner": owner} if owner else {}
        before = len(self.problems)
        for part in text.split(","):
            key, equals, value = (word.strip() for word in part.partition("="))
            name = SHORT.get(key, key)
            if not equals or not value:
                self.fail("--submit", f"{shown(part)} says nothing", "write FIELD=VALUE, separated by commas")
            elif name not in WORKLOAD_FIELDS:
                self.fail("--submit", f"{shown(key)} is no field of a workload", suggestion(key, WORKLOAD_FIELDS))
            else:
                fields[name] = value
        if len(self.problems) > before:
            return None
        wid = WorkloadId(_new(f"draft-{number}", self.state.workloads))
        found = build_workload(
            fields, site, wid, self.state.now, lambda name, what, fix: self.fail(f"--submit {name}", what, fix)
        )
        if found is not None:
            promise = f"min runtime {format_span(found.min_runtime_ms)}" if found.allocated else "unallocated"
            self.said.append(f"submit {wid}: {count(found.gpus, 'GPU')}, {promise}, {site.tree.paths[found.budget]}")
        return found


def _ends(place: str) -> tuple[str, str]:
    """Where a list of two is wrong."""
    return f"{place}[0]", f"{place}[1]"


def _new(name: str, known: Any) -> Any:
    """One that nothing has yet."""
    while name in known:
        name += "'"
    return name


def _said(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
