"""The command line: arguments to wiring. The composition root of the console and the headless leader."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Exit status 0, 1 for failure, 2 for usage and input, 130 for Ctrl-C; never a traceback."""
    from opsconsole.cli.parser import build_parser, runner
    from opsconsole.errors import OpsConsoleError

    args = build_parser().parse_args(argv)
    try:
        return runner(args)(args)
    except OpsConsoleError as error:
        print(f"opsconsole: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `opsconsole events | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
