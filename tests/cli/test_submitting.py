"""`opsconsole submit` shows what would come of it, and asks, as every action does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opsconsole.store.store import Store
from tests.cli.told import Told, told
from tests.core.clusters import MIN, Cluster
from tests.terminal import on_terminal

SUBMIT = ("submit", "--budget", "a", "--gpus", "4", "--min-runtime", "30m", "--name", "hello")
COMMAND = ("--", "python", "train.py", "--resume")


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    c = Cluster()
    c.running("busy", "b", 4, 90 * MIN)
    return told(tmp_path, c)


def test_its_plan_says_where_it_would_start(cluster: Told) -> None:
    said = cluster.run(*SUBMIT, "--dry-run", *COMMAND)
    assert "Submit hello hello-" in said and "to a\n" in said
    assert "h1:4" in said and "free GPUs" in said
    assert "4 GPUs, min runtime 30m\nruns python train.py --resume\n" in said


def test_its_plan_says_why_it_would_wait(cluster: Told) -> None:
    found = json.loads(cluster.run(*SUBMIT, "--gpus", "8", "--dry-run", "--json", *COMMAND))
    (decision,) = found["decisions"]
    assert found["outcome"] == "dry run" and decision["kind"] == "hold"
    assert decision["reason"].startswith("waiting for protected runs")


def test_it_asks_and_goes_nowhere_without_an_answer(cluster: Told) -> None:
    with on_terminal(cluster, *SUBMIT, *COMMAND) as terminal:
        terminal.until("Type yes to submit hello-")
        assert "h1:4" in terminal.said
        terminal.type("\x03")
        assert terminal.ended() == 130
    assert terminal.said.endswith("opsconsole: not confirmed; nothing was done\n")
    assert "say --yes where nobody can be asked" in cluster.run(*SUBMIT, *COMMAND, status=2)


def test_all_that_is_wrong_is_said_at_once(cluster: Told) -> None:
    said = cluster.run("submit", "--budget", "aa", "--gpus", "x", "--hosts", "y", "--need", "z", "--", "t", status=2)
    assert len(said.splitlines()) == 4
    assert all(line.startswith("submit: --") for line in said.splitlines())


def test_a_store_that_no_leader_has_begun_is_said_and_not_its_lack_of_budgets(tmp_path: Path) -> None:
    cluster = told(tmp_path, Cluster())
    path = next(tmp_path.glob("**/*.db"))
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    Store(path).close()
    said = cluster.run(*SUBMIT, *COMMAND, status=1)
    assert "the store of main has no inventory yet: nobody has led this cluster" in said
    assert "opsconsole serve" in said and "budget" not in said


def test_no_program_is_refused_before_a_host_has_to(cluster: Told) -> None:
    said = cluster.run(*SUBMIT, "--checkpoint", "", "--dry-run", "--", "", status=2)
    assert "submit: CMD: names no program" in said and "submit: --checkpoint: names no program" in said


def test_an_id_is_never_like_an_option(cluster: Told) -> None:
    found = json.loads(cluster.run(*SUBMIT, "--name=--evil", "--dry-run", "--json", *COMMAND))
    assert found["id"].startswith("evil-")
