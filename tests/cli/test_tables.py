"""Tables on narrow terminals and in pipes: a line for each row, nothing lost, no towers of letters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opsconsole.cli import main
from scheduler_core.ids import HostName
from scheduler_core.observations import HostUnreachable
from tests.cli.told import Told, told
from tests.core.clusters import MIN, Cluster
from tests.ui.worlds import probe

KEY_CHANGED = "host key changed: it shows SHA256:Jk2lvkY4f1rZrbXXmJqBBv1WZrWq2bJk2lvkY4f1"


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    """Two hosts that cannot be reached, one with a broken GPU, long names, and some who wait."""
    c = Cluster({"olmo": 3, "vision": 1}, {f"gpu{n:02}": 8 for n in range(1, 7)})
    c.running("train", "vision", 8, 30 * MIN, resumable=True, name="resnet-152-imagenet21k", owner="annabelle")
    c.running("second", "vision", 8, 90 * MIN)
    for n in range(3):
        c.submit(f"w-{n}9af3{n}", "olmo", 24, 30 * MIN, name=f"olmo-7b-run-{n}", owner="kim")
    c.see(
        HostUnreachable(HostName("gpu04"), "refused: 127.0.0.2 port 2299"),
        HostUnreachable(HostName("gpu03"), KEY_CHANGED),
    )
    return told(tmp_path, c, {"gpu01": probe(8), "gpu02": probe(8, failed=3)})


def lines_of(said: str) -> list[str]:
    return [line for line in re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines() if "Nobody leads" not in line]


@pytest.mark.parametrize("words", ["hosts", "queue", "runs --all", "budgets"])
@pytest.mark.parametrize("columns", [50, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_row_is_a_tower(cluster: Told, words: str, columns: int) -> None:
    lines = lines_of(cluster.shown(*words.split(), columns=columns))
    assert all(len(line) <= columns for line in lines)
    rows = [line for line in lines if not line.startswith("    ")]
    piped = [line for line in lines_of(cluster.run(*words.split())) if not line.startswith("    ")]
    assert len(rows) == len(piped), "a line for each row"


def test_what_has_no_room_stands_whole_below_its_row(cluster: Told) -> None:
    lines = lines_of(cluster.shown("hosts"))
    at = next(n for n, line in enumerate(lines) if line.startswith("gpu03"))
    assert " ".join(line.strip() for line in lines[at + 1 : at + 3]).startswith(f"FRESH: ✖ {KEY_CHANGED}")
    queue = lines_of(cluster.shown("queue"))
    assert "WHY" not in queue[0], "a column that every row would cut stands below altogether"
    assert [line for line in queue if line.startswith("    WHY: waiting for protected runs")]


def test_in_a_pipe_a_row_is_a_line(cluster: Told) -> None:
    lines = lines_of(cluster.run("hosts"))
    (row,) = [line for line in lines if line.startswith("gpu03")]
    assert KEY_CHANGED in row and row.endswith("serving") and not any(line.startswith(" ") for line in lines)


def test_hosts_say_what_is_wrong(cluster: Told) -> None:
    assert "gpu02: GPU 3: does not answer: GPU is lost" in lines_of(cluster.shown("hosts"))


def test_a_plan_is_lines_and_says_when_nothing_happens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "docs/examples/three-teams.yaml"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"hold +parser +13:30Z +waiting for protected runs", said) and "│" not in said
    path = tmp_path / "empty.yaml"
    path.write_text("now: 2026-11-30T12:00:00Z\nhosts: [{name: h, gpus: 8}]\nbudgets: [{name: a}]\nworkloads: []\n")
    assert main(["plan", str(path)]) == 0
    assert capsys.readouterr().out.endswith("nothing happens: nobody waits, and nothing has to stop\n")


def test_finished_runs_stand_below_the_running_ones_the_newest_first(tmp_path: Path) -> None:
    c = Cluster()
    for name in ("first", "second"):
        c.running(name, gpus=1)
        c.later(MIN)
        c.finish(name)
    c.running("now", gpus=1)
    assert [row["workload"] for row in told(tmp_path, c).json("runs", "--all")] == ["now", "second", "first"]


def test_a_filter_lets_rows_through_for_people_and_for_scripts(cluster: Told) -> None:
    assert [row["host"] for row in cluster.json("hosts", "--filter", "fresh=lost")] == ["gpu03", "gpu04"]
    assert [row["host"] for row in cluster.json("hosts", "--filter", '"host key" !gpu04')] == ["gpu03"]
    assert [row["name"] for row in cluster.json("queue", "--filter", "gpus>=8 workload~run-[12]$")] == [
        "olmo-7b-run-1",
        "olmo-7b-run-2",
    ]
    assert [row["budget"] for row in cluster.json("budgets", "--filter", "weight>1")] == ["olmo"]
    assert len(lines_of(cluster.run("runs", "--filter", "run=second"))) == 2
    assert "none of 2 passes the filter gpus>24" in cluster.run("queue", "--filter", "gpus>24")


def test_a_filter_that_is_not_understood_says_where_and_what_there_is(cluster: Told) -> None:
    said = cluster.run("queue", "--filter", "olmo gpsu>8", status=2)
    assert "--filter, at character 6: gpsu>8: no column 'gpsu'; did you mean gpus?" in said
