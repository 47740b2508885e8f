"""`python -m tests.reference_cases FILE…`: a line for each case that fails, then `N passed, N failed`.

Exit status: 1 when a case failed; 2 when a file cannot be read or holds a kind of case that is not known (none is run).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from scheduler_core.errors import SchedulerCoreError
from tests.reference_cases.answers import Case
from tests.reference_cases.kinds import KINDS


class Unreadable(Exception):
    """A file is no file of cases, or has a kind that nobody knows: one sentence for people."""


def read(file: Path) -> list[Case]:
    try:
        whole = json.loads(file.read_bytes(), parse_float=Decimal)
    except OSError as error:
        raise Unreadable(f"{file}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{file}: not JSON: {error}") from None
    cases = whole.get("cases") if isinstance(whole, dict) else None
    if not isinstance(cases, list) or not all(isinstance(c, dict) and {"id", "kind"} <= c.keys() for c in cases):
        raise Unreadable(f"{file}: not a file of cases: it needs a list `cases`, each with `id` and `kind`")
    if unknown := sorted({f"{c['kind']} ({c['id']})" for c in cases if str(c["kind"]) not in KINDS}):
        raise Unreadable(f"{file}: unknown kind: {', '.join(unknown)}; known are {', '.join(KINDS)}")
    return cases


def failure(case: Case) -> str | None:
    """What is wrong with the answer to a case; None when it is right."""
    try:
        answer = KINDS[case["kind"]](case)
        return None if answer.right else answer.line
    except KeyError as error:
        return f"expected an answer, got a case of kind {case['kind']} without {error}"
    except (ArithmeticError, AttributeError, TypeError, ValueError, SchedulerCoreError) as error:
        return f"expected an answer, got {type(error).__name__}: {error}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reference_cases", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    files = parser.parse_args(arguments).files
    try:
        cases = [case for file in files for case in read(file)]
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 2
    failures = [(case["id"], why) for case in cases if (why := failure(case)) is not None]
    for name, why in failures:
        print(f"{name}: {why}")
    print(f"{len(cases) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
