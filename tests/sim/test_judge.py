"""The judge of the simulated world is itself tested: planted defects must be found, each by its own check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from scheduler_core import apply_hosts, drain, engine, planner, timers
from scheduler_core.contract import guarded_ms
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.errors import InvariantBroken
from scheduler_core.ids import RunId
from scheduler_core.lifecycle import HANDLERS
from scheduler_core.observations import HostFenced, HostSeen, HostUnreachable
from scheduler_core.preemption import Plan
from scheduler_core.sim.scenario import Scenario
from scheduler_core.state import ClusterState, Run, WorkloadRecord

Plant = Callable[[pytest.MonkeyPatch], None]


def stops_what_has_started(patch: pytest.MonkeyPatch) -> None:
    def always(state: ClusterState, name: str) -> Iterable[StopDecided]:
        run = state.runs.get(RunId(name))
        return [] if run is None or run.stop else [StopDecided(run.id, StopCause.START_TIMEOUT, "planted")]

    patch.setitem(timers._LOOK, "start", always)


def counts_a_limit_from_the_placement(patch: pytest.MonkeyPatch) -> None:
    def early(state: ClusterState, name: str) -> Iterable[StopDecided]:
        run = state.runs.get(RunId(name))
        return [] if run is None or run.stop else [StopDecided(run.id, StopCause.TIME_LIMIT, "planted")]

    patch.setitem(timers._LOOK, "start", early)


def breaks_gangs_of_hosts_that_are_well(patch: pytest.MonkeyPatch) -> None:
    heard = apply_hosts.seen

    def seen(state: ClusterState, event: HostSeen) -> None:
        heard(state, event)
        for run in state.hosts[event.host].runs if event.host in state.hosts else ():
            apply_hosts.want_gang_stop(state, state.runs[run], "planted")

    patch.setitem(HANDLERS, HostSeen, seen)


def drains_without_waiting(patch: pytest.MonkeyPatch) -> None:
    real = drain.mode_now
    patch.setattr(drain, "mode_now", lambda *words: real(*words).replace("contract", "now"))
    patch.setattr(engine, "due_stops", lambda state: [replace(s, override=False) for s in drain.due_stops(state)])


def forgets_the_guard(patch: pytest.MonkeyPatch) -> None:
    def unguarded(run: Run, stop: StopDecided) -> int:
        return 0 if stop.cause is StopCause.PREEMPT else guarded_ms(run, stop)

    patch.setattr(engine, "guarded_ms", unguarded)


def takes_silence_for_death(patch: pytest.MonkeyPatch) -> None:
    def unreachable(state: ClusterState, event: HostUnreachable) -> None:
        apply_hosts.unreachable(state, event)
        if event.host in state.hosts:
            apply_hosts.bury_all(state, state.hosts[event.host], "planted")

    patch.setitem(HANDLERS, HostUnreachable, unreachable)


def promises_gpus_that_are_still_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner._Pass, "_claim_free", lambda *_: True)


def minds_no_cap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner, "under_caps", lambda *_, **__: True)


def preempts_without_a_plan(patch: pytest.MonkeyPatch) -> None:
    """The claim names fewer victims than are stopped."""
    real = planner._Pass._claim

    def claim(self: planner._Pass, record: WorkloadRecord, plan: Plan) -> None:
        real(self, record, replace(plan, waits_for=plan.waits_for[:-1]))

    patch.setattr(planner._Pass, "_claim", claim)


def gives_a_token_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("scheduler_core.state.run_id", lambda workload, attempt, day: RunId(f"{workload}~{attempt % 2}"))
    patch.setattr("scheduler_core.witness.run_id", lambda workload, attempt, day: RunId(f"{workload}~{attempt % 2}"))


def believes_a_late_power_off(patch: pytest.MonkeyPatch) -> None:
    def fenced(state: ClusterState, event: HostFenced) -> None:
        if event.host in state.hosts:
            apply_hosts.bury_all(state, state.hosts[event.host], "planted")

    patch.setitem(HANDLERS, HostFenced, fenced)


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (stops_what_has_started, "by start_timeout .*all its members have reported"),
        (counts_a_limit_from_the_placement, "by time_limit .*it has run for"),
        (breaks_gangs_of_hosts_that_are_well, "by gang_broken .*every member is well"),
        (drains_without_waiting, "by drain|protected, by drain"),
        (forgets_the_guard, "has no guard"),
        (takes_silence_for_death, "starts while .* lives on"),
        (promises_gpus_that_are_still_held, "held twice|still holds"),
        (minds_no_cap, "of max_gpus"),
        (preempts_without_a_plan, "which has no plan with it"),
        (gives_a_token_again, "issued twice|has run before"),
        (believes_a_late_power_off, "every member is well|starts while|still holds"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_defect_is_found(plant: Plant, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(InvariantBroken, match=found):
        for seed in range(736, 796):
            Scenario(seed).run(1000)
