"""Commands that only look: they fold the journal as any follower does."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace

from rich.text import Text

from opsconsole.cli.history import told_since
from opsconsole.cli.tables import output, print_json, print_table
from opsconsole.cli.usage import span_ms
from opsconsole.cli.wiring import Place, view_of
from opsconsole.config.snapshot_out import write_snapshot
from opsconsole.errors import StoreError, UsageError
from opsconsole.presenting.budgets import budgets_table
from opsconsole.presenting.explaining import Explanation, explain_anything, explain_past
from opsconsole.presenting.filtering import FilterError, parse_filter
from opsconsole.presenting.host_rows import hosts_table
from opsconsole.presenting.naming import find_workload
from opsconsole.presenting.queue import queue_table
from opsconsole.presenting.rows import PickedRows, TableView
from opsconsole.presenting.runs import runs_table
from opsconsole.presenting.timeline import happening_row
from opsconsole.presenting.view import ClusterView, Happening
from opsconsole.runtime import Runtime

FOLLOW_S = 0.3


def look(args: argparse.Namespace) -> tuple[Runtime, ClusterView]:
    """The cluster as the journal has it now, with the newest readings."""
    runtime = Place.of(args).follower()
    runtime.follow()
    runtime.read_readings()
    runtime.state.now = max(runtime.state.now, runtime.clock.now())
    return runtime, view_of(runtime)


def require_inventory(view: ClusterView) -> None:
    """Raises StoreError where nothing is known to submit to."""
    if not view.state.budgets.leaves:
        what = f"the store of {view.cluster} has no inventory yet: nobody has led this cluster"
        raise StoreError(what, advice="start a leader: opsconsole serve")


def _filtered(args: argparse.Namespace, table: TableView) -> TableView:
    """The rows that --filter lets through. Raises UsageError."""
    try:
        places = parse_filter(args.filter, table.columns).places(table)
    except FilterError as error:
        raise UsageError(f"--filter, at character {error.start + 1}: {error}") from None
    if len(places) == len(table.rows):
        return table
    empty = f"none of {len(table.rows)} passes the filter {args.filter}"
    return replace(table, rows=PickedRows(table.rows, places), empty=empty)


def _show(args: argparse.Namespace, table: TableView, view: ClusterView) -> int:
    if args.json:
        print_json(table.rows)
        return 0
    print_table(table)
    if view.leader == "nobody":
        print("Nobody leads this cluster: nothing changes until somebody does (opsconsole serve).", file=sys.stderr)
    return 0


def queue(args: argparse.Namespace) -> int:
    _, view = look(args)
    return _show(args, _filtered(args, queue_table(view)), view)


def hosts(args: argparse.Namespace) -> int:
    """Each host, and below the table what is wrong with which."""
    _, view = look(args)
    table = _filtered(args, hosts_table(view))
    status = _show(args, table, view)
    for row in table.rows if not args.json else ():
        if problems := row.data["problems"]:
            output().print(Text(f"{row.key}: {'; '.join(problems)}"))
    return status


def budgets(args: argparse.Namespace) -> int:
    _, view = look(args)
    return _show(args, _filtered(args, budgets_table(view)), view)


def runs(args: argparse.Namespace) -> int:
    _, view = look(args)
    return _show(args, _filtered(args, runs_table(view, finished=args.all)), view)


def explain(args: argparse.Namespace) -> int:
    """Why a workload waits or was stopped, where a run, a budget or a host stands."""
    runtime, view = look(args)
    found = explain_anything(view, args.id)
    if found is None:
        found = _explain_otherwise(runtime, view, args.id)
    if args.json:
        print(json.dumps({"id": args.id, "kind": found.kind, "lines": found.lines, "figures": found.figures}, indent=2))
    else:
        for line in found.lines:
            output().print(Text(line))
    return 0


def _explain_otherwise(runtime: Runtime, view: ClusterView, word: str) -> Explanation:
    """The workload that alone has this name; else what is over, from the journal. Raises UsageError."""
    try:
        found = explain_anything(view, find_workload(view.state, word))
    except ValueError as error:
        found = explain_past(view, told_since(runtime.store, 0)[0], word)
        if found is None:
            what, _, fix = str(error).partition("; ")
            raise UsageError(f"{what}, and no run, budget or host is called so", advice=fix) from None
    assert found is not None
    return found


def events(args: argparse.Namespace) -> int:
    """What happened, oldest first; with -f as it happens."""
    since_ms = span_ms("--since", args.since)
    store = Place.of(args).open_store(read_only=True)
    last = store.last_seq()
    for event in store.since(time.time_ns() // 1_000_000 - since_ms):
        _print_event(args, Happening(event.seq, event.wall_ms, event.kind, event.value))
    while args.follow:
        for event in store.tail(last):
            last = event.seq
            if event.role != "command" and event.kind not in ("PassDone", "InventoryLoaded"):
                _print_event(args, Happening(event.seq, event.wall_ms, event.kind, event.value))
        time.sleep(FOLLOW_S)
    return 0


def _print_event(args: argparse.Namespace, happening: Happening) -> None:
    row = happening_row(happening)
    if args.json:
        print(json.dumps(row.data), flush=True)
    else:
        when, source, what = (cell.text for cell in row.cells[:3])
        print(f"{when}  {source:9}  {what}", flush=True)


def snapshot(args: argparse.Namespace) -> int:
    """The live state as the file that `opsconsole plan` reads."""
    runtime, _ = look(args)
    sys.stdout.write(write_snapshot(runtime.state))
    return 0
