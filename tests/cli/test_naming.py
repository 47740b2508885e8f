"""Workloads are named by ids, by runs, and by names that one live workload alone has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.told import Told, told
from tests.core.clusters import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    """`loop` runs; two called `twin` run; one called `gone` has ended."""
    c = Cluster()
    c.running("loop-1a", gpus=1, name="loop")
    c.running("twin-1a", gpus=1, name="twin")
    c.running("twin-1b", gpus=1, name="twin")
    c.running("gone-1a", gpus=1, name="gone")
    c.finish("gone-1a")
    return told(tmp_path, c)


@pytest.mark.parametrize("word", ["loop-1a", "loop-1a~1", "loop", "loop~1"])
def test_one_workload_has_many_names(cluster: Told, word: str) -> None:
    assert cluster.json("cancel", word, "--dry-run")["targets"] == ["loop-1a"]
    assert "loop loop-1a of nobody" in cluster.run("explain", word).splitlines()[0]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("twin", "2 live workloads are called 'twin'; say which one: twin-1"),
        ("gone", "no live workload is called 'gone'; say which one: gone-1a"),
        ("lopp", "no workload 'lopp'"),
    ],
)
def test_what_names_nothing_or_several_is_told(cluster: Told, word: str, said: str) -> None:
    assert said in cluster.run("cancel", word, "--dry-run", status=2)
    assert said in cluster.run("logs", word, status=2)
    assert said.partition("; ")[0] in cluster.run("explain", word, status=2)
    both = cluster.run("cancel", word, "nosuch", "--dry-run", status=2)
    assert said in both and "no workload 'nosuch'" in both
