"""A Gantt chart of a replay: a row for each GPU, a hue for each budget. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from opsconsole.presenting.text import clean
from opsconsole.simulating.pictures import INK, PALE, hues_of, new_figure, save
from opsconsole.simulating.replay import Event, Outcome
from opsconsole.simulating.workloads import Stream
from scheduler_core.decisions import Member
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId
from scheduler_core.units import HOUR, bits
from scheduler_core.workload import Workload

MOST_RUNS = 4000  # more cannot be told apart
MOST_NAMES = 40  # of hosts beside the chart
Box = tuple[tuple[float, float], ...]


@dataclass(slots=True)
class Run:
    """Instants in ms, None where it did not come to that."""

    members: tuple[Member, ...]
    budget: BudgetId
    placed_at: int
    min_runtime_ms: int
    started_at: int | None = None
    released_at: int | None = None
    preempted: bool = False

    def protected_until(self, end: int) -> int:
        """As far as is known at `end`."""
        return end if self.started_at is None else self.started_at + self.min_runtime_ms


@dataclass
class Runs:
    """The first runs of a replay, as its events tell them."""

    stream: Stream
    found: dict[str, Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workloads: dict[str, Workload] = {str(w.id): w for w in self.stream.workloads}

    def hear(self, event: Event) -> None:
        if event.kind == "place" and len(self.found) < MOST_RUNS:
            w = self.workloads[event.workload]
            self.found[event.run] = Run(event.members, w.budget, event.at, w.min_runtime_ms)
        elif (run := self.found.get(event.run)) is not None:
            if event.kind == "start":
                run.started_at = event.at
            elif event.kind == "release":
                run.released_at = event.at
            elif event.kind == "preempt":
                run.preempted = True


class Span(NamedTuple):
    """A part of a run, on all its GPUs."""

    run: Run
    since: int
    until: int


def draw_gantt(folder: Path, outcome: Outcome, hosts: Sequence[Host], runs: Runs) -> None:
    """`gantt.svg`: hatched where a run was interruptible, with an edge where it was preempted. Raises OSError."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    found = list(runs.found.values())
    end = found[-1].placed_at if len(found) == MOST_RUNS else outcome.end
    held = [Span(run, run.placed_at, min(end, run.released_at or end)) for run in found if run.placed_at < end]
    past = [Span(s.run, max(s.since, s.run.protected_until(end)), s.until) for s in held]
    rows, total = rows_of(hosts)
    hues = hues_of(outcome)
    figure = new_figure(11, min(12.0, 2 + total * 0.12))
    axes = figure.subplots()
    colours = [hues.get(s.run.budget, PALE) for s in held for _ in boxes([s], outcome.begin, rows)]
    axes.add_collection(PolyCollection(boxes(held, outcome.begin, rows), facecolors=colours, linewidths=0))
    hatched = boxes([s for s in past if s.since < s.until], outcome.begin, rows)
    axes.add_collection(PolyCollection(hatched, facecolors="none", edgecolors="white", hatch="////", linewidths=0))
    edged = boxes([s for s in held if s.run.preempted], outcome.begin, rows)
    axes.add_collection(PolyCollection(edged, facecolors="none", edgecolors=INK, linewidths=0.8))
    axes.set(xlim=(0, (end - outcome.begin) / HOUR), ylim=(total, 0), xlabel="hours", ylabel="GPUs")
    named = hosts[:: -(-len(hosts) // MOST_NAMES)]
    axes.set_yticks([rows[host.name] for host in named], [str(host.name) for host in named], fontsize=6)
    shown = "" if end == outcome.end else f" by the first {MOST_RUNS:,} runs"
    axes.set_title(f"GPUs held{shown}; hatched: interruptible, edge: preempted", loc="left")
    paths = outcome.stream.tree.paths
    legend = [Patch(color=hue, label=clean(paths[budget], 30)) for budget, hue in hues.items()]
    axes.legend(handles=legend, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    save(figure, folder / "gantt.svg")


def rows_of(hosts: Sequence[Host]) -> tuple[Mapping[str, int], int]:
    """The first row of each host, and how many there are."""
    rows: dict[str, int] = {}
    total = 0
    for host in hosts:
        rows[host.name] = total
        total += host.gpus
    return rows, total


def boxes(spans: Sequence[Span], begin: int, rows: Mapping[str, int]) -> list[Box]:
    """A box for each stretch of neighbouring GPUs, in hours and rows."""
    found: list[Box] = []
    for run, since, until in spans:
        left, right = (since - begin) / HOUR, (until - begin) / HOUR
        for member in run.members:
            for low, high in stretches(member.slots):
                top, bottom = rows[member.host] + low, rows[member.host] + high
                found.append(((left, top), (right, top), (right, bottom), (left, bottom)))
    return found


def stretches(mask: int) -> Iterator[tuple[int, int]]:
    """Neighbouring slots as half-open ranges."""
    slots = bits(mask)
    first = 0
    for at in range(1, len(slots) + 1):
        if at == len(slots) or slots[at] != slots[at - 1] + 1:
            yield slots[first], slots[at - 1] + 1
            first = at
