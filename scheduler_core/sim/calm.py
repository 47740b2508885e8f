"""Liveness: faults stop and nobody asks for anything more. Then every drain ends, everything startable starts and ends,
no claim and no reservation is left over, and nobody is preempted again and again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.errors import InvariantBroken
from scheduler_core.fleet import HostState
from scheduler_core.lapses import lapsed
from scheduler_core.observations import (
    BreakerReset,
    By,
    InventoryLoaded,
    Observation,
    ReleaseRequested,
    UndrainRequested,
)
from scheduler_core.shapes import matches, shapes, sizes_of
from scheduler_core.sim.faults import NONE
from scheduler_core.state import ClusterState
from scheduler_core.units import MINUTE
from scheduler_core.workload import Workload, WorkloadPhase

if TYPE_CHECKING:
    from scheduler_core.sim.scenario import Scenario

OPERATOR = By("ops", "all is well again")
STEPS = 5_000  # in which all of it must come to rest
PREEMPTIONS = 20  # of one workload meanwhile
STRIDE_MS = 2 * MINUTE
LONGEST_MS = 5 * MINUTE  # of what starts from now on


def calm_down(scenario: Scenario) -> None:
    """First with the hosts as operators left them, then with all of them back. Raises InvariantBroken."""
    seen = len(scenario.ticks)
    _faults_stop(scenario)
    _rest(scenario)
    problems = [
        f"the drain {d.id} of {d.host} does not end" for d in scenario.engine.state.drains.values() if not d.ended
    ]
    problems += _left(scenario.engine.state)
    if not problems:
        _operators_return_all(scenario)
        _rest(scenario)
        problems = _left(scenario.engine.state)
    stops = Counter(
        decision.run.rpartition("~")[0]
        for tick in scenario.ticks[seen:]
        for decision in tick.step.decisions
        if isinstance(decision, StopDecided) and decision.cause is StopCause.PREEMPT
    )
    problems += [f"{wid} is preempted {times} times" for wid, times in stops.items() if times > PREEMPTIONS]
    if problems:
        raise InvariantBroken(f"faults have stopped: {'; '.join(problems)}")


def _faults_stop(scenario: Scenario) -> None:
    """Every host answers and is well again."""
    world = scenario.world
    scenario.faults = world.faults = NONE
    world.longest_ms = LONGEST_MS
    found = list[Observation]()
    for host in world.hosts.values():
        world.cut(host)
        host.unfit = host.foreign = 0
        found += world.reconnect(host.name)
    scenario.step(found)
    scenario.look_again()


def _operators_return_all(scenario: Scenario) -> None:
    state = scenario.engine.state
    away = [name for name, host in state.hosts.items() if host.state is not HostState.SERVING]
    held = [wid for wid, record in state.workloads.items() if record.phase is WorkloadPhase.HELD]
    by = OPERATOR
    scenario.step(
        [
            InventoryLoaded(scenario.policy, scenario.tree, scenario.fleet),
            *(scenario.world.seen(host.name) for host in scenario.fleet),
            *(UndrainRequested(name, by) for name in away),
            *(ReleaseRequested(wid, by) for wid in held),
            BreakerReset(by),
        ]
    )


def _rest(scenario: Scenario) -> None:
    """From event to event, until time alone changes nothing any more."""
    world = scenario.world
    for _ in range(STEPS):
        state = scenario.engine.state
        ends = [*state.cordons_end.values(), *state.holds_end.values()]
        instants = [at for at in (world.agenda.next_at(), scenario.engine.next_wakeup(), *ends) if at is not None]
        if not instants:
            return
        scenario.now = max(scenario.now + STRIDE_MS, min(instants))
        facts = lapsed(state, scenario.now) + world.advance(scenario.now)
        for host in world.hosts.values():
            if not host.reachable:  # it was powered off, by a command from before
                facts += world.reconnect(host.name)
        scenario.step(facts)
    raise InvariantBroken(f"faults have stopped, and it does not come to rest in {STEPS} steps: {_left(state)}")


def _left(state: ClusterState) -> list[str]:
    """What should have started, or been given up."""
    found = [f"{wid} keeps its reservation" for wid in state.index.reservations]
    found += [f"{wid} keeps its claim" for wid in state.index.claimants]
    found += [f"{run} does not end" for run in state.runs]
    waiting = (record.workload for record in state.waiting())
    return found + [f"{w.id} waits, and could start" for w in waiting if _could_start(state, w)]


def _could_start(state: ClusterState, workload: Workload) -> bool:
    """Nothing runs: do caps and hosts leave room for it?"""
    caps = (state.budgets.by_id[b].max_gpus for b in state.budgets.chains[workload.budget])
    if any(cap is not None and cap < workload.gpus for cap in caps):
        return False
    sizes = sizes_of((record.host for record in state.hosts.values()), workload.needs)
    fit = [r for r in state.hosts.values() if r.free == r.host.all_slots and matches(r.host, workload.needs)]
    for shape in shapes(workload, sizes):
        able = [r for r in fit if (r.host.gpus == shape.gpus if shape.whole else r.host.gpus >= shape.gpus)]
        if len(able) >= shape.hosts:
            return True
    return False
