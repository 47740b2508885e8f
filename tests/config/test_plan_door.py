"""`opsconsole plan`: a hand-written state in, decisions out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opsconsole.cli import main
from opsconsole.config.errors import ConfigError
from opsconsole.config.snapshot import read_snapshot
from opsconsole.config.snapshot_out import write_snapshot
from opsconsole.config.units import format_instant
from scheduler_core.report import as_json, plan_report

HEAD = """\
now: 2026-11-30T12:00:00Z
budgets:
  - {name: olmo, weight: 60, children: [{name: pretrain, weight: 3}, {name: eval, weight: 1}]}
  - {name: vision, weight: 40}
hosts:
  - {name: "gpu[1-2]", gpus: 8}
"""


def plan(tmp_path: Path, workloads: str, more: str = "", head: str = HEAD) -> dict[str, Any]:
    path = tmp_path / "s.yaml"
    path.write_text(f"{head}{more}workloads:\n{workloads}")
    state = read_snapshot(str(path))
    return as_json(plan_report(state), state, format_instant)


def decisions(found: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {d["workload"]: d for d in found["decisions"] if d["kind"] == kind}


def errors(tmp_path: Path, text: str) -> str:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_snapshot(str(path))
    return str(caught.value)


def test_the_most_owed_goes_first_and_everyone_gets_one_answer(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        """\
  - {id: v, budget: vision, gpus: 16, min_runtime: 1h, waiting: 10m}
  - {id: e, budget: olmo/eval, gpus: 4, min_runtime: 1h, waiting: 1m}
  - {id: p, budget: olmo/pretrain, gpus: 8, min_runtime: 1h, waiting: 2m}
  - {id: free, budget: vision, gpus: 4, min_runtime: 0, waiting: 9h}
""",
        "usage: {olmo/pretrain: 100, vision: 300}\n",
    )
    assert found["queue"] == ["e", "p", "v", "free"]
    assert sorted(decisions(found, "place")) == ["e", "free", "p"]
    assert decisions(found, "hold")["v"]["reason"]
    assert [(r["budget"], r["rank"]) for r in found["order"]] == [
        ("olmo", 1),
        ("olmo/eval", 1),
        ("olmo/pretrain", 2),
        ("vision", 2),
    ]


def test_balance_is_usage_over_entitlement(tmp_path: Path) -> None:
    found = plan(tmp_path, "  []\n", "usage: {vision: 268.8}\n")
    balances = {row["budget"]: row["balance"] for row in found["order"]}
    assert balances["vision"] == pytest.approx(268.8 / (0.4 * 16 * 168))
    assert balances["olmo"] == 0


def test_a_weight_of_zero_has_no_balance_and_stands_last(tmp_path: Path) -> None:
    """G1-01: never NaN, never first."""
    head = HEAD.replace("weight: 40", "weight: 0")
    found = plan(
        tmp_path,
        """\
  - {id: idle, budget: vision, gpus: 16, min_runtime: 1h, waiting: 9h}
  - {id: owed, budget: olmo/eval, gpus: 16, min_runtime: 1h, waiting: 1m}
""",
        "usage: {olmo/eval: 99999}\n",
        head,
    )
    assert found["queue"] == ["owed", "idle"]
    assert {r["budget"]: r["balance"] for r in found["order"]}["vision"] is None


def test_one_branch_does_not_take_every_free_gpu_in_one_pass(tmp_path: Path) -> None:
    rows = "".join(f"  - {{id: o{n}, budget: olmo/eval, gpus: 4, min_runtime: 8h, waiting: 1h}}\n" for n in range(4))
    rows += "".join(f"  - {{id: v{n}, budget: vision, gpus: 4, min_runtime: 8h, waiting: 1m}}\n" for n in range(4))
    placed = decisions(plan(tmp_path, rows), "place")
    assert {name[0] for name in placed} == {"o", "v"}


def test_only_past_the_minimum_and_only_for_a_better_claim(tmp_path: Path) -> None:
    rows = """\
  - {id: old, budget: vision, gpus: 8, min_runtime: 2h, resumable: true, running: {on: {gpu1: 8}, for: 2h}}
  - {id: young, budget: vision, gpus: 8, min_runtime: 2h, resumable: true, running: {on: {gpu2: 8}, for: 119m}}
  - {id: claim, budget: olmo/eval, gpus: 8, min_runtime: 1h, waiting: 1m}
