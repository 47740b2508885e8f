"""The snapshot file by hand: what its words mean, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.config.errors import ConfigError
from opsconsole.config.snapshot import read_snapshot
from opsconsole.config.snapshot_out import write_snapshot
from scheduler_core.fleet import HostState, Reach
from scheduler_core.report import plan_report
from scheduler_core.state import ClusterState
from scheduler_core.units import DAY, GPU, GPU_HOUR, HOUR
from scheduler_core.workload import WorkloadPhase
from tests.config.test_plan_door import HEAD, decisions, errors, plan

ISSUE = """\
now: 2026-11-30T12:00:00Z
policy: {lookback: 7d, preemption_margin: 5%}        # knobs of policy.md; all optional
budgets:
  - {name: olmo, weight: 60, children: [{name: pretrain, weight: 3}, {name: eval, weight: 1}]}
  - {name: vision, weight: 40, max_gpus: 64}
hosts:
  - {name: "gpu[001-064]", gpus: 8, state: serving}   # in_service: how long within the window
usage: {olmo/pretrain: 120, vision: 300}              # GPU-hours already charged in the window, per leaf
workloads:
  - {id: w1, budget: olmo/pretrain, gpus: 8, min_runtime: 2h, resumable: true, running: {on: {gpu001: 8}, for: 3h}}
  - {id: w2, budget: vision, gpus: 4, min_runtime: 30m, waiting: 10m, priority: 1}
