"""`opsconsole whatif` as people type it: on a snapshot file, on a live store, and with everything wrong at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opsconsole.cli import main
from scheduler_core.units import HOUR
from tests.cli.told import told
from tests.core.clusters import MIN, Cluster

SNAPSHOT = """\
now: 2026-11-30T12:00:00Z
budgets:
  - {name: olmo, weight: 60, children: [{name: pretrain, weight: 3}, {name: eval, weight: 1}]}
  - {name: vision, weight: 40, max_gpus: 64}
hosts: [{name: "gpu[01-04]", gpus: 8}]
usage: {olmo/pretrain: 120, vision: 30}
workloads:
  - {id: w1, budget: olmo/pretrain, gpus: 8, min_runtime: 2h, resumable: true, running: {on: {gpu01: 8}, for: 3h}}
  - {id: w2, budget: vision, gpus: 8, min_runtime: 30m, resumable: true, running: {on: {gpu02: 8}, for: 10m}}
  - {id: w3, budget: vision, gpus: 16, min_runtime: 30m, running: {on: {gpu03: 8, gpu04: 8}, for: 1h}}
  - {id: w4, budget: olmo/eval, gpus: 4, min_runtime: 30m, waiting: 10m}
  - {id: w5, budget: olmo/pretrain, gpus: 16, min_runtime: 1h, waiting: 1h}
"""
DRAFT: tuple[str, ...] = (
    "--set",
    "lookback=1d",
    "--set",
    "budgets.olmo/pretrain.weight=40",
    "--drain",
    "gpu02",
    "--add-hosts",
    "2x4",
)
DRAFT += ("--submit", "gpus=8,min=2h,budget=olmo/eval,name=mine", "--horizon", "6h", "--futures", "4")
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SNAPSHOT)

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["whatif", "--snapshot", "s.yaml", *words])
        return status, *capsys.readouterr()

    return run


def test_now_against_a_draft_as_data(said: Said) -> None:
    status, out, err = said(*DRAFT, "--json", "--workers", "1")
    assert status == 0, err
    data: dict[str, Any] = json.loads(out)
    assert said(*DRAFT, "--json", "--workers", "2")[1] == out
    assert (data["as_of"], data["horizon_s"], data["futures"], data["seed"]) == ("2026-11-30T12:00:00Z", 21600, 4, 1)
    assert data["draft"] == [
        "lookback 7d → 1d",
        "budgets.olmo/pretrain.weight 3 → 40",
        "drain gpu02",
        "add 2 hosts with 8 GPUs",
        "submit draft-1: 8 GPUs, min runtime 2h, olmo/eval",
    ]
    assert data["rests_on"]["lengths"] == {"nothing": 5} and data["rests_on"]["silent_hosts"] == []
    assert set(data["figures"]["wait_p90_s"]["now"]) == {"low", "median", "high"}
    assert [row["path"] for row in data["budgets"]] == ["olmo/eval", "olmo/pretrain", "vision"]
    (host,) = data["hosts"]
    assert host["host"] == "gpu02" and host["empty"]["now"] is None and host["empty"]["draft"]["low"] > 0
    assert data["starts"][0]["workload"] == "draft-1" and data["starts"][0]["submitted_by_draft"]
    assert {row["workload"] for row in data["starts"]} == {"draft-1", "w4", "w5"}
    assert said(*DRAFT, "--json", "--seed", "2")[1] != out


def test_the_same_for_people(said: Said) -> None:
    status, out, _ = said(*DRAFT)
    assert status == 0
    for words in (
        "SIMULATION from 2026-11-30T12:00:00Z: 4 futures of 6h, seed 1",
        "Draft: lookback 7d → 1d",
        "Of 5 workloads nobody knows how long their like runs",
        "of those that ended none is known",
        "mine (8 GPUs for olmo/eval) starts in",
        "DIFFERENCE",
        "Drained hosts: known empty in",
        "not drained",
        "Who moves",
    ):
        assert words in out
    status, out, _ = said("--horizon", "2h", "--futures", "2")
    assert status == 0 and "No draft" in out and "DRAFT" not in out and "Who starts" in out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--set", "lokback=1d"), "--set lokback: is not known; did you mean 'lookback'?"),
        (("--set", "lookback=soon"), "--set lookback: 'soon' is no span of time"),
        (("--set", "lookback"), "--set: 'lookback' sets nothing; write KNOB=VALUE"),
        (("--set", "lookback=1d", "--set", "lookback=2d"), "--set lookback: is set twice"),
        (("--set", "min_runtime_bounds=8h,1h"), "--set min_runtime_bounds: 8h is more than 1h"),
        (("--set", "suspect_owners=9"), "--set suspect_owners: 9 owners cannot come from 3"),
        (("--set", "budgets.vison.weight=1"), "no budget 'vison'; did you mean 'vision'?"),
        (("--set", "budgets.vision.wait=1"), "'wait' is no field of a budget; did you mean 'weight'?"),
        (("--set", "budgets.olmo/eval.weight=-1"), "--set budgets.olmo/eval.weight: expected a number"),
        (("--drain", "gpu09"), "--drain: no host 'gpu09'; did you mean"),
        (("--remove", "gpu[01"), "--remove: 'gpu[01' has brackets that do not match"),
        (("--add-hosts", "8y8"), "--add-hosts: '8y8' is no cluster"),
        (("--submit", "gpus=8,budget=olmo"), "--submit budget: 'olmo' is not a leaf"),
        (("--submit", "gpus"), "--submit: 'gpus' says nothing"),
        (("--submit", "gpu=8,budget=vision"), "--submit: 'gpu' is no field of a workload; did you mean 'gpus'?"),
        (("--submit", "gpus=8,budget=vision"), "--submit min_runtime: is missing"),
        (("--horizon", "0"), "--horizon 0 is over at once"),
        (("--horizon", "90d"), "--horizon: 90d is longer than 30d"),
        (("--futures", "0"), "--futures: 0 is outside 1 to 10000"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_tried(said: Said, words: tuple[str, ...], found: str) -> None:
    status, out, err = said(*words)
    assert status == 2 and found in err and not out


def test_all_of_it_at_once(said: Said) -> None:
    status, _, err = said("--set", "lokback=1d", "--drain", "gpu09", "--submit", "gpus=8,budget=olm,min=1h")
    assert status == 2 and [line.split(":")[1] for line in err.splitlines()] == [
        " --set lokback",
        " --drain",
        " --submit budget",
    ]


def test_a_live_store_is_only_read(tmp_path: Path) -> None:
    cluster = Cluster(hosts={"h1": 8, "h2": 8})
    cluster.running("runs", min_runtime=HOUR)
    cluster.submit("waits", "b", gpus=16, hosts=2, gpus_per_host=8, min_runtime=HOUR)
    cluster.later(10 * MIN)
    line = told(tmp_path, cluster)
    before = {file.name: file.read_bytes() for file in (tmp_path / "state").iterdir() if file.suffix == ".db"}
    found = line.json("whatif", "--drain", "h2", "--horizon", "3h", "--futures", "2")
    assert found["hosts"][0]["host"] == "h2" and found["draft"] == ["drain h2"]
    assert {name: (tmp_path / "state" / name).read_bytes() for name in before} == before
