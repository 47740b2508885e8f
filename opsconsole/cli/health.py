"""`opsconsole health`: how hosts are, and how outputs and logs are read, for people who write rules."""

from __future__ import annotations

import argparse
import json

from opsconsole.config.yamlio import read_named
from opsconsole.errors import UsageError
from opsconsole.health.smi import MOST_BYTES, read_output

WANTS_FILE = ("parse-smi",)


def run(args: argparse.Namespace) -> int:
    if args.what in WANTS_FILE and args.file is None:
        raise UsageError(f"health {args.what} needs a FILE", advice="- reads standard input")
    if args.what == "parse-smi":
        return parse_smi(args)
    raise UsageError("not there yet")


def parse_smi(args: argparse.Namespace) -> int:
    """Any output of nvidia-smi as JSON; what it says of failures is content, not a failure of this command."""
    _, raw = read_named(args.file, MOST_BYTES)
    asked = [name.strip() for name in args.fields.split(",")] if args.fields else None
    print(json.dumps(read_output(raw, asked).as_json(), indent=2))
    return 0
