"""Pictures of replays as SVG: how long work waited, how budgets stood. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsconsole.presenting.text import clean
from opsconsole.simulating.meter import ALLOCATED, UNALLOCATED
from opsconsole.simulating.metrics import CLASSES
from opsconsole.simulating.replay import Outcome
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId
from scheduler_core.units import HOUR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_HOURS = 20 * 366 * 24  # that are drawn
INK, PALE = "#222222", "#cccccc"
HUES = (*(f"C{n}" for n in range(7)), "C8", "C9", "#1b4f72", "#7d6608", "#641e16")  # C7 is grey, as all others are
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "opsconsole",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.5,
}
WAITS_S = {1: "1s", 60: "1m", 3600: "1h", 86_400: "1d", 864_000: "10d"}


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


def hues_of(outcome: Outcome) -> dict[BudgetId, str]:
    """Of the leaves that held most, in their order."""
    tree, accounts = outcome.stream.tree, outcome.meter.accounts
    held = {leaf: accounts[leaf].total(ALLOCATED) + accounts[leaf].total(UNALLOCATED) for leaf in tree.leaves}
    most = sorted((leaf for leaf in tree.leaves if held[leaf]), key=lambda leaf: (-held[leaf], leaf))[: len(HUES)]
    return dict(zip(sorted(most), HUES, strict=False))


def draw_balance(folder: Path, outcome: Outcome, hosts: Sequence[Host], lookback_ms: int) -> None:
    """`balance.svg`: used ÷ entitled in the window, at the end of each hour (rules 3 to 5). Raises OSError."""
    figure = new_figure(9, 4)
    axes = figure.subplots()
    gpus, tree = sum(host.gpus for host in hosts), outcome.stream.tree
    count = min(MOST_HOURS, -(-(outcome.end - outcome.begin) // HOUR))
    for leaf, hue in hues_of(outcome).items():
        if entitled := float(tree.fractions[leaf]) * gpus:
            hours = outcome.meter.accounts[leaf].hours
            used = [hours[hour][ALLOCATED] if hour in hours else 0 for hour in range(count)]
            balance = balances(used, entitled, max(1, lookback_ms // HOUR))
            days = [at / 24 for at in range(1, len(balance) + 1)]
            axes.plot(days, balance, color=hue, label=clean(tree.paths[leaf], 30))
    axes.axhline(1, color=INK, linewidth=0.6)
    axes.set(xlabel="days", ylabel="balance", ylim=(0, None))
    axes.set_title("Used of what is owed in the window; 1 is an even share", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    save(figure, folder / "balance.svg")


def balances(used: Sequence[int], entitled_gpus: float, hours: int) -> list[float]:
    """`used` in GPU x ms by hour. Time before the first hour counts as served and not used (rule 4)."""
    found, within = [], 0
    for at, amount in enumerate(used):
        within += amount - (used[at - hours] if at >= hours else 0)
        found.append(within / (entitled_gpus * hours * HOUR))
    return found


def draw_waits(folder: Path, waits: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
    """`waits.svg`: by policy and class, how many waited no longer. `waits` in ms, in order."""
    figure = new_figure(11, 3.6)
    for axes, kind in zip(figure.subplots(1, len(CLASSES), sharey=True), CLASSES, strict=True):
        for name, by_class in waits.items():
            ordered = by_class[kind]
            if ordered:
                parts = [(at + 1) / len(ordered) * 100 for at in range(len(ordered))]
                axes.step([max(1.0, wait / 1000) for wait in ordered], parts, where="post", label=clean(name, 30))
        axes.set(xscale="log", xlabel="waited at most", ylim=(0, 101))
        axes.set_xticks(list(WAITS_S), list(WAITS_S.values()))
        axes.minorticks_off()
        axes.grid(axis="x", color=PALE, linewidth=0.5)
        axes.set_title(f"{kind}: {len(next(iter(waits.values()))[kind]):,} workloads", loc="left")
    figure.axes[0].set_ylabel("% of the workloads")
    if any(axes.lines for axes in figure.axes):
        handles, labels = max(
            (axes.get_legend_handles_labels() for axes in figure.axes), key=lambda found: len(found[0])
        )
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    save(figure, folder / "waits.svg")


def new_figure(width: float, height: float) -> Figure:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(STYLE)
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path) -> None:
    """The same bytes each time. Raises OSError."""
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "opsconsole"})
