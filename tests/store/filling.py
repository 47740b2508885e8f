"""Stores with a life behind them: the journal of a seeded scenario."""

from __future__ import annotations

from pathlib import Path

from opsconsole.store.store import Store
from scheduler_core.engine import Engine
from scheduler_core.sim.scenario import Scenario

SEED = 7


def scenario_of(ticks: int, seed: int = SEED) -> Scenario:
    made = Scenario(seed)
    made.run(ticks)
    return made


def commit_all(store: Store, epoch: int, scenario: Scenario) -> None:
    """Every tick of it, numbered from 1."""
    for number, tick in enumerate(scenario.ticks, start=1):
        store.commit(epoch, number, tick.now, tick.observations, tick.step.decisions, tick.step.commands)


def filled(path: Path, ticks: int) -> tuple[Store, Scenario]:
    """A store that leads under epoch 1."""
    store, scenario = Store(path), scenario_of(ticks)
    epoch = store.acquire("serve")
    assert epoch == 1
    commit_all(store, epoch, scenario)
    return store, scenario


def folded(scenario: Scenario, ticks: int | None = None) -> Engine:
    engine = Engine()
    for tick in scenario.ticks[:ticks]:
        engine.fold(tick.now, tick.observations, tick.step.decisions)
    return engine
