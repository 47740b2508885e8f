"""The handover on the screen: by `:handover`, to read and to copy."""

from __future__ import annotations

from opsconsole.ui.desk import Desk
from opsconsole.ui.screens.handover import HandoverScreen
from opsconsole.ui.screens.text import TextScreen
from tests.ui.driving import command, console, seen, status
from tests.ui.worlds import HOSTILE, busy_world


async def test_a_shift_is_told_and_copied() -> None:
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return "/home/kim/copied.txt"

    async with console(busy_world(), desk=Desk(save_copy=keep)) as (app, pilot):
        await command(pilot, "handover")
        await app.supervisor.tasks["handover"]
        await pilot.pause()
        assert isinstance(app.screen, HandoverScreen)
        shown = seen(app)
        assert "# Handover of h100" in shown and "Sun 30 Nov 02:32 UTC to Sun 30 Nov 14:32 UTC (12h)" in shown
        assert "**gpu001**: mode contract, 1 run left" in " ".join(shown.split())
        await pilot.press("y")
        await pilot.pause()
        assert kept == [app.screen.markdown] == [app.clipboard] and "/home/kim/copied.txt" in seen(app)
        await pilot.press("escape")
        assert not isinstance(app.screen, TextScreen)


async def test_a_span_that_is_none_is_refused() -> None:
    async with console(busy_world()) as (app, pilot):
        await command(pilot, "handover yesterday")
        assert "handover: 'yesterday' is no span of time" in status(app)


async def test_names_are_text_in_it() -> None:
    source = busy_world()
    source.cluster.finish("w6", 1)
    source.happen()
    async with console(source) as (app, pilot):
        await command(pilot, "handover 1h")
        await app.supervisor.tasks["handover"]
        await pilot.pause()
        assert isinstance(app.screen, HandoverScreen)
        assert HOSTILE not in app.screen.markdown


async def test_a_store_that_cannot_be_read_is_said() -> None:
    source = busy_world()

    async def fails(since_ms: int) -> None:
        raise OSError("the store has gone")

    source.history = fails  # type: ignore[assignment,method-assign]
    async with console(source) as (app, pilot):
        await command(pilot, "handover")
        await pilot.pause(0.1)
        assert "handover failed: OSError: the store has gone" in seen(app)
