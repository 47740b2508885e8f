"""`opsconsole simulate` as people type it: reports, files, refusals, and how it ends early."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opsconsole.cli import main
from tests.waiting import until

KEYS = {
    "workloads",
    "skipped",
    "occupancy",
    "availability",
    "delivered_over_owed",
    "delivered_over_owed_hourly",
    "owed_gpu_h",
    "delivered_gpu_h",
    "unallocated_share",
    "preemptions",
    "lost_gpu_h",
    "wait_s",
    "wait_s_by_class",
}
ROWS = [f"j{n},{1_800_000_000 + n * 300},{600 + n % 7 * 1200},{1 + n % 5},{'ab'[n % 2]}" for n in range(60)]
LOG = "\n".join(["id,submitted_at,run_s,gpus,project", *ROWS, "cpu,1800000000,60,0,a", "huge,1800000000,60,99,b", ""])
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["simulate", *words])
        return status, *capsys.readouterr()

    return run


def told(said: Said, *words: str) -> Any:
    status, out, err = said("log.csv", "--cluster", "2x8", "--json", *words)
    assert status == 0, err
    return json.loads(out)


def test_the_report_as_data(said: Said) -> None:
    data = told(said)
    assert set(data) >= KEYS | {"budgets"} and (data["workloads"], data["skipped"]) == (60, 2)
    assert {odd["kind"]: odd["count"] for odd in data["log"]["oddities"]} == {
        "no_gpus": 1,
        "too_large": 1,
        "out_of_order": 1,
    }
    assert [b["path"] for b in data["budgets"]] == ["a", "b"] and set(data["budgets"][0]) >= KEYS | {"path"}
    assert set(data["wait_s"]) == {"p50", "p90", "p99", "max"}
    assert set(data["wait_s_by_class"]) == {"debug", "small", "large"}
    assert data["wait_s_by_class"]["large"]["p50"] is None
    assert data["period"]["from"] == "2027-01-15T08:00:00Z" and data["availability"] == 1
    rests = {entry["attribute"]: entry for entry in data["declared"]}
    assert rests["min_runtime"]["workloads"] == 60 and "owed_gpu_h" in rests["min_runtime"]["figures"]


def test_policies_side_by_side_with_seeds(said: Said, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("workloads: {min_runtime: {15m: 50%, 1h: 50%}, budget: user, seed: 7}\n")
    (tmp_path / "b.yaml").write_text("policy: {lookback: 1h}\nbudgets: [{name: a, weight: 3}, {name: b}]\n")
    data = told(said, "--policy", "a.yaml", "--compare", "b.yaml", "--seeds", "2")
    first, second = data["policies"]
    assert (first["policy"], first["seeds"]) == ("a.yaml", [7, 8]) and "workloads" not in data
    assert first["low"]["occupancy"] <= first["occupancy"] <= first["high"]["occupancy"]
    assert second["low"] == second["high"]
    assert [b["path"] for b in second["budgets"]] == ["a", "b"]


def test_faults_take_hosts_out_of_service(said: Said) -> None:
    data = told(said, "--faults", "2", "--seeds", "2")
    assert 0 < data["low"]["availability"] < 1 and data["high"]["interrupted"] > 0
    assert {"repair_s": 14_400.0}.items() <= {e["attribute"]: e.get("value") for e in data["declared"]}.items()
    sentence = said("log.csv", "--cluster", "2x8", "--faults", "2")[1]
    assert "Each host fails 2 times a day" in sentence


def test_the_report_for_people(said: Said, tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("budgets: [{name: a, weight: 3}, {name: b}]\n")
    status, out, err = said("log.csv", "--cluster", "1x8", "--compare", "b.yaml", "--out", "out", "--workers", "1")
    assert status == 0
    for words in (
        "62 rows: 60 replayed, 2 left out",
        "1 left out: asks for no GPUs (line 62: cpu asks for 0)",
        "1 left out: larger than the cluster",
        "declared by rules, not by the log: min runtime of 60 workloads",
        "FIGURE",
        "Budgets under b.yaml",
        "From default to b.yaml",
    ):
        assert words in out
    assert err.startswith("cpu_s ")
    folder = tmp_path / "out"
    files = {"report.json", "report.txt", "run.json", "waits.svg", "default", "b"}
    assert {file.name for file in folder.iterdir()} == files
    assert {file.name for file in (folder / "b").iterdir()} == {"events.csv", "hours.csv", "gantt.svg", "balance.svg"}
    assert all("</svg>" in file.read_text() for file in folder.rglob("*.svg"))
    assert set(json.loads((folder / "run.json").read_text())) == {"cpu_s", "peak_mb"}
    events = (folder / "b" / "events.csv").read_text().splitlines()
    assert sum(",submit," in line for line in events) == sum(",end," in line for line in events) == 60
    hours = (folder / "b" / "hours.csv").read_text().splitlines()
    got = sum(float(line.split(",")[5]) for line in hours[1:])
    report = json.loads((folder / "report.json").read_text())
    assert got == pytest.approx(report["policies"][1]["delivered_gpu_h"], abs=1e-3)
    assert "FIGURE" in (folder / "report.txt").read_text()


def test_a_period_leaves_out_what_was_submitted_elsewhere(said: Said) -> None:
    data = told(said, "--from", "1h", "--to", "2027-01-15T10:00:00Z")
    assert (data["workloads"], data["hours"], data["period"]["to"]) == (12, 1.0, "2027-01-15T10:00:00Z")
    assert data["workloads"] + data["skipped"] == data["log"]["rows"]


def test_an_inventory_is_a_policy_file_too(said: Said, tmp_path: Path) -> None:
    text = "hosts: [{name: h1, gpus: 8}]\nbudgets: [{name: a, weight: 3}, {name: b}]\npolicy: {lookback: 1d}\n"
    (tmp_path / "inventory.yaml").write_text(text)
    assert told(said, "--policy", "inventory.yaml") | {"policy": "", "notes": []} == told(
        said, "--budgets", "inventory.yaml", "--policy", "inventory.yaml"
    ) | {"policy": "", "notes": []}
    (tmp_path / "several.yaml").write_text("clusters: []\n")
    status, _, err = said("log.csv", "--cluster", "2x8", "--policy", "several.yaml")
    assert status == 2 and "clusters: are not read here" in err


def test_budgets_of_a_table_by_day(said: Said, tmp_path: Path) -> None:
    (tmp_path / "gpus.csv").write_text("date,a,b,x,total\n2027-01-14,8,8,0,16\n2027-01-15,12,4,0,16\n")
    data = told(said, "--budgets", "gpus.csv")
    assert data["notes"] == ["weights are the GPUs of 2027-01-15, the log's first day"]
    assert [b["path"] for b in data["budgets"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--cluster", "128"], "write hosts x GPUs, for example 128x8"),
        (["--scale-demand", "lots"], "'lots' is no number from 0.001 to 1000"),
        (["--faults", "-1"], "--faults: '-1' is no number from 0 to 100"),
        (["--seeds", "0"], "--seeds: 0 is outside 1 to 1000"),
        (["--from", "noon"], "'noon' is neither an instant nor a span"),
        (["--from", "99d"], "the log's submissions go from 2027-01-15T08:00:00Z to"),
        (["--to", "2020-01-01"], "is not after the beginning"),
        (["--map", "gpus=cards"], "the log has no column 'cards'"),
        (["--policy", "wrong.yaml"], "wrong.yaml:1: workloads.resumable: '80' could mean 80% or 8000%"),
        (["--budgets", "wrong.csv"], "wrong.csv:2: '2020-04-01,many' is no day with 2 numbers"),
        (["--cluster", "1x1", "--from", "20m", "--to", "25m"], "j4 asks for 5 GPUs of 1"),
        (["--strict"], "log.csv:62: asks for no GPUs: cpu asks for 0; 1 row so in all"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_done(words: list[str], expected: str, said: Said, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("workloads: {resumable: 80}\n")
    (tmp_path / "wrong.csv").write_text("date,a,total\n2020-04-01,many\n")
    status, out, err = said("log.csv", "--cluster", "2x8", *words)
    assert (status, out) == (2, "") and expected in err


def test_rules_are_read_with_every_error(said: Said, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        """workloads:
  min_runtime: [{gpus: 9-2, value: 1h}, {gpus: 1, value: {15m: 50%, 1h: 20%}}, {user: a}]
  resumable: 120%
  budget: team
  speed: 3