"""


def state_of(tmp_path: Path, text: str) -> ClusterState:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    return read_snapshot(str(path))


def test_the_example_of_the_documents(tmp_path: Path) -> None:
    state = state_of(tmp_path, ISSUE)
    assert len(state.hosts) == 64
    assert state.ledgers.in_service(state.now, 7 * DAY) == 64 * 8 * GPU * 7 * DAY
    run = next(iter(state.runs.values()))
    assert (run.gpus, run.started_at, run.protected(state.now)) == (8, state.now - 3 * HOUR, False)
    used = {
        path: state.ledgers.used(bid, state.now, 7 * DAY) // GPU_HOUR for path, bid in state.budgets.by_path.items()
    }
    assert used == {"olmo": 120, "olmo/pretrain": 120, "olmo/eval": 0, "vision": 300}
    assert [item.kind for item in plan_report(state).items] == ["place"]


@pytest.mark.parametrize("word", [s.value for s in HostState])
def test_every_state_of_a_host_can_be_written(tmp_path: Path, word: str) -> None:
    state = state_of(tmp_path, HEAD + f"  - {{name: odd, gpus: 8, state: {word}}}\n")
    (odd,) = [r for r in state.hosts.values() if r.host.name == "odd"]
    assert (odd.state.value, odd.reach) == (word, Reach.FRESH)
    served = state.ledgers.in_service(state.now, 7 * DAY) // (8 * GPU * 7 * DAY)
    assert served == (3 if word == "serving" else 2)


@pytest.mark.parametrize("word", ["unreachable", "lost"])
def test_reach_is_a_word_of_its_own(tmp_path: Path, word: str) -> None:
    state = state_of(tmp_path, HEAD + f"  - {{name: odd, gpus: 8, state: {word}}}\n")
    (odd,) = [r for r in state.hosts.values() if r.host.name == "odd"]
    assert (odd.state, odd.reach.value) == (HostState.SERVING, word)


def test_in_service_counts_the_time_before_the_first_as_served(tmp_path: Path) -> None:
    """Rule 4: a cluster of one day starts even in a window of seven."""
    young = HEAD.replace('"gpu[1-2]", gpus: 8', '"gpu[1-2]", gpus: 8, in_service: 1d')
    state = state_of(tmp_path, young)
    assert state.ledgers.in_service(state.now, 7 * DAY) == 16 * GPU * 7 * DAY
    one = young + "  - {name: old, gpus: 8, state: cordoned, in_service: 7d}\n"
    state = state_of(tmp_path, one)
    assert state.ledgers.in_service(state.now, 7 * DAY) == (16 * 1 + 8 * 7) * GPU * DAY


def test_usage_is_exact_to_the_unit(tmp_path: Path) -> None:
    state = state_of(tmp_path, HEAD + "usage: {vision: 0.3333333333, olmo/eval: 0.1}\nunallocated_usage: {vision: 2}\n")
    vision = state.budgets.by_path["vision"]
    assert state.ledgers.used(vision, state.now, 7 * DAY) == GPU_HOUR // 3
    assert state.ledgers.used(state.budgets.by_path["olmo"], state.now, 7 * DAY) == GPU_HOUR // 10
    assert state.ledgers.used(vision, state.now, 7 * DAY, allocated=False) == 2 * GPU_HOUR


def test_a_gang_may_be_written_as_a_range(tmp_path: Path) -> None:
    row = '  - {id: g, budget: vision, gpus: 16, min_runtime: 1h, running: {on: {"gpu[1-2]": 8}, for: 1m}}\n'
    (run,) = state_of(tmp_path, f"{HEAD}workloads:\n{row}").runs.values()
    assert sorted(run.members) == ["gpu1", "gpu2"]


@pytest.mark.parametrize("hours", ["0", "2", "40000", "0.0000000001", "33.333"])
def test_usage_reads_back_whole_or_not(tmp_path: Path, hours: str) -> None:
    state = state_of(tmp_path, f"{HEAD}usage: {{vision: {hours}}}\nworkloads: []\n")
    again = state_of(tmp_path, write_snapshot(state))
    vision = state.budgets.require_path("vision")
    assert [s.ledgers.used(vision, s.now, DAY) for s in (state, again)] == [round(float(hours) * GPU_HOUR)] * 2


def test_held_is_true_false_or_a_reason(tmp_path: Path) -> None:
    rows = "".join(
        f"  - {{id: w{n}, budget: vision, gpus: 1, min_runtime: 1h, waiting: 1m, held: {held}}}\n"
        for n, held in enumerate(["true", "false", "poison", "'true'", "'false'"])
    )
    state = state_of(tmp_path, f"{HEAD}workloads:\n{rows}")
    found = [(r.phase is WorkloadPhase.HELD, r.reason) for r in state.workloads.values()]
    assert found == [(True, ""), (False, ""), (True, "poison"), (True, "true"), (True, "false")]
    again = state_of(tmp_path, write_snapshot(state))
    assert [(r.phase is WorkloadPhase.HELD, r.reason) for r in again.workloads.values()] == found


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("usage: {vision: -1}", "expected a number"),
        ("usage: {vision: 1e3}", "expected a number"),
        ("usage: {vision: 1000000000000000000}", "from 0 to 1000000000000"),
        ("usage: {olmo: 1}", "'olmo' is not a leaf"),
        ("usage: [vision]", "expected keys and values"),
        ("workload: []", "did you mean 'workloads'?"),
        ("workloads: {}", "expected a list"),
        ("workloads: [w1]", "expected keys and values"),
        ("policy: {half_life: 1d}", "not supported yet"),
    ],
)
def test_wrong_parts_are_refused(tmp_path: Path, more: str, said: str) -> None:
    assert said in errors(tmp_path, f"{HEAD}{more}\n")


RUN = "budget: vision, gpus: 8, min_runtime: 1h, running"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (f"{{id: a, {RUN}: {{on: {{gpu1: 8}}, for: 1h}}, waiting: 1m}}", "both running and waiting"),
        (f"{{id: a, {RUN}: {{on: {{gpu1: 8}}}}}}", "running.for: is missing"),
        (f"{{id: a, {RUN}: {{on: {{}}, for: 1h}}}}", "adds up to 0 GPUs, but a has 8"),
        (f"{{id: a, {RUN}: {{on: {{gpu1: 8, gpu1: 8}}, for: 1h}}}}", "stands twice"),
        (f"{{id: a, {RUN}: {{on: {{gpu1: 4, 'gpu[1-2]': 4}}, for: 1h}}}}", "'gpu1' stands twice"),
        (f"{{id: a, {RUN}: {{on: {{gpu01: 8}}, for: 1h}}}}", "no host 'gpu01'; did you mean 'gpu1'?"),
        (f"{{id: a, {RUN}: {{on: {{'gpu[2-1]': 8}}, for: 1h}}}}", "runs backwards"),
        (f"{{id: a, hosts: 2, {RUN}: {{on: {{gpu1: 6, gpu2: 2}}, for: 1h}}}}", "is not 2 hosts x 4 GPUs"),
        (f"{{id: a, {RUN}: {{on: {{gpu1: 8}}, for: 60}}}}", "has no unit"),
        (f"{{id: a, {RUN}: {{on: {{empty: 8}}, for: 1h}}}}", "empty is drained: known empty"),
        (f"{{id: a, held: x, {RUN}: {{on: {{gpu1: 8}}, for: 1h}}}}", "only a waiting workload can be held"),
        ("{id: a, budget: vision, gpus: 4, min_runtime: 1h, waiting: 10}", "has no unit"),
        ("{id: a, budget: vision, gpus: 4, min_runtime: 1h, waiting: }", "has no value"),
        ("{id: '', budget: vision, gpus: 4, min_runtime: 1h, waiting: 1m}", "is no name"),
        ("{budget: vision, gpus: 4, min_runtime: 1h, waiting: 1m}", "id: is missing"),
        ("{id: a, budget: vison, gpus: 4, min_runtime: 1h, waiting: 1m}", "did you mean 'vision'?"),
        ("{id: a, budget: vision, gpus: 4, min_runtime: 1h, waiting: 1m, prio: 1}", "did you mean 'priority'?"),
        ("{id: a, budget: vision, gpus: 4, min_runtime: 1h, waiting: 1m, needs: h100}", "expected keys and values"),
        ("{id: a, budget: vision, gpus: 4, min_runtime: 1h, waiting: 1m, on_preempt: die}", "none of end, restart"),
        ("{id: a, budget: vision, gpus: 4, min_runtime: 1h, waiting: 1m, resumable: yes}", "write true"),
    ],
)
def test_wrong_workloads_are_refused_with_their_line(tmp_path: Path, row: str, said: str) -> None:
    text = f"{HEAD}  - {{name: empty, gpus: 8, state: drained}}\nworkloads:\n  - {row}\n"
    found = errors(tmp_path, text)
    assert any(said in line and ":9:" in line for line in found.splitlines()), found


def test_what_is_held_by_others_is_named(tmp_path: Path) -> None:
    rows = """\
