"""Commands that need no cluster: plan on a snapshot, shell completion."""

from __future__ import annotations

import argparse
import json

from rich.table import Table
from rich.text import Text

from opsconsole.cli.tables import output
from opsconsole.config.snapshot import read_snapshot
from opsconsole.config.units import format_instant
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
    budgets = Table("BUDGET", "BALANCE", "RANK", title="Budgets by standing", title_justify="left")
    for row in report.order:
        depth = len(state.budgets.chains[row.budget]) - 1
        balance = "no share" if row.balance is None else f"{row.balance:.2f}"
        budgets.add_row(Text("  " * depth + state.budgets.by_id[row.budget].name), balance, str(row.rank))
    console.print(budgets)
    items = Table("WHAT", "WORKLOAD", "FOR", "HOSTS", "WHY", "UNTIL", title="One pass", title_justify="left")
    for item in report.items:
        hosts = " ".join(f"{host}:{gpus}" for host, gpus in item.hosts.items())
        until = "" if item.until is None else format_instant(item.until)
        items.add_row(item.kind, Text(item.workload), Text(item.for_workload or ""), hosts, Text(item.reason), until)
    console.print(items)


def completion(args: argparse.Namespace) -> int:
    """The completion script of a shell."""
    import shtab

    from opsconsole.cli.parser import build_parser

    print(shtab.complete(build_parser(), args.shell))
    return 0
