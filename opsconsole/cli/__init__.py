"""The command line: arguments to wiring. The composition root of the console and the headless leader."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opsconsole.errors import OpsConsoleError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Exit status 0, 1 for failure, 2 for usage and input, 130 for Ctrl-C; never a traceback."""
    from opsconsole.cli import streams
    from opsconsole.errors import OpsConsoleError

    streams.prepare()
    try:
        return _run(argv)
    except OpsConsoleError as error:
        return _say(error)
    except BrokenPipeError:  # `opsconsole events | head`
        streams.silence(sys.stdout)
        return 0
    except OSError as error:
        said = streams.not_written(error)
        return _say(said) if said is not None else _defect(error)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # a defect: the person gets one line, the developers a file
        return _defect(error)


def _run(argv: Sequence[str] | None) -> int:
    from opsconsole.memory import all_to_stay

    try:
        with all_to_stay():
            from opsconsole.cli.parser import build_parser, runner
            from opsconsole.cli.usage import parse

            args = parse(build_parser(), argv)
            run = runner(args)
        return run(args)
    finally:
        sys.stdout.flush()  # here, where a reader that left and a full disk are told apart from defects


def _say(error: OpsConsoleError) -> int:
    print(f"{error.speaker}{error}", file=sys.stderr)
    return error.exit_code


def _defect(error: Exception) -> int:
    """Writes the traceback where it can be sent from, and says where."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="opsconsole-defect-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    what = traceback.format_exception_only(error)[-1].strip()
    print(f"opsconsole: a defect of opsconsole: {what}\n  please report it with {file.name}", file=sys.stderr)
    return 1
