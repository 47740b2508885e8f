"""Commands that need no cluster: plan on a snapshot."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime

from rich.text import Text

from opsconsole.cli.tables import output, print_table
from opsconsole.config.snapshot import read_snapshot
from opsconsole.config.units import format_instant
from opsconsole.presenting.passes import pass_table, standings_table
from scheduler_core.report import PlanReport, as_json, plan_report
from scheduler_core.state import ClusterState


def plan(args: argparse.Namespace) -> int:
    """One pass on a snapshot: what would happen and why."""
    state = read_snapshot(args.file)
    report = plan_report(state)
    if args.json:
        print(json.dumps(as_json(report, state, format_instant), indent=2))
    else:
        _print_plan(report, state)
    return 0


def _print_plan(report: PlanReport, state: ClusterState) -> None:
    console = output()
    for table in (standings_table(report.order, state), pass_table(report.items, lambda at: _clock(at, state.now))):
        console.print(Text(table.title, style="bold"))
        print_table(table, console)


def _clock(at_ms: int, now_ms: int) -> str:
    """As the file has it, in UTC; with the day where it is another."""
    at, now = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (at_ms, now_ms))
    return at.strftime("%H:%MZ" if at.date() == now.date() else "%b %d %H:%MZ")
