"""The preview of a reload: what changes and what follows (G6-09)."""

from __future__ import annotations

from pathlib import Path

from opsconsole.config.diff import Change, diff_inventories
from opsconsole.config.snapshot import read_snapshot
from scheduler_core.state import ClusterState
from tests.config.test_reading import read

OLD = """\
hosts:
  - {name: gpu1, gpus: 8}
  - {name: gpu2, gpus: 8}
budgets:
  - {name: olmo, weight: 3, children: [{name: pretrain}, {name: eval, id: evals}]}
  - {name: vision, max_gpus: 16}
"""
STATE = """\
now: 2026-11-30T12:00:00Z
budgets:
  - {name: olmo, weight: 3, children: [{name: pretrain}, {name: eval, id: evals}]}
  - {name: vision, max_gpus: 16}
hosts: [{name: "gpu[1-2]", gpus: 8}]
workloads:
  - {id: w1, budget: vision, gpus: 8, min_runtime: 1h, running: {on: {gpu1: 8}, for: 1m}}
  - {id: w2, budget: vision, gpus: 8, min_runtime: 1h, waiting: 1m}
"""


def state(tmp_path: Path) -> ClusterState:
    path = tmp_path / "s.yaml"
    path.write_text(STATE)
    return read_snapshot(str(path))


def changes(tmp_path: Path, new: str, live: bool = True) -> dict[str, Change]:
    states = {"main": state(tmp_path)} if live else None
    found = diff_inventories(read(tmp_path, OLD), read(tmp_path, new), states)
    return {change.subject: change for change in found}


def test_the_same_file_changes_nothing(tmp_path: Path) -> None:
    assert changes(tmp_path, OLD + "# a comment\n") == {}


def test_hosts_come_and_go_without_touching_runs(tmp_path: Path) -> None:
    found = changes(tmp_path, OLD.replace("name: gpu1, gpus: 8", "name: gpu3, gpus: 4"))
    assert found["gpu1"].effect == "cordoned at once; w1~1 there go on until they end"
    assert found["gpu3"].what == "joins with 4 GPUs"
    assert set(found) == {"gpu1", "gpu3"}
    assert (
        "until they end" in changes(tmp_path, OLD.replace("gpu1, gpus: 8", "gpu9, gpus: 8"), live=False)["gpu1"].effect
    )


def test_a_host_that_changed_says_how(tmp_path: Path) -> None:
    found = changes(tmp_path, OLD.replace("name: gpu2, gpus: 8", "name: gpu2, gpus: 4, address: 10.0.0.2, user: ops"))
    assert found["gpu2"].what == "gpus 8 → 4; address gpu2 → 10.0.0.2; user unset → ops"
    assert "go on until they end" in found["gpu2"].effect


def test_weights_show_what_they_mean(tmp_path: Path) -> None:
    found = changes(tmp_path, OLD.replace("weight: 3", "weight: 1"))
    assert found["olmo"].what == "weight 3 → 1; share 75% → 50%"
    assert found["vision"].what == "share 25% → 50%"


def test_a_budget_with_an_id_moves_with_its_usage(tmp_path: Path) -> None:
    new = OLD.replace(", {name: eval, id: evals}", "") + "  - {name: tests, id: evals}\n"
    found = changes(tmp_path, new)
    assert "renamed from eval; moved from olmo/eval" in found["tests"].what
    assert not any("leaves" in change.what for change in found.values())


def test_a_budget_without_an_id_says_how_to_keep_its_usage(tmp_path: Path) -> None:
    found = changes(tmp_path, OLD.replace("name: vision", "name: sight"))
    assert found["vision"].what == "leaves"
    assert "1 running, 1 waiting" in found["vision"].effect
    assert "give that one id: vision" in found["vision"].effect
    assert found["sight"].what.startswith("comes with")


def test_a_cap_below_what_is_held_stops_nothing(tmp_path: Path) -> None:
    found = changes(tmp_path, OLD.replace("max_gpus: 16", "max_gpus: 4"))
    assert str(found["vision"]) == (
        "budget vision: max_gpus 16 → 4; uses 8 GPUs now: nothing is stopped, nothing new starts"
    )
    assert changes(tmp_path, OLD.replace(", max_gpus: 16", ""))["vision"].what == "max_gpus 16 → no limit"


def test_knobs_show_both_values(tmp_path: Path) -> None:
    found = changes(tmp_path, OLD + "policy: {lookback: 3d, min_runtime_bounds: [0, 4h], count_commitments: false}\n")
    assert {name: c.what for name, c in found.items()} == {
        "lookback": "7d → 3d",
        "min_runtime_bounds": "[0, 8h] → [0, 4h]",
        "count_commitments": "true → false",
    }


def test_settings_and_clusters(tmp_path: Path) -> None:
    found = changes(tmp_path, OLD + "name: other\non_quit: stop\n")
    assert found["main"].what == "leaves the inventory"
    assert found["other"].what == "comes with 2 hosts and 4 budgets"
    assert found["on_quit"].effect == "counts at the next start"
