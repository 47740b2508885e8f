"""A live state written to a snapshot file reads back, and says the same about usage, order and queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.config.snapshot import read_snapshot
from opsconsole.config.snapshot_out import write_snapshot
from opsconsole.config.units import format_instant
from scheduler_core.report import as_json, order_rows, plan_report
from scheduler_core.sim.scenario import Scenario
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU


def through_file(state: ClusterState, path: Path) -> ClusterState:
    path.write_text(write_snapshot(state))
    return read_snapshot(str(path))


def usage(state: ClusterState) -> dict[str, tuple[int, int]]:
    window, ledgers = state.policy.lookback_ms, state.ledgers
    return {
        path: (ledgers.used(bid, state.now, window, True), ledgers.used(bid, state.now, window, False))
        for path, bid in state.budgets.by_path.items()
        if state.budgets.is_leaf(bid)
    }


@pytest.mark.parametrize("seed", range(500, 520))
def test_a_world_with_faults_reads_back(seed: int, tmp_path: Path) -> None:
    scenario = Scenario(seed)
    for part in range(4):
        scenario.run(60)
        live = scenario.engine.state
        read = through_file(live, tmp_path / f"{part}.yaml")
        assert usage(read) == usage(live)
        assert {r.host.name: r.held.bit_count() for r in read.hosts.values()} == {
            r.host.name: r.held.bit_count() for r in live.hosts.values()
        }


@pytest.mark.parametrize("seed", range(520, 530))
def test_written_twice_it_plans_the_same(seed: int, tmp_path: Path) -> None:
    scenario = Scenario(seed)
    scenario.run(150)
    live = scenario.engine.state
    once = through_file(live, tmp_path / "once.yaml")
    window = live.policy.lookback_ms
    served = live.ledgers.in_service(live.now, window)
    if served < window * GPU * min(r.host.gpus for r in live.hosts.values()):
        return  # less than one host's window: the file cannot say so (docs/snapshot.md)
    assert once.ledgers.in_service(live.now, window) == pytest.approx(served, rel=1e-6)
    twice = through_file(once, tmp_path / "twice.yaml")
    assert (tmp_path / "once.yaml").read_text() == (tmp_path / "twice.yaml").read_text()
    assert order_rows(once) == order_rows(twice)
    assert as_json(plan_report(once), once, format_instant) == as_json(plan_report(twice), twice, format_instant)
