"""docs/policy.md: every example is planned, and what the page says of it is what comes of it.

With OPSCONSOLE_UPDATE_SNAPSHOTS=1 the tables are written anew: read the difference in git.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from opsconsole.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "policy.md"
EXAMPLES = sorted((DOCS / "examples/rules").glob("*.yaml"))


def table(report: dict[str, Any]) -> str:
    """The decisions of a pass; where there are none, the balances."""
    rows: list[tuple[str, ...]]
    if not report["decisions"]:
        rows = [(f"`{row['budget']}`", number(row["balance"]), str(row["rank"])) for row in report["order"]]
        return lines(("budget", "balance", "rank among its siblings"), rows)
    rows = [(d["kind"], f"`{d['workload']}`", where(d), d["reason"]) for d in report["decisions"]]
    return lines(("decision", "workload", "GPUs", "because"), rows)


def lines(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ("---",) * len(head), *rows))


def number(balance: float | None) -> str:
    return "–" if balance is None else f"{balance:.2f}"


def where(decision: dict[str, Any]) -> str:
    gpus = " ".join(f"{host}:{count}" for host, count in decision["hosts"].items())
    until = (decision["until"] or "").partition("T")[2]
    return " ".join(filter(None, (gpus, until and f"at {until}")))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_happens_as_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--json", str(file)]) == 0
    happens = table(json.loads(capsys.readouterr().out))
    text = PAGE.read_text()
    told = re.search(rf"\(examples/rules/{file.name}\):\n\n((?:\|.*\n)+)", text)
    assert told is not None, f"{PAGE.name} does not tell of {file.name}"
    if os.environ.get("OPSCONSOLE_UPDATE_SNAPSHOTS"):
        PAGE.write_text(text[: told.start(1)] + happens + text[told.end(1) :])
    else:
        assert told[1] == happens


def test_every_rule_is_told_in_order() -> None:
    told = [
        int(word)
        for words in re.findall(r"^\*\*([\d and]+)\. ", PAGE.read_text(), re.M)
        for word in words.split(" and ")
    ]
    assert sorted(told) == list(range(1, 32))
