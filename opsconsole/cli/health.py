"""`opsconsole health`: how hosts are, and how that is known; for people who write rules, what follows from a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping

from rich.text import Text

from opsconsole.cli.tables import output, print_json, print_table
from opsconsole.clock import wall_now_ms
from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import find_inventory, read_inventory
from opsconsole.config.yamlio import read_named
from opsconsole.errors import UsageError
from opsconsole.faultbook import FAULTS
from opsconsole.health.incidents import incidents_in
from opsconsole.health.rules import Rules, builtin_rules
from opsconsole.health.smi import MOST_BYTES, read_output
from opsconsole.health.verdict import Verdict, judge
from opsconsole.health.watching import Watch
from opsconsole.presenting import health as shown
from opsconsole.presenting.rows import TableView
from opsconsole.presenting.verdicts import MARKS


def run(args: argparse.Namespace) -> int:
    """The first word is a host, unless it is one of these."""
    words: Mapping[str, Callable[[argparse.Namespace], int]] = {
        "rules": rules,
        "lemons": lemons,
        "test": test,
        "parse-smi": parse_smi,
    }
    if args.what in ("test", "parse-smi") and args.file is None:
        raise UsageError(f"health {args.what} needs a FILE", advice="- reads standard input")
    if args.what not in ("test", "parse-smi") and args.file is not None:
        raise UsageError(
            f"health {args.what} takes no FILE", advice="a file is for `health test` and `health parse-smi`"
        )
    return words.get(args.what, hosts)(args)


def parse_smi(args: argparse.Namespace) -> int:
    """Any output of nvidia-smi as JSON; what it says of failures is content, not a failure of this command."""
    _, raw = read_named(args.file, MOST_BYTES)
    print(json.dumps(read_output(raw, _fields(args)).as_json(), indent=2))
    return 0


def rules(args: argparse.Namespace) -> int:
    return _show(args, shown.rules_table(_rules(args)))


def lemons(args: argparse.Namespace) -> int:
    """Cards and slots that broke, from what leaders have kept."""
    from opsconsole.cli.wiring import Place
    from opsconsole.health.lemon import lemons as scored
    from opsconsole.health.lemon import read_book

    now_ms = wall_now_ms()
    book = read_book(Place.of(args).open_store(read_only=True).get(FAULTS))
    return _show(args, shown.lemons_table(scored(book, now_ms), now_ms))


def _show(args: argparse.Namespace, table: TableView) -> int:
    if args.json:
        print_json(table.rows)
    else:
        print_table(table)
    return 0


def test(args: argparse.Namespace) -> int:
    """What follows from a file. Of several readings each is looked at in its turn, and the last verdict is told."""
    from opsconsole.health.given import moments

    name, raw = read_named(args.file, MOST_BYTES)
    try:
        given = moments(raw, _fields(args))
    except ValueError as error:
        raise UsageError(f"{name} {error}".replace("; ", "\n  ", 1)) from None
    table, watch = _rules(args), Watch() if len(given) > 1 else None
    found = [judge(moment.said, table, watch, moment.at_s) for moment in given][-1]
    return _one(args, None, found)


def hosts(args: argparse.Namespace) -> int:
    """All of them, or one with its evidence."""
    from opsconsole.cli.asking import look

    _, view = look(args)
    found = shown.verdicts(view)
    if args.what is not None:
        if args.what not in found:
            known = ", ".join([*found][:5])
            raise UsageError(f"no host is called {args.what!r}", advice=f"hosts are {known}{' …' * (len(found) > 5)}")
        return _one(args, args.what, found[args.what])
    incidents = incidents_in(view.state, found)
    rows = shown.verdicts_table(found)
    if args.json:
        data = {"hosts": [row.data for row in rows.rows], "incidents": list(map(shown.incident_data, incidents))}
        print(json.dumps(data, indent=2))
        return 0
    print_table(rows)
    for line in shown.incident_lines(incidents):
        output().print(Text(line))
    if view.leader == "nobody":
        print("Nobody leads this cluster: readings are as old as its last leader.", file=sys.stderr)
    return 0


def _one(args: argparse.Namespace, host: str | None, verdict: Verdict) -> int:
    if args.json:
        print(json.dumps({"host": host, **shown.verdict_data(verdict)}, indent=2))
        return 0
    console = output()
    console.print(Text.assemble(f"{host}: " if host else "", MARKS[verdict.status].text))
    if verdict.findings:
        print_table(shown.findings_table(verdict), console)
    for line in shown.evidence_lines(verdict) or ["nothing speaks against it"]:
        console.print(Text(line))
    return 0


def _fields(args: argparse.Namespace) -> list[str] | None:
    return [name.strip() for name in args.fields.split(",")] if args.fields else None


def _rules(args: argparse.Namespace) -> Rules:
    """The site's, where there is an inventory; one that is named must be good."""
    try:
        path = find_inventory(args.inventory)
    except ConfigError:
        return builtin_rules()
    return read_inventory(path).health.rules
