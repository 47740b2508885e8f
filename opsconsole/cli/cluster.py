"""Commands on the cluster as a whole."""

from __future__ import annotations

import argparse
import json

from rich.text import Text

from opsconsole.cli.acting import act
from opsconsole.cli.asking import look
from opsconsole.cli.tables import output, print_table
from opsconsole.presenting.breaker import breaker_figures, breaker_lines, breaker_table, plan_breaker_reset


def breaker(args: argparse.Namespace) -> int:
    """What the breaker stopped, or its reset."""
    if args.what == "reset":
        return act(args, (), lambda view, _: plan_breaker_reset(view), ended="reset")
    _, view = look(args)
    table = breaker_table(view)
    if args.json:
        held_back = [row.data for row in table.rows]
        print(json.dumps({"held_back": held_back, **breaker_figures(view)}, indent=2))
        return 0
    print_table(table)
    for line in breaker_lines(view):
        output().print(Text(line))
    return 0
