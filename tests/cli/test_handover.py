"""`opsconsole handover` on a real store: from its journal, for people and for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import By, DrainRequested
from tests.cli.told import Told, told
from tests.core.clusters import MIN, Remembered


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    c = Remembered({"olmo": 3, "vision": 1}, {"gpu01": 8, "gpu02": 8})
    c.running("train", "vision", 8, 30 * MIN, owner="maria", max_retries=0)
    c.finish("train", 3)
    c.running("eval", "olmo", 8, 30 * MIN, owner="ada")
    c.see(DrainRequested(DrainId("d1"), HostName("gpu01"), By("kim", "fan change")))
    return told(tmp_path, c)


def test_what_stands_in_it(cluster: Told) -> None:
    said = cluster.run("handover")
    assert said.startswith("# Handover of main\n") and "2 workloads submitted, 2 runs started, 1 failed" in said
    assert "**train\\~1**: exit status 3 on gpu" in said and "Asked for by kim: fan change" in said


def test_for_scripts(cluster: Told) -> None:
    found = cluster.json("handover", "--since", "2h")
    assert [entry["about"] for entry in found["runs_failed"]] == ["train~1"]
    assert found["runs_failed"][0]["owner"] == "maria"
    assert found["until_ms"] - found["since_ms"] == 2 * 60 * MIN


def test_a_span_that_is_none_is_refused(cluster: Told) -> None:
    said = cluster.run("handover", "--since", "yesterday", status=2)
    assert said.startswith("opsconsole: --since: 'yesterday' is no span of time")
