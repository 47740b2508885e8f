"""kill -9 of the leader at every write point of a scenario, then another leader (G2-18)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

POINTS = 90  # more than the scenario has, so that none is left out


@pytest.mark.timeout(300)
def test_a_kill_at_any_write_point_loses_nothing(tmp_path: Path) -> None:
    """Each point with a store and hosts of its own. What is checked stands in `rig.problems`."""
    words = [sys.executable, "-m", "tests.runtime.crashlab", str(tmp_path), "1", str(POINTS + 1)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == POINTS, done.stderr
    assert not [result for result in results if result["wrong"]], done.stderr
    assert sum(result["killed"] for result in results) >= 40, "the scenario has become too short to show anything"
    assert not results[-1]["killed"], f"the scenario has more than {POINTS} write points"
