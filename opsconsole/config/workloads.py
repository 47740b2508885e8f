"""A workload's fields, as a file or a command line gives them: text to a Workload, every problem named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from opsconsole.config.scalars import parse_boolean, parse_choice, parse_integer, parse_text, shown, suggestion
from opsconsole.spans import format_span, parse_span_ms
from scheduler_core.budget import BudgetTree
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.shapes import Misfit, ShapeProblem, shape_problem
from scheduler_core.workload import Launch, OnPreempt, Workload

MOST_GPUS = 1_000_000
MOST_PRIORITY = 1_000_000
NO_LAUNCH = Launch()
_SIDES = (("hosts", "hosts"), ("gpus_per_host", "GPUs per host"))
Complain = Callable[[str, str, str], None]  # field, what, fix


class Strictness(Enum):
    """Which shapes are refused: what fits nowhere now, what rule 16 never allows, or none (it runs already)."""

    SUBMISSION = "submission"
    SNAPSHOT = "snapshot"
    RUNNING = "running"


_REFUSED: dict[Strictness, tuple[Misfit, ...]] = {
    Strictness.SUBMISSION: (Misfit.NOT_WHOLE_HOSTS, Misfit.NO_SUCH_HOST),
    Strictness.SNAPSHOT: (Misfit.NOT_WHOLE_HOSTS,),
    Strictness.RUNNING: (),
}


@dataclass(frozen=True, slots=True)
class Site:
    """What a submission is held against. `known` keeps verdicts on shapes: many workloads are alike."""

    tree: BudgetTree
    policy: Policy
    hosts: Sequence[Host]
    known: dict[tuple[object, ...], ShapeProblem | None] = field(default_factory=dict, compare=False)

    def shape_problem(self, w: Workload, strictness: Strictness) -> str | None:
        """Why no host shape holds it. A cluster that is only too small is no mistake: it may grow (rule 22)."""
        alike = (w.gpus, w.hosts, w.gpus_per_host, w.needs)
        if alike not in self.known:
            self.known[alike] = shape_problem(w, self.hosts)
        problem = self.known[alike]
        return problem.text if problem is not None and problem.kind in _REFUSED[strictness] else None


def build_workload(
    fields: Mapping[str, str],
    site: Site,
    wid: WorkloadId,
    submitted_at: int,
    complain: Complain,
    needs: tuple[tuple[str, str], ...] = (),
    launch: Launch = NO_LAUNCH,
    strictness: Strictness = Strictness.SUBMISSION,
) -> Workload | None:
    """A workload from its fields as typed; None where something is wrong, and `complain` has heard all of it."""
    reader = _Reader(fields, complain)
    leaf = _leaf(fields.get("budget"), site.tree, reader)
    gpus = reader.integer("gpus", 1, MOST_GPUS)
    if "gpus" not in fields:
        reader.fail("gpus", "is missing", "say how many GPUs it needs")
    min_runtime = _min_runtime(fields.get("min_runtime"), leaf, site, reader)
    hosts, per_host = _shape(reader, gpus)
    values: dict[str, Any] = {
        "owner": reader.text("owner"),
        "name": reader.text("name"),
        "priority": reader.integer("priority", -MOST_PRIORITY, MOST_PRIORITY) or 0,
        "resumable": reader.boolean("resumable"),
        "on_preempt": OnPreempt(reader.choice("on_preempt", [o.value for o in OnPreempt]) or "end"),
        "max_retries": reader.integer("max_retries", 0, 1000),
        "time_limit_ms": reader.span("time_limit", least=1),
    }
    if reader.failed or leaf is None or gpus is None or min_runtime is None:
        return None
    workload = Workload(
        wid,
        leaf,
        gpus,
        min_runtime,
        submitted_at,
        hosts=hosts,
        gpus_per_host=per_host,
        needs=needs,
        launch=launch,
        **values,
    )
    if (problem := site.shape_problem(workload, strictness)) is not None:
        reader.fail("gpus", *_split(problem))
        return None
    return workload


def find_leaf(path: str, tree: BudgetTree) -> BudgetId:
    """The leaf with this path. Raises ValueError that names the nearest one, or the leaves below an inner budget."""
    bid = tree.by_path.get(path)
    leaves = [tree.paths[leaf] for leaf in tree.leaves]
    if bid is None:
        raise ValueError(f"no budget {shown(path)}; {suggestion(path, leaves)}")
    if not tree.is_leaf(bid):
        below = ", ".join(tree.paths[leaf] for leaf in tree.leaves_below[bid])
        raise ValueError(f"{path!r} is not a leaf; choose one of {below}")
    return bid


def _split(problem: str) -> tuple[str, str]:
    what, _, fix = problem.partition("; ")
    return what, fix


def _leaf(path: str | None, tree: BudgetTree, reader: _Reader) -> BudgetId | None:
    if path is None:
        reader.fail("budget", "is missing", "name a leaf of the budget tree")
        return None
    try:
        return find_leaf(path, tree)
    except ValueError as error:
        reader.fail("budget", *_split(str(error)))
        return None


def _min_runtime(text: str | None, leaf: BudgetId | None, site: Site, reader: _Reader) -> int | None:
    """Declared or inherited, within the bounds (rule 10); never changed silently. 0 is unallocated."""
    if text is not None:
        value = reader.span("min_runtime")
    elif leaf is None:
        return None
    elif (value := site.tree.min_runtime_default_ms(leaf)) is None:
        reader.fail("min_runtime", "is missing and no budget above sets a default", "declare it; 0 is unallocated")
    low, high = site.policy.min_runtime_min_ms, site.policy.min_runtime_max_ms
    if value and not low <= value <= high:
        given = text or f"{format_span(value)}, inherited,"
        bounds = f"{format_span(low)} to {format_span(high)}"
        reader.fail("min_runtime", f"{given} is outside min_runtime_bounds, {bounds}", "declare one within")
        return None
    return value


def _shape(reader: _Reader, gpus: int | None) -> tuple[int | None, int | None]:
    """Both sides of a declared shape; one of them follows from the other."""
    hosts = reader.integer("hosts", 1, 100_000)
    per_host = reader.integer("gpus_per_host", 1, 1024)
    if gpus is None or (hosts is None and per_host is None):
        return hosts, per_host
    if hosts is None and per_host is not None:
        hosts = gpus // per_host
    elif per_host is None and hosts is not None:
        per_host = gpus // hosts
    if hosts is None or per_host is None or hosts * per_host != gpus:
        given = " x ".join(f"{reader.fields[side]} {word}" for side, word in _SIDES if side in reader.fields)
        reader.fail("gpus", f"{given} do not make {gpus} GPUs", "let hosts x gpus_per_host equal gpus")
    return hosts, per_host


@dataclass
class _Reader:
    fields: Mapping[str, str]
    complain: Complain
    failed: bool = False

    def fail(self, field: str, what: str, fix: str = "") -> None:
        self.failed = True
        self.complain(field, what, fix)

    def _parsed(self, field: str, parse: Callable[[str], Any]) -> Any:
        if field not in self.fields:
            return None
        try:
            return parse(self.fields[field])
        except ValueError as error:
            self.fail(field, *_split(str(error)))
            return None

    def text(self, field: str) -> str:
        return str(self._parsed(field, parse_text) or "")

    def integer(self, field: str, least: int, most: int) -> int | None:
        found: int | None = self._parsed(field, lambda text: parse_integer(text, least, most))
        return found

    def span(self, field: str, least: int = 0) -> int | None:
        found: int | None = self._parsed(field, parse_span_ms)
        if found is not None and found < least:
            self.fail(field, "may not be 0", "")
        return found

    def boolean(self, field: str) -> bool:
        return bool(self._parsed(field, parse_boolean))

    def choice(self, field: str, options: Iterable[str]) -> str | None:
        found: str | None = self._parsed(field, lambda text: parse_choice(text, list(options)))
        return found


def parse_need(text: str) -> tuple[str, str]:
    """`model=h100`. Raises ValueError."""
    match = re.fullmatch(r"([A-Za-z0-9_./-]+)=(.+)", parse_text(text))
    if not match:
        raise ValueError(f"{shown(text)} is no label; write for example model=h100")
    return match[1], match[2]
