"""Faults that other schedulers had (field_reports.json, G2-25 and G7-17): one file, one plan, wherever it is made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opsconsole.cli import main
from opsconsole.config.snapshot_out import write_snapshot
from scheduler_core.sim.scenario import Scenario

EXAMPLE = Path(__file__).parents[2] / "docs/examples/three-teams.yaml"
MACHINES = (
    {"PYTHONHASHSEED": "0", "TZ": "UTC"},
    {"PYTHONHASHSEED": "1", "TZ": "Europe/Berlin", "LC_ALL": "tr_TR.UTF-8"},
    {"PYTHONHASHSEED": "4711", "TZ": "Australia/Lord_Howe", "LC_ALL": "C"},
)


@pytest.mark.parametrize("seed", [700, 701])
def test_a_plan_is_the_same_on_every_machine_and_changes_nothing(seed: int, tmp_path: Path) -> None:
    """G7-17: other hash seeds, zones and locales; the file is only read, and nothing is left beside it."""
    scenario = Scenario(seed)
    scenario.run(400)
    file = tmp_path / "s.yaml"
    file.write_text(text := write_snapshot(scenario.engine.state))
    plans = []
    for machine in MACHINES:
        argv = [sys.executable, "-m", "opsconsole", "plan", "--json", str(file)]
        home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        plans.append(subprocess.run(argv, env={**home, **machine}, capture_output=True, check=True).stdout)
    assert plans[0] == plans[1] == plans[2] and json.loads(plans[0])["decisions"]
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"] and file.read_text() == text


@pytest.fixture
def zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    yield ("UTC", "Europe/Berlin", "Australia/Lord_Howe")
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "now", ["2026-03-29T00:30:00Z", "2026-10-25T00:30:00Z", "2026-04-04T14:30:00Z", "2026-10-03T15:00:00Z"]
)
def test_clock_changes_move_no_instant(
    now: str,
    zones: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """G2-25: a window is seven times 86,400 seconds, and a protection ends when it has run, not at a time of day."""
    file = tmp_path / "s.yaml"
    file.write_text(EXAMPLE.read_text().replace("2026-11-30T12:00:00Z", now))
    plans = []
    for zone in zones:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert main(["plan", "--json", str(file)]) == 0
        plans.append(json.loads(capsys.readouterr().out))
    assert plans[0] == plans[1] == plans[2]
    assert [f"{row['balance']:.2f}" for row in plans[0]["order"]] == ["0.22", "0.45", "1.34"]
    (until,) = [d["until"] for d in plans[0]["decisions"] if d["until"]]
    assert int(until[11:13]) * 60 + int(until[14:16]) - int(now[11:13]) * 60 - int(now[14:16]) == 90
