"""A report for people: sentences about what was read, and tables of figures, budgets and differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count, span
from opsconsole.presenting.trends import spark
from opsconsole.simulating.metrics import CLASSES
from opsconsole.simulating.report import RESTS, Report
from opsconsole.simulating.rules import Rules
from opsconsole.simulating.runs import Result

SAME = 0.005  # of what is owed: no team gained or lost by less
SAME_WAIT = 0.1  # of a wait


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def gpu_h(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def seconds(value: float | None) -> str:
    return "–" if value is None else span(round(value * 1000))


def over_time(values: Sequence[float | None]) -> str:
    """From the beginning of the period to its end, of 0 to 1; a dot where nothing was owed."""
    return spark([None if value is None else value * 100 for value in values], len(values))


Say = Callable[[Any], str]
LINES: tuple[tuple[str, tuple[str, ...], Say], ...] = (
    ("workloads", ("workloads",), lambda v: f"{v:,}"),
    ("rows left out", ("skipped",), lambda v: f"{v:,}"),
    ("never started", ("never_started",), lambda v: f"{v:,}"),
    ("occupancy", ("occupancy",), percent),
    ("availability", ("availability",), percent),
    ("delivered of owed", ("delivered_over_owed",), percent),
    ("  hour by hour", ("delivered_over_owed_hourly",), percent),
    ("owed GPU-hours", ("owed_gpu_h",), gpu_h),
    ("delivered GPU-hours", ("delivered_gpu_h",), gpu_h),
    ("unallocated share", ("unallocated_share",), percent),
    ("preemptions", ("preemptions",), lambda v: f"{v:,}"),
    ("lost GPU-hours", ("lost_gpu_h",), gpu_h),
    ("lost to faults", ("lost_to_faults_gpu_h",), gpu_h),
    *((f"wait {name}", ("wait_s", name), seconds) for name in ("p50", "p90", "p99", "max")),
    ("largest, GPUs", ("largest", "gpus"), str),
    ("  wait p90", ("largest", "wait_s", "p90"), seconds),
    *((f"{kind} wait p90", ("wait_s_by_class", kind, "p90"), seconds) for kind in CLASSES),
    ("of owed over time", ("delivered_over_owed_over_time",), over_time),
)


def at_path(data: Any, path: Sequence[str]) -> Any:
    for key in path:
        data = data[key]
    return data


def figures_table(policies: Sequence[dict[str, Any]]) -> TableView:
    """A line for each figure, a column for each policy; with several seeds the range behind the median."""
    columns = (Column("FIGURE", 20), *(Column(clean(p["policy"], 40), 12, right=True) for p in policies))
    rows = []
    for words, path, say in LINES:
        cells = [Cell(words.replace("  ", "· ", 1) if words[0] == " " else words)]
        for policy in policies:
            text = say(at_path(policy, path))
            if "low" in policy:
                low, high = (say(at_path(policy[end], path)) for end in ("low", "high"))
                text = text if low == high else f"{text} ({low} to {high})"
            cells.append(Cell(text))
        rows.append(Row(words, tuple(cells)))
    return TableView("Figures", columns, tuple(rows))


BUDGETS = (
    Column("BUDGET", 20, grow=True),
    Column("WORKLOADS", 9, right=True, from_width=100),
    Column("OWED GPU-H", 10, right=True),
    Column("GOT GPU-H", 10, right=True),
    Column("OF OWED", 7, right=True),
    Column("UNALLOC", 7, right=True, from_width=90),
    Column("PREEMPTED", 9, right=True, from_width=90),
    Column("LOST GPU-H", 10, right=True, from_width=110),
    Column("WAIT P50", 8, right=True),
    Column("P90", 7, right=True),
    Column("LONGEST", 7, right=True, from_width=100),
    Column("OF OWED OVER TIME", 24, from_width=140),
)


def budgets_table(policy: dict[str, Any]) -> TableView:
    """Those that have workloads."""
    rows = []
    for b in (b for b in policy["budgets"] if b["workloads"]):
        got = b["delivered_over_owed"]
        cells = (
            Cell(clean(b["path"], 60)),
            Cell(f"{b['workloads']:,}"),
            Cell(gpu_h(b["owed_gpu_h"])),
            Cell(gpu_h(b["delivered_gpu_h"])),
            Cell(percent(got), "" if got is None or got >= 0.95 else "warn"),
            Cell(percent(b["unallocated_share"])),
            Cell(f"{b['preemptions']:,}"),
            Cell(gpu_h(b["lost_gpu_h"])),
            Cell(seconds(b["wait_s"]["p50"])),
            Cell(seconds(b["wait_s"]["p90"])),
            Cell(seconds(b["wait_s"]["max"])),
            Cell(over_time(b["delivered_over_owed_over_time"])),
        )
        rows.append(Row(b["path"], cells))
    return TableView(f"Budgets under {clean(policy['policy'], 60)}", BUDGETS, tuple(rows))


DIFFERENCES = (
    Column("BUDGET", 20, grow=True),
    Column("OF OWED", 16, right=True),
    Column("WAIT P90", 16, right=True),
    Column("GPU-H", 9, right=True),
    Column("WHO", 8),
)


def differences_table(before: dict[str, Any], after: dict[str, Any]) -> TableView:
    """Of budgets that both have, those that gain first. By what is delivered of the owed, else by the wait."""
    known = {b["path"]: b for b in before["budgets"]}
    rows = []
    for b in after["budgets"]:
        if (was := known.get(b["path"])) is not None:
            rows.append((gain(was, b), b["path"], was, b))
    rows.sort(key=lambda row: (-row[0], row[1]))
    words = {1: Cell("gains", "good"), 0: Cell("same", "dim"), -1: Cell("loses", "bad")}
    views = [
        Row(
            path,
            (
                Cell(clean(path, 60)),
                Cell(f"{percent(was['delivered_over_owed'])} → {percent(b['delivered_over_owed'])}"),
                Cell(f"{seconds(was['wait_s']['p90'])} → {seconds(b['wait_s']['p90'])}"),
                Cell(f"{b['delivered_gpu_h'] - was['delivered_gpu_h']:+,.0f}"),
                words[(better > 0) - (better < 0)],
            ),
        )
        for better, path, was, b in rows
    ]
    title = f"From {clean(before['policy'], 60)} to {clean(after['policy'], 60)}"
    return TableView(title, DIFFERENCES, tuple(views), "the two have no budget in common")


def gain(was: dict[str, Any], now: dict[str, Any]) -> float:
    """How much better off, in parts of what is owed; where that is the same, in parts of the longer p90 wait."""
    owed = (now["delivered_over_owed"] or 0.0) - (was["delivered_over_owed"] or 0.0)
    if abs(owed) >= SAME:
        return owed
    before, after = was["wait_s"]["p90"] or 0.0, now["wait_s"]["p90"] or 0.0
    longer = max(before, after, 60.0)  # below a minute nobody minds
    return (before - after) / longer * SAME if abs(before - after) >= SAME_WAIT * longer else 0.0


def sentences(report: Report, data: dict[str, Any]) -> list[str]:
    """What was read and what rests on rules, before the tables."""
    log, oddities, cluster = report.study.log, data["log"]["oddities"], data["cluster"]
    out = sum(odd["count"] for odd in oddities if odd["treatment"] == "left out")
    replayed = f"{log.rows - out:,} replayed, {out:,} left out"
    said = [f"{clean(log.file)}: {log.format}, {log.rows:,} rows: {replayed}"]
    for odd in oddities:
        shown = "; ".join(f"line {e['line']}: {clean(e['found'], 60)}" for e in odd["examples"][:2])
        said.append(f"  {odd['count']:,} {odd['treatment']}: {odd['words']} ({shown})")
    times = f", demand × {report.study.times:g}" if report.study.times != 1 else ""
    period = f"{data['period']['from']} to {data['period']['to']}"
    said.append(f"{count(cluster['hosts'], 'host')}, {cluster['gpus']:,} GPUs{times}; {period}")
    said += report.notes
    for result, variant in zip((results[0] for results in report.results), report.study.variants, strict=True):
        said.append(_rests(result, variant.rules, variant.name))
    if report.study.faults:
        said.append(f"Each host fails {report.study.faults:g} times a day and is repaired as each policy's rules say.")
    if len(report.study.seeds) > 1 and not report.drawn:
        said.append("Nothing in it is drawn: every seed gives the same.")
    return said


def _rests(result: Result, rules: Rules, name: str) -> str:
    """Which figures rest on rules and not on the log."""
    parts = [f"{RESTS[key][0]} of {number:,} workloads" for key, number in result.declared.items()]
    delays = f"start after {span(rules.start_delay_ms)}, stop after {span(rules.stop_delay_ms)}"
    every = f"every {span(rules.checkpoint_every_ms)}" if rules.checkpoint_every_ms else "at the stop"
    parts.append(f"{delays}, checkpoint {every}")
    return f"{clean(name, 60)}: declared by rules, not by the log: {'; '.join(parts)}"
