"""Questions on a terminal: no answer, or another than the one asked for, does nothing and says so at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.told import Told, told
from tests.core.clusters import Cluster
from tests.terminal import on_terminal

CTRL_C, CTRL_D = "\x03", "\x04"


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    return told(tmp_path, Cluster(hosts={"h1": 8, "h2": 8}))


@pytest.mark.parametrize(("typed", "status"), [(CTRL_C, 130), (CTRL_D, 1), ("no\n", 1), ("yes\n", 1), ("\n", 1)])
def test_an_action_that_is_not_confirmed_does_nothing(cluster: Told, typed: str, status: int) -> None:
    with on_terminal(cluster, "drain", "h[1-2]", "--reason", "x") as terminal:
        terminal.until("Type 2 to drain h1, h2: ")
        terminal.type(typed)
        assert terminal.ended() == status
    assert terminal.said.endswith("opsconsole: not confirmed; nothing was done\n")
    assert "defect" not in terminal.said


def test_without_a_terminal_only_yes_will_do(cluster: Told) -> None:
    said = cluster.run("cordon", "h1", "--reason", "x", status=2)
    assert "not confirmed; nothing was done\n  say --yes where nobody can be asked" in said


def test_while_somebody_is_asked_others_hear_of_the_plan(cluster: Told) -> None:
    look = ("cordon", "h1", "--reason", "x", "--dry-run")
    with on_terminal(cluster, "drain", "h1", "--reason", "x") as terminal:
        terminal.until("Type yes to drain h1: ")
        said = cluster.shown(*look)
        assert "has a plan open since" in said and ": drain h1" in said
        terminal.type("no\n")
        assert terminal.ended() == 1
    assert "has a plan open" not in cluster.shown(*look)
