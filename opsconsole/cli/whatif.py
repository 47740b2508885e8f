"""`opsconsole whatif`: what comes of the live state, as it is and with a draft's changes. It only looks."""

from __future__ import annotations

import argparse
import json
import os
import sys

from rich.text import Text

from opsconsole.cli.asking import look, require_inventory
from opsconsole.cli.progress import bar
from opsconsole.cli.tables import output, print_table
from opsconsole.cli.usage import lasting_ms, whole
from opsconsole.config.inventory import current_user
from opsconsole.config.snapshot import read_snapshot
from opsconsole.errors import UsageError
from opsconsole.forecasting.futures import Question, all_futures
from opsconsole.forecasting.reading import Typed, read_draft
from opsconsole.forecasting.report import as_json
from opsconsole.forecasting.telling import costs, sentences, tables
from scheduler_core.state import ClusterState
from scheduler_core.units import DAY

MOST_FUTURES, MOST_WORKERS, LONGEST_MS = 10_000, 4096, 30 * DAY
CANCELLED = 130


def run(args: argparse.Namespace) -> int:
    """Exit status 2 for what is wrong with the words or the snapshot, 130 where Ctrl-C ended it."""
    horizon_ms = lasting_ms("--horizon", args.horizon)
    if horizon_ms > LONGEST_MS:
        raise UsageError(f"--horizon: {args.horizon} is longer than 30d")
    futures, workers = whole("--futures", args.futures, MOST_FUTURES), whole("--workers", args.workers, MOST_WORKERS)
    state, as_of_ms = _state(args)
    typed = Typed(args.sets, args.drain, args.remove, args.add_hosts, args.submit, current_user())
    question = Question(state, read_draft(typed, state), horizon_ms, futures, args.seed)
    try:
        with bar("looking ahead") as progress:
            lived = all_futures(question, workers or os.cpu_count() or 1, progress)
    except KeyboardInterrupt:
        print("opsconsole: cancelled; there is no forecast", file=sys.stderr)
        return CANCELLED
    data = as_json(question, lived, as_of_ms)
    if args.json:
        print(json.dumps(data, indent=2))
    else:
        _print(data)
    return 0


def _state(args: argparse.Namespace) -> tuple[ClusterState, int]:
    """The state, and what the clock on the wall said. Raises OpsConsoleError."""
    if args.snapshot is not None:
        state = read_snapshot(args.snapshot)
        return state, state.now
    _, view = look(args)
    require_inventory(view)
    return view.state, view.wall_ms


def _print(data: dict[str, object]) -> None:
    console = output()
    for sentence in (*sentences(data), *costs(data)):
        console.print(Text(sentence))
    for view in tables(data):
        console.print()
        console.print(Text(view.title, style="bold"))
        print_table(view, console)
