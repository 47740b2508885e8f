"""How every screen and dialog looks, from a clock that stands still: at three sizes, and without colour."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from opsconsole.presenting.view import OpenPlan
from opsconsole.ui.app import OpsConsoleApp
from tests.ui.driving import check_snapshot, console, seen, settled
from tests.ui.worlds import FakeSource, told_world

SIZES = ((80, 24), (120, 40), (200, 60))
# Each with the keys that lead there from the one before.
LOOKS = {
    "overview": "1",
    "hosts": "2",
    "queue": "3",
    "budgets": "4",
    "drains": "5",
    "timeline": "7",
    "log": "8",
    "host": "2 j j enter",
    "workload": "3 tab G enter tab",
    "plan": "2 D",
    "explain": "escape x",
    "help": "escape question_mark",
    "sort": "escape S space space j j space",
    "columns": "enter c j space",
    "views": "enter colon s a v e _ v i e w space n i g h t enter colon v i e w enter",
    "filter": "escape slash h e a tab",
    "palette": "escape ctrl+p d r a",
    "keys": "escape escape colon k e y s enter",
    "watches": "escape n colon w a t c h e s enter",
    "handover": "escape colon h a n d o v e r enter",
    "results": "escape colon r e s u l t s enter",
    "fields": "escape colon w r i t e space 1 5 m space f a n enter "
    "colon c o r d o n space g p u 0 0 3 space g p u 0 0 4 space - - f o r space 2 h enter",
    "lead": "escape colon l e a d space f a n enter",
}


def world() -> FakeSource:
    source = told_world()
    source.others = [OpenPlan("lee", "drain", ("gpu003",), source.view().wall_ms)]
    return source


async def go(app: OpsConsoleApp, pilot: Pilot[int], name: str) -> None:
    app.window.now = lambda: 0.0
    await pilot.press(*LOOKS[name].split())
    while name == "workload" and "saved 20%" not in seen(app):  # output comes when it comes
        await pilot.pause(0.05)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
async def test_every_screen_looks_as_it_did(size: tuple[int, int]) -> None:
    async with console(world(), size, write="") as (app, pilot):
        for name in LOOKS:
            await go(app, pilot, name)
            await check_snapshot(app, pilot, f"{name}-{size[0]}")
            assert coloured(app)


async def test_without_colour_and_after_a_resize_every_screen_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every colour that is left is a grey; marks and words are where they were."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with console(world(), (80, 24), write="") as (app, pilot):
        await settled(app, pilot)
        await pilot.resize_terminal(120, 40)
        for name in LOOKS:
            await go(app, pilot, name)
            await check_snapshot(app, pilot, f"{name}-120")
            assert not coloured(app), (name, coloured(app))


def coloured(app: OpsConsoleApp) -> set[str]:
    """The colours on the screen that are no greys."""
    styles = {segment.style for line in app.screen._compositor.render_strips() for segment in line if segment.style}
    colours = {colour for style in styles for colour in (style.color, style.bgcolor) if colour and colour.triplet}
    return {c.name for c in colours if c.triplet and len({*c.triplet}) > 1}
