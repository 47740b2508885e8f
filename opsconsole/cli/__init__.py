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
    except Exception as error:  # a defect: the person gets one line, the developers a file
        return _defect(error)


def _defect(error: Exception) -> int:
    """Writes the traceback where it can be sent from, and says where."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="opsconsole-defect-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    what = traceback.format_exception_only(error)[-1].strip()
    print(f"opsconsole: a defect of opsconsole: {what}\n  please report it with {file.name}", file=sys.stderr)
    return 1
