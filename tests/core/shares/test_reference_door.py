"""`python -m tests.reference_cases FILE…`: what it prints and how it ends; the shared cases, where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.reference_cases.__main__ import failure, main, read

SHARED = Path(__file__).parents[4] / "shared" / "cases" / "fair_share.json"


def case(name: str, remaining: float) -> dict[str, Any]:
    queue = {"id": "q", "deserved": 3, "over_quota_weight": 0, "request": 2.25, "limit": -1}
    return {
        "id": name,
        "kind": "fair_share",
        "total": 3,
        "k": 0,
        "queues": [queue],
        "expected": {"fair_share": {"q": 2.25}, "remaining": remaining},
    }


def file(tmp_path: Path, *cases: dict[str, Any]) -> str:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"conventions": [], "cases": cases}))
    return str(path)


def test_all_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([file(tmp_path, case("x-1", 0.75), case("x-2", 0.75))]) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed\n"


def test_a_line_says_what_differs_and_only_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([file(tmp_path, case("x-1", 0.75), case("x-2", 0.76))]) == 1
    assert capsys.readouterr().out == "x-2: expected {remaining: 0.76}, got {remaining: 3/4}\n1 passed, 1 failed\n"


def test_a_case_that_lacks_a_field_fails_and_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lacking = {key: value for key, value in case("x-1", 0).items() if key != "total"}
    assert main([file(tmp_path, lacking)]) == 1
    assert "x-1: expected an answer, got a case of kind fair_share without 'total'" in capsys.readouterr().out


def consolidation(**expected: str) -> dict[str, Any]:
    """Two equal jobs on two equal nodes: either may move to make room for the third."""
    rows = [{"name": f"old{n}", "queue": "q", "gpus": 2, "node": f"node{n}", "priority": 50} for n in (0, 1)]
    return {
        "id": "x-1",
        "kind": "scheduler_action",
        "action": "consolidation",
        "nodes": {"node0": 4, "node1": 4},
        "queues": [{"id": "q", "deserved": 2, "over_quota_weight": 0}],
        "running": rows,
        "pending": [{"name": "new", "queue": "q", "gpus": 3, "node": None, "priority": 50}],
        "expected": {"new": "placed after release", "all others": "running", **expected},
    }


@pytest.mark.parametrize(
    "expected", [{"old0": "moved"}, {"old1": "moved"}, {"old0": "moved to node1"}, {"old1": "moved to node0"}]
)
def test_where_jobs_and_nodes_are_alike_any_of_them_may_be_the_one(expected: dict[str, str]) -> None:
    assert failure(consolidation(**expected)) is None


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        ({}, "expected {old1: running}, got {old1: moved}"),
        ({"old0": "moved to node0", "old1": "moved"}, "expected {old0: moved on node0}, got {old0: running on node0}"),
        ({"old0": "gone"}, "old0 is expected to be 'gone': no such fate is known"),
    ],
)
def test_what_no_symmetry_explains_fails(expected: dict[str, str], why: str) -> None:
    assert why in str(failure(consolidation(**expected)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(None, "cannot be read", id="not there"),
        pytest.param("{", "not JSON", id="not JSON"),
        pytest.param("[" * 100_000, "not JSON", id="nested without end"),
        pytest.param('{"cases": [{"id": 1, "kind": []}]}', "unknown kind: [] (1)", id="a kind that is no word"),
        pytest.param('{"cases": [{"id": "x"}]}', "each with `id` and `kind`", id="not a file of cases"),
        pytest.param('{"cases": [{"id": "x-9", "kind": "lottery"}]}', "unknown kind: lottery (x-9)", id="unknown kind"),
    ],
)
def test_what_cannot_be_run_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, why: str
) -> None:
    path = tmp_path / "cases.json"
    if text is not None:
        path.write_text(text)
    assert main([str(path)]) == 2
    told = capsys.readouterr()
    assert why in told.err and str(path) in told.err and not told.out


@pytest.mark.skipif(not SHARED.exists(), reason="the shared cases are not beside this checkout")
def test_every_shared_case() -> None:
    assert [(row["id"], why) for row in read(SHARED) if (why := failure(row))] == []