workloads:
  - {id: a, budget: vision, gpus: 6, min_runtime: 1h, running: {on: {gpu1: 6}, for: 1m}}
  - {id: b, budget: vision, gpus: 4, min_runtime: 1h, running: {on: {gpu1: 4}, for: 1m}}
"""
    assert "gpu1 has no room for 4 GPUs: it has 8, 6 in use by a~1" in errors(tmp_path, HEAD + rows)


def test_a_draining_host_needs_no_drain_written_out(tmp_path: Path) -> None:
    state = state_of(tmp_path, HEAD + "  - {name: sick, gpus: 8, state: draining}\n")
    assert [d.host for d in state.drains.values()] == ["sick"]


def test_old_bounds_and_lost_shapes_read_back(tmp_path: Path) -> None:
    """What came in before an edit of the inventory may not make a snapshot unreadable."""
    rows = """\
policy: {min_runtime_bounds: [0, 20h]}
workloads:
  - {id: long, budget: vision, gpus: 4, min_runtime: 12h, waiting: 1m}
  - {id: odd, budget: vision, gpus: 12, min_runtime: 1h, waiting: 1m, held: true}
"""
    state = state_of(tmp_path, HEAD + rows)
    state.policy = type(state.policy)()
    odd = state.workloads[next(w for w in state.workloads if w == "odd")]
    odd.phase = WorkloadPhase.WAITING
    again = state_of(tmp_path, write_snapshot(state))
    assert again.policy.min_runtime_max_ms == 12 * HOUR
    held = {str(r.workload.id): r.reason for r in again.workloads.values() if r.phase is WorkloadPhase.HELD}
    assert "nearest: 8 or 16" in held["odd"]


def test_every_waiting_workload_gets_one_answer(tmp_path: Path) -> None:
    """G7-08: nothing is lost, whatever it asks for."""
    rows = """\
  - {id: big, budget: vision, gpus: 64, min_runtime: 1h, waiting: 1m}
  - {id: needy, budget: vision, gpus: 1, min_runtime: 1h, waiting: 1m, needs: {model: none}}
  - {id: wide, budget: vision, gpus: 16, hosts: 1, gpus_per_host: 16, min_runtime: 1h, waiting: 1m}
  - {id: held, budget: vision, gpus: 1, min_runtime: 1h, waiting: 1m, held: true}
  - {id: fits, budget: vision, gpus: 1, min_runtime: 1h, waiting: 1m}
  - {id: free, budget: vision, gpus: 1, min_runtime: 0, waiting: 1m}
"""
    found = plan(tmp_path, rows)
    assert sorted(found["queue"]) == ["big", "fits", "free", "held", "needy", "wide"]
    assert set(decisions(found, "place")) == {"fits", "free"}
    holds = decisions(found, "hold")
    assert "cluster too small" in holds["big"]["reason"]
    assert "model=none" in holds["needy"]["reason"]
    assert "no host has 16 GPUs" in holds["wide"]["reason"]


def test_now_needs_a_zone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no time zone"):
        state_of(tmp_path, ISSUE.replace("12:00:00Z", "12:00:00"))
