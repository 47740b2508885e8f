"""The story of one seed: hours of faults with every invariant looked at after every step, then calm."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field

from scheduler_core.errors import InvariantBroken
from scheduler_core.invariants import RULES
from scheduler_core.sim.calm import calm_down
from scheduler_core.sim.faults import STORM
from scheduler_core.sim.scenario import START, Scenario
from scheduler_core.units import HOUR, MINUTE

LONGEST_MS = (40 * MINUTE, 4 * HOUR, 12 * HOUR)  # of what runs: one world is idle at times, another never
TOLD = 12  # of the last decisions


@dataclass
class Story:
    """`broken`: what went wrong, or nothing; `last`: then the decisions before it, each with its hour."""

    seed: int
    broken: str = ""
    last: list[str] = field(default_factory=list)
    ticks: int = 0
    simulated_ms: int = 0
    checks: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)  # observations, by kind
    decisions: Counter[str] = field(default_factory=Counter)


def tell(hours: float, seed: int) -> Story:
    """The same seed and hours tell the same story."""
    scenario, story = Scenario(seed, STORM), Story(seed)
    scenario.world.longest_ms = LONGEST_MS[seed % len(LONGEST_MS)]
    try:
        while scenario.now < START + hours * HOUR:
            scenario.turn()
        calm_down(scenario)
    except InvariantBroken as error:
        story.broken = str(error)
    except Exception as error:  # whatever it is, the engine should not raise it
        where = traceback.extract_tb(error.__traceback__)[-1]
        story.broken = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno} of {where.filename})"
    if story.broken:
        story.last = _last(scenario)
    story.ticks, story.simulated_ms = len(scenario.ticks), scenario.now - START
    story.checks = len(scenario.ticks) * len(RULES)
    story.faults = +scenario.world.injected
    for tick in scenario.ticks:
        story.events.update(type(fact).__name__ for fact in tick.observations)
        story.decisions.update(type(decision).__name__ for decision in tick.step.decisions)
    return story


def _last(scenario: Scenario) -> list[str]:
    """The last decisions; those that say that a pass took place are left out."""
    found = list[str]()
    for tick in reversed(scenario.ticks):
        told = [d for d in tick.step.decisions if type(d).__name__ != "PassDone"]
        found += [f"{(tick.now - START) / HOUR:9.4f} h  {decision}" for decision in reversed(told)]
        if len(found) >= TOLD:
            break
    return found[TOLD - 1 :: -1]
