"""`opsconsole handover`: what happened, what is open and whose it is, for whoever comes next."""

from __future__ import annotations

import argparse
import json

from opsconsole.cli.asking import look
from opsconsole.errors import UsageError
from opsconsole.ports import ClusterStore
from opsconsole.presenting.handover import TOLD, handover
from opsconsole.presenting.view import Happening
from opsconsole.spans import parse_span_ms

ROWS = 200_000  # of the journal, the newest: what is older is not looked at


def run(args: argparse.Namespace) -> int:
    """Markdown on the standard output, or with --json the same as data."""
    try:
        span_ms = parse_span_ms(args.since)
    except ValueError as error:
        raise UsageError(f"--since: {error}") from error
    runtime, view = look(args)
    happenings, since_ms = told_since(runtime.store, view.wall_ms - span_ms)
    found = handover(view, happenings, since_ms)
    print(json.dumps(found.data(), indent=2) if args.json else found.markdown(), end="\n" if args.json else "")
    return 0


def told_since(store: ClusterStore, since_ms: int) -> tuple[list[Happening], int]:
    """What a handover tells of, since an instant of the wall clock; and since when that is all there was."""
    events = store.since(since_ms, ROWS)
    told = [Happening(e.seq, e.wall_ms, e.kind, e.value) for e in events if e.kind in TOLD]
    return told, events[0].wall_ms if len(events) == ROWS else since_ms