"""
    found = plan(tmp_path, rows, "usage: {vision: 500}\n")
    (victim,) = decisions(found, "preempt").values()
    assert (victim["workload"], victim["for"], victim["hosts"]) == ("old", "claim", {"gpu1": 8})
    assert "claim" in decisions(found, "hold")
    equal = plan(tmp_path, rows, "usage: {vision: 100, olmo/eval: 900}\n")
    assert not decisions(equal, "preempt")


def test_what_waits_for_protected_runs_knows_until_when(tmp_path: Path) -> None:
    rows = """\
  - {id: a, budget: vision, gpus: 8, min_runtime: 2h, running: {on: {gpu1: 8}, for: 1h}}
  - {id: b, budget: vision, gpus: 8, min_runtime: 4h, running: {on: {gpu2: 8}, for: 1h}}
  - {id: claim, budget: olmo/eval, gpus: 8, min_runtime: 1h, waiting: 1m}
"""
    hold = decisions(plan(tmp_path, rows, "usage: {vision: 500}\n"), "hold")["claim"]
    assert hold["until"] == "2026-11-30T13:00:00Z"


def test_a_draining_host_stops_what_is_past_its_minimum_and_takes_nothing_new(tmp_path: Path) -> None:
    head = HEAD + "  - {name: sick, gpus: 8, state: draining}\n"
    rows = """\
  - {id: done, budget: vision, gpus: 4, min_runtime: 1h, resumable: true, running: {on: {sick: 4}, for: 2h}}
  - {id: safe, budget: vision, gpus: 4, min_runtime: 4h, running: {on: {sick: 4}, for: 2h}}
  - {id: next, budget: olmo/eval, gpus: 8, min_runtime: 1h, waiting: 1m}
"""
    found = plan(tmp_path, rows, head=head)
    assert list(decisions(found, "drain")) == ["done"]
    assert "sick" not in decisions(found, "place")["next"]["hosts"]


@pytest.mark.parametrize(
    "state", ["cordoned", "drained", "suspect", "unreachable", "lost", "repairing", "verify_failed"]
)
def test_only_serving_hosts_take_work(tmp_path: Path, state: str) -> None:
    head = HEAD.replace('"gpu[1-2]", gpus: 8', f'"gpu[1-2]", gpus: 8, state: {state}')
    found = plan(tmp_path, "  - {id: w, budget: vision, gpus: 1, min_runtime: 1h, waiting: 1m}\n", head=head)
    assert "w" in decisions(found, "hold")


def test_max_gpus_holds_with_the_headroom_named(tmp_path: Path) -> None:
    head = HEAD.replace("weight: 40", "weight: 40, max_gpus: 8")
    rows = """\
  - {id: a, budget: vision, gpus: 8, min_runtime: 1h, running: {on: {gpu1: 8}, for: 10m}}
  - {id: b, budget: vision, gpus: 1, min_runtime: 1h, waiting: 1m}
"""
    assert "max_gpus 8; 0 left" in decisions(plan(tmp_path, rows, head=head), "hold")["b"]["reason"]


def test_held_workloads_hold_in_their_place(tmp_path: Path) -> None:
    rows = """\
  - {id: a, budget: vision, gpus: 1, min_runtime: 1h, waiting: 2m, held: true}
  - {id: b, budget: vision, gpus: 1, min_runtime: 1h, waiting: 1m}
"""
    found = plan(tmp_path, rows)
    assert found["queue"] == ["a", "b"]
    assert "held" in decisions(found, "hold")["a"]["reason"]


def test_needs_that_no_host_has_are_a_hold_with_the_reason_and_stop_nobody(tmp_path: Path) -> None:
    """G2-04: also where their values read like our own words."""
    found = plan(
        tmp_path,
        """\
  - {id: v, budget: vision, gpus: 8, min_runtime: 1h, resumable: true, running: {on: {gpu1: 8}, for: 2h}}
  - {id: a, budget: olmo/eval, gpus: 1, min_runtime: 1h, waiting: 1m, needs: {model: h100}}
  - {id: b, budget: olmo/eval, gpus: 1, min_runtime: 0, waiting: 1m, needs: {zone: nearest}}