"""
    )
    status, _, err = said("log.csv", "--cluster", "2x8", "--policy", "a.yaml")
    assert status == 2
    for words in (
        "runs backwards",
        "[2].value: is missing",
        "more than 100%",
        "'team' is none of",
        "speed: is not known",
    ):
        assert words in err


def command(folder: Path, *words: str, seed: str = "0") -> subprocess.Popen[str]:
    words = (sys.executable, "-m", "opsconsole", "simulate", *words)
    env = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.Popen(words, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_the_same_bytes_on_any_hash_seed(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "a.yaml").write_text("workloads: {min_runtime: {15m: 50%, 0: 50%}, resumable: 50%}\n")
    words = ("log.csv", "--cluster", "2x8", "--policy", "a.yaml", "--scale-demand", "1.5", "--json")
    runs = [command(tmp_path, *words, seed=seed) for seed in ("1", "2")]
    first, second = (run.communicate(timeout=60)[0] for run in runs)
    assert first == second and json.loads(first)["workloads"] > 60


async def test_ctrl_c_ends_it_with_a_word(tmp_path: Path) -> None:
    rows = (f"{n},{n * 60},3600,{1 + n % 4}" for n in range(20_000))
    (tmp_path / "log.csv").write_text("\n".join(["id,submitted_at,run_s,gpus", *rows]))
    run = command(tmp_path, "log.csv", "--cluster", "4x8", "--seeds", "2", "--workers", "2", "--out", "out")
    await until((tmp_path / "out/default/.events.csv").exists, "the first event")
    run.send_signal(signal.SIGINT)
    out, err = await asyncio.to_thread(run.communicate, timeout=60)
    assert (run.returncode, out, err) == (130, "", "opsconsole: cancelled; no report was written\n")
    assert not await asyncio.to_thread(left, tmp_path)


def left(folder: Path) -> list[Path]:
    return [*folder.rglob("*events.csv"), *folder.rglob("report.*")]
