"""`opsconsole explain` on a real store: every kind with its figures, and what only the journal remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.observations import CancelRequested
from scheduler_core.units import HOUR
from tests.cli.told import Told, told
from tests.core.clusters import MIN, OPS, PASS, Remembered


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    """A day after a preemption."""
    c = Remembered({"olmo": 3, "vision": 1}, {"gpu01": 8, "gpu02": 8})
    c.running("old", "vision", 16, 30 * MIN, owner="maria", name="resnet", resumable=True)
    c.later(HOUR)
    c.submit("claim", "olmo", 8, HOUR, owner="ada")
    c.finish("old", 143, signalled=True)
    c.see(CancelRequested(c.workload("old").workload.id, OPS))
    c.later(PASS)
    c.start("claim")
    c.later(25 * HOUR)
    c.submit("waits", "vision", 8, HOUR, owner="tom")
    return told(tmp_path, c)


@pytest.mark.parametrize(
    ("name", "kind", "figure"),
    [
        ("gpu01", "host", "free"),
        ("vision", "budget", "levels"),
        ("waits", "workload", "phase"),
        ("claim~1", "run", "stop"),
    ],
)
def test_every_kind_has_its_figures(cluster: Told, name: str, kind: str, figure: str) -> None:
    found = cluster.json("explain", name)
    assert found["kind"] == kind and found["id"] == name and found["lines"] and figure in found["figures"]


@pytest.mark.parametrize("name", ["old~1", "old"])
def test_the_grounds_of_a_preemption_are_kept_in_the_journal(cluster: Told, name: str) -> None:
    said = cluster.run("explain", name)
    assert said.startswith(f"{name} is over and forgotten; the journal tells:\n")
    assert "for claim: olmo has got 0.00 of its share and vision" in said
    assert "At that moment olmo stood 1st among its siblings" in said
    found = cluster.json("explain", name)
    assert found["kind"] == "past" and found["figures"]["stops"][0]["for"] == "claim"


def test_what_never_was_is_refused(cluster: Told) -> None:
    assert "no workload 'never'" in cluster.run("explain", "never", status=2)
