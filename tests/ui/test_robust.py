"""Outages, failing workers, tiny terminals, and leaving."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

import pytest
from rich.cells import cell_len
from textual import events
from textual.widgets import Button

from opsconsole.ui.base import ConsoleBase
from opsconsole.ui.palette import Palette
from scheduler_core.units import HOUR
from tests.core.clusters import Cluster
from tests.ui.driving import console, filled_plan, seen, settled
from tests.ui.worlds import FakeSource, busy_world, long_queue
from tests.waiting import until


async def test_a_picture_that_fails_is_said_and_the_old_one_stays() -> None:
    source = busy_world()
    async with console(source, (120, 40)) as (app, pilot):
        await pilot.press("2")
        source.broken = OSError("database is locked")
        app.redraw()
        await pilot.pause()
        text = seen(app)
        assert "picture failed" in text and "OSError: database is locked" in text and "gpu001" in text
        app.redraw()
        assert " times)" in app.alerts.texts["picture"]
        source.broken = None
        app.redraw()
        await pilot.pause()
        assert "picture failed" not in seen(app)


async def test_a_worker_that_raises_is_shown_counted_and_begun_again() -> None:
    """G5-10."""
    source = busy_world()
    source.run_fails = RuntimeError("poll loop fell over [/]")
    async with console(source, (120, 40)) as (app, pilot):
        await pilot.pause(0.7)
        app.redraw()
        await pilot.pause()
        assert "source failed" in seen(app) and "poll loop fell over [/]" in seen(app)
        assert app.is_running


async def test_work_beside_is_kept_going_and_its_failure_shown() -> None:
    """G5-10."""
    begun = 0

    async def falls_over() -> None:
        nonlocal begun
        begun += 1
        raise ValueError("the file is odd")

    source = busy_world()
    source.beside = {"inventory": falls_over}
    async with console(source, (120, 40)) as (app, _):
        await until(lambda: begun > 1 and "ValueError: the file is odd" in seen(app), "it to begin again")
        assert "inventory failed" in app.alerts.texts["inventory"]


@pytest.mark.parametrize("where", ["header_cells", "show_map"])
async def test_drawing_that_raises_does_not_end_the_app(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """G5-10."""
    async with console(busy_world(), (120, 40)) as (app, pilot):

        def broken(*_: object) -> None:
            raise ValueError("a bug")

        monkeypatch.setattr(f"opsconsole.ui.drawing.{where}", broken)
        app.redraw()
        await pilot.pause()
        monkeypatch.undo()
        assert "ValueError: a bug" in app.alerts.texts["drawing"]
        app.redraw()
        assert "drawing" not in app.alerts.texts


async def test_ages_tick_while_the_source_is_silent() -> None:
    source = busy_world()
    async with console(source, (120, 40)) as (app, pilot):
        await pilot.press("2")
        source.ages = dict.fromkeys(source.cluster.hosts, 7.0)
        await pilot.pause(1.3)
        assert "◐ 7s" in seen(app), "the version did not change: the timer of the ages did it"


async def test_a_lost_leader_and_an_old_picture_turn_the_header() -> None:
    source = busy_world()
    async with console(source, (120, 40)) as (app, pilot):
        source.lag_s = 12.0
        app.redraw()
        await pilot.pause()
        assert "picture 12s OLD" in seen(app)
        source.leader = "nobody"
        app.redraw()
        await pilot.pause()
        assert "NO LEADER" in seen(app)


@pytest.mark.parametrize("seed", range(2))
async def test_resize_storms_during_dialogs(seed: int) -> None:
    """G5-14: 1x1 to 400x100, with a dialog, with details, with nothing open."""
    draw = random.Random(seed)
    source = busy_world()
    async with console(source, (10, 3)) as (app, pilot):
        await pilot.pause()
        for step in range(30):
            if step % 10 == 0:
                await pilot.press("escape", draw.choice("123457"), draw.choice(("D", "x", "question_mark", "colon")))
            await pilot.resize_terminal(draw.randrange(1, 400), draw.randrange(1, 100))
            if draw.random() < 0.3:
                source.changed()
                app.redraw()
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.is_running and not app.alerts.texts, app.alerts.texts


async def test_a_terminal_that_is_too_small_says_so() -> None:
    async with console(busy_world(), (80, 24)) as (app, pilot):
        await pilot.press("2", "D")
        await pilot.resize_terminal(50, 10)
        await pilot.pause()
        assert "needs at least 60×15, this is 50×10" in seen(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "Back" in seen(app) and "Drain" in seen(app)


async def test_twenty_by_five_says_so_and_keys_do_no_harm() -> None:
    source = busy_world()
    async with console(source, (20, 5)) as (app, pilot):
        await pilot.pause()
        assert "needs at least 60×15" in seen(app).replace("\n", "") or "needs at least" in seen(app)
        await pilot.press("2", "D", "enter", "x", "escape", "question_mark", "colon", "escape", "tab", "G")
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "gpu006" in seen(app) and source.asked == [] and not app.alerts.texts


async def test_the_palette_on_a_terminal_without_room_for_its_list() -> None:
    """Textual's own fails with a KeyError at page down."""
    async with console(busy_world(), (10, 3)) as (app, pilot):
        await pilot.press("ctrl+p", "down", "down", "pagedown", "pageup", "end", "home")
        await pilot.resize_terminal(80, 24)
        await pilot.press("pagedown")
        assert isinstance(app.screen, Palette) and app.failure is None


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("button", ["#back", "#commit"])
async def test_a_dialog_ends_once_and_takes_nothing_else_along(button: str) -> None:
    """As keys in a burst do: the second press is looked at when the dialog has gone, or the palette covers it."""
    source = busy_world()
    async with console(source, (120, 40)) as (app, pilot):
        pressed = (await filled_plan(app, pilot, "2", "gpu003", "C")).query_one(button, Button)
        pressed.press()
        pressed.press()
        await pilot.pause()
        assert len(app.screen_stack) == 1 and len(source.asked) == (button == "#commit")
        pressed = (await filled_plan(app, pilot, "2", "gpu004", "C")).query_one(button, Button)
        app.action_do("palette")
        pressed.press()
        await pilot.pause()
        palette = app.screen
        assert isinstance(palette, Palette) and len(app.screen_stack) == 3
        palette.dismiss()
        palette.dismiss()
        await pilot.pause()
        assert len(app.screen_stack) == 2