""",
    )
    held = decisions(found, "hold")
    assert "no host with GPUs is labelled model=h100" in held["a"]["reason"]
    assert "no host with GPUs is labelled zone=nearest" in held["b"]["reason"]
    assert not decisions(found, "preempt")


@pytest.mark.parametrize(
    ("spare", "says"),
    [(3, "gpu1 is drained; gpu3, gpu2 are kept for it"), (2, "gpu1 is drained; nothing is kept for it")],
)
def test_a_drained_gang_says_what_is_held_for_it(tmp_path: Path, spare: int, says: str) -> None:
    """Rule 25."""
    hosts = f'  - {{name: gpu1, gpus: 8, state: draining}}\n  - {{name: "gpu[2-{spare}]", gpus: 8}}\n'
    head = f"{HEAD.partition('hosts:')[0]}hosts:\n{hosts}"
    gang = "running: {on: {gpu1: 8, gpu2: 8}, for: 2h}"
    rows = f"  - {{id: gang, budget: vision, gpus: 16, min_runtime: 1h, resumable: true, {gang}}}\n"
    assert decisions(plan(tmp_path, rows, head=head), "drain")["gang"]["reason"] == says


def test_every_error_of_a_snapshot_is_named(tmp_path: Path) -> None:
    text = (
        HEAD
        + """\
usage: {olmo: 3, vison: 4}
workloads:
  - {id: a, budget: vision, gpus: 12, min_runtime: 1h, waiting: 1m}
  - {id: b, budget: vision, gpus: 4, min_runtime: 9h, waiting: 1m}
  - {id: c, budget: vision, gpus: 4, waiting: 1m}
  - {id: d, budget: vision, gpus: 4, min_runtime: 1h}
  - {id: e, budget: vision, gpus: 4, min_runtime: 1h, running: {on: {gpu9: 4}, for: 1h}}
  - {id: f, budget: vision, gpus: 16, min_runtime: 1h, running: {on: {gpu1: 9}, for: 1h}}
  - {id: g, budget: vision, gpus: 4, min_runtime: 1h, running: {on: {gpu1: 3}, for: 1h}}
  - {id: a, budget: olmo, gpus: 4, hosts: 3, gpus_per_host: 2, min_runtime: 1h, waiting: 1m}
"""
    )
    said = errors(tmp_path, text)
    for words in (
        "'olmo' is not a leaf",
        "did you mean 'vision'",
        "nearest: 8 or 16",
        "min_runtime_bounds, 0 to 8h",
        "no budget above sets a default",
        "neither running nor waiting",
        "no host 'gpu9'",
        "has no room for",
        "adds up to 3",
        "stands twice",
        "do not make 4",
    ):
        assert words in said, words


def test_a_snapshot_written_and_read_again_plans_the_same(tmp_path: Path) -> None:
    rows = """\
  - {id: old, budget: vision, gpus: 8, min_runtime: 2h, checkpoint_age: 5m, running: {on: {gpu1: 8}, for: 3h}}
  - {id: claim, budget: olmo/eval, gpus: 8, min_runtime: 1h, waiting: 1m, owner: "o'neil", priority: 2}
  - {id: two, budget: olmo/pretrain, gpus: 8, hosts: 2, min_runtime: 30m, waiting: 5m, held: because}
"""
    path = tmp_path / "s.yaml"
    path.write_text(f"{HEAD}policy: {{lookback: 3d, max_blast: 1.5}}\nusage: {{vision: 33.333}}\nworkloads:\n{rows}")
    again = tmp_path / "again.yaml"
    again.write_text(write_snapshot(read_snapshot(str(path))))
    first, second = (read_snapshot(str(p)) for p in (path, again))
    assert as_json(plan_report(first), first, format_instant) == as_json(plan_report(second), second, format_instant)


def test_the_command_prints_json_and_refuses_with_status_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"{HEAD}workloads: []\n")
    assert main(["plan", str(path), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"order", "queue", "decisions"}
    path.write_text("now: yesterday\n")
    assert main(["plan", str(path)]) == 2
    assert "is no instant" in capsys.readouterr().err
