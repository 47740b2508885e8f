"""`opsconsole handover`: what happened, what is open and whose it is, for whoever comes next."""

from __future__ import annotations

import argparse
import json

from opsconsole.cli.asking import look
from opsconsole.cli.history import told_since
from opsconsole.cli.usage import span_ms
from opsconsole.presenting.handover import handover


def run(args: argparse.Namespace) -> int:
    """Markdown on the standard output, or with --json the same as data."""
    span = span_ms("--since", args.since)
    runtime, view = look(args)
    happenings, since_ms = told_since(runtime.store, view.wall_ms - span)
    found = handover(view, happenings, since_ms)
    print(json.dumps(found.data(), indent=2) if args.json else found.markdown(), end="\n" if args.json else "")
    return 0