@pytest.mark.parametrize("opens", ["explain", "help", "cordon", "drain"])
@pytest.mark.parametrize("key", ["escape", "j", "pagedown", "f2", "enter"])
async def test_a_key_right_behind_the_one_that_opens_a_dialog(opens: str, key: str) -> None:
    """It finds the dialog made, however late that is."""
    async with console(busy_world(), (120, 40)) as (app, pilot):
        await pilot.press("2")
        app.action_do(opens)
        await app.on_event(events.Key(key, None))
        await pilot.pause(0.1)
        assert app.is_running and len(app.screen_stack) == (1 if key in ("escape", "enter") else 2)


async def test_names_of_any_kind_keep_every_line_as_wide_as_the_screen() -> None:
    """Wide and combining characters, escapes, newlines, directions, markup: in tables, dialogs and the header."""
    names = (
        "日本語の名前でとても長い",
        "e\u0301" * 30,
        "👩\u200d💻" * 9,
        "عربي",
        "\x1b[31mred\x1b[2J",
        "a\nb\rc",
        "[red]x[/]",
    )
    cluster = Cluster({"a": 1}, {"gpu01": 8})
    for n, name in enumerate(names):
        cluster.submit(f"w{n}", "a", 1 + n % 2, HOUR, owner=name, name=name)
    source = FakeSource(cluster)
    async with console(source, (80, 24)) as (app, pilot):
        for keys in (("3",), ("tab",), ("x",), ("escape", "K"), ("escape", "7"), ("1",)):
            await pilot.press(*keys)
            text = await settled(app, pilot)
            assert all(cell_len(line) <= 80 for line in text.splitlines()), text
            assert "\x1b" not in text and len(text.splitlines()) == 24


async def test_ten_thousand_waiting_leave_the_keys_alone() -> None:
    """Drawing is rationed: a picture that is dear to draw is drawn more rarely, and keys go first."""
    source = long_queue(10_000)
    async with console(source, (120, 40)) as (app, pilot):
        await pilot.press("3")
        slowest = 0.0
        for _ in range(20):
            begun = time.perf_counter()
            await pilot.press("j")
            slowest = max(slowest, time.perf_counter() - begun)
        assert app.table is not None and app.table.rowset.at == 20


@pytest.mark.parametrize("dialog", ["help", "keys", "sort", "watches", "drain"])
async def test_a_hang_up_while_a_dialog_is_being_made_is_no_defect(dialog: str) -> None:
    async with console(busy_world(), (120, 40)) as (app, pilot):
        await pilot.press("2")
        app.action_do(dialog)
        app.exit(129)
        await until(lambda: not app.is_running, "the console to end")
        assert app.failure is None and app.return_value == 129


async def test_leaving_does_not_wait_for_what_hangs() -> None:
    """G5-11: the source's work ignores that it is cancelled, and its close hangs."""
    source, seen_off = busy_world(), asyncio.Event()
    source.close_takes_s = 60.0

    async def stubborn() -> None:
        while not seen_off.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await seen_off.wait()

    source.run = stubborn  # type: ignore[method-assign]
    app_type: type[ConsoleBase]
    async with console(source) as (app, pilot):
        app_type = type(app)
        begun = time.monotonic()
        await pilot.press("ctrl+q")
        await pilot.pause()
    assert time.monotonic() - begun < 5.0
    seen_off.set()
    assert app_type is not None
