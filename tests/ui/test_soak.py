"""A console that stays open: what it keeps does not grow with the polls. `make soak-console` takes 10,000 of them."""

from __future__ import annotations

import gc

from textual.pilot import Pilot

from opsconsole.ui.app import OpsConsoleApp
from tests.ui.living import LivingWorld

KEYS = ("1", "j", "2", "j", "enter", "escape", "3", "S", "escape", "x", "escape", "4", "5", "7", "k", "slash", "escape")
POLLS = 3 * len(KEYS)  # so that the same is open at the end of each round
WARM = 4 * POLLS  # until Textual's own caches are full
MOST_GROWTH = 1.016


async def test_what_a_console_keeps_does_not_grow_with_the_polls() -> None:
    """Objects that live, once every page has been seen: one more round adds no more than one or two of a hundred."""
    world = LivingWorld()
    gc.collect()
    gc.freeze()  # what other tests keep does not count
    async with OpsConsoleApp(world.source).run_test(size=(120, 40)) as pilot:
        await watch(world, pilot, WARM)
        first = len(gc.get_objects())
        await watch(world, pilot, POLLS)
        assert len(gc.get_objects()) < first * MOST_GROWTH
    gc.unfreeze()
    assert not world.source.asked


async def watch(world: LivingWorld, pilot: Pilot[int], polls: int) -> None:
    app = pilot.app
    assert isinstance(app, OpsConsoleApp)
    for number in range(polls):
        world.poll()
        app.redraw()
        if number % 3 == 0:
            await pilot.press(KEYS[number // 3 % len(KEYS)])
    gc.collect()
