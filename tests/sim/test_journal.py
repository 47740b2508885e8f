"""What is journalled is enough (design.md, journal first): quiet ticks, wake-ups, and a crash at any point."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import msgspec
import pytest

from scheduler_core.engine import Engine
from scheduler_core.image import StateImage, from_image, to_image
from scheduler_core.sim.scenario import Scenario


def copied(engine: Engine) -> Engine:
    return Engine(from_image(msgspec.json.decode(msgspec.json.encode(to_image(engine.state)), type=StateImage)))


def told(engine: Engine) -> bytes:
    return msgspec.json.encode(to_image(engine.state))


@pytest.mark.parametrize("seed", range(400, 404))
def test_ticks_without_observations_and_decisions_need_no_journal(seed: int) -> None:
    """The live loop steps several times a second; only what happened is written down, and replays to the same."""
    scenario, draw = Scenario(seed), Random(seed)
    for _ in range(300):
        for _ in range(3):
            scenario.now += draw.randrange(2000)
            scenario.step(scenario.world.advance(scenario.now))
        scenario.turn()
    written = [tick for tick in scenario.ticks if tick.observations or tick.step.decisions]
    assert len(written) < len(scenario.ticks)
    fresh, folded = Engine(), Engine()
    for tick in written:
        assert fresh.step(tick.now, tick.observations) == tick.step
        folded.fold(tick.now, tick.observations, tick.step.decisions)
    for engine in (fresh, folded, scenario.engine):
        engine.fold(scenario.now, (), ())
    assert told(fresh) == told(folded) == told(scenario.engine)


@pytest.mark.parametrize("seed", range(500, 504))
def test_before_the_next_wakeup_time_alone_does_nothing(seed: int) -> None:
    scenario = Scenario(seed)
    for number in range(400):
        scenario.turn()
        if number % 4 == 0:
            at = scenario.engine.next_wakeup()
            probe = scenario.now + 7 * 24 * 3_600_000 if at is None else at - 1
            if probe > scenario.now:
                assert deepcopy(scenario.engine).step(probe).decisions == ()


@pytest.mark.parametrize("seed", range(600, 606))
def test_a_crash_loses_what_was_on_its_way_and_nothing_else(seed: int) -> None:
    """The engine is rebuilt from a snapshot and its tail; commands without outcome are looked up, not resent blindly.

    The world checks that nothing runs twice or is stopped early (G2-18).
    """
    scenario, draw = Scenario(seed), Random(seed)
    image, at = told(scenario.engine), len(scenario.ticks)
    for number in range(500):
        scenario.turn()
        if number % 29 == 0:
            image, at = told(scenario.engine), len(scenario.ticks)
        if draw.randrange(25) == 0:
            recovered = Engine(from_image(msgspec.json.decode(image, type=StateImage)))
            for tick in scenario.ticks[at:]:
                recovered.fold(tick.now, tick.observations, tick.step.decisions)
            assert told(recovered) == told(scenario.engine)
            assert recovered.outstanding() == scenario.engine.outstanding()
            scenario.engine = recovered
            scenario.look_again()
