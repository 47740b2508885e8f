"""Panes: side by side where there is room, else one at a time as tabs. Keys go to the one that shows its cursor."""

from __future__ import annotations

import pytest

from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.pages import PAGES
from tests.ui.driving import command, console, seen, settled, status
from tests.ui.worlds import busy_world

NARROW, WIDE = (80, 24), (120, 40)


def shown(app: OpsConsoleApp) -> list[str]:
    """The panes of this page that take up room."""
    return [name for name in PAGES[app.page].panes if app.query_one(f"#{name}").region.height > 0]


async def test_a_narrow_page_shows_one_pane_and_names_the_others() -> None:
    async with console(busy_world(), NARROW) as (app, pilot):
        await pilot.pause()
        for name in PAGES["overview"].panes:
            assert shown(app) == [name] and app.pane == name
            assert seen(app).splitlines()[1].count("[") == 1, "brackets, not only a colour"
            await pilot.press("tab")
            await pilot.pause()
        assert app.pane == "o-needs", "round again"
        await pilot.press("shift+tab")
        assert app.pane == "o-queue"


async def test_a_wide_page_shows_all_and_zooms_one() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("3")
        await pilot.pause()
        assert shown(app) == ["t-queue", "t-runs"]
        await pilot.press("tab", "z")
        await pilot.pause()
        assert shown(app) == ["t-runs"] and "[Running, 1 unverified (6)]" in seen(app)
        await pilot.press("escape")
        await pilot.pause()
        assert shown(app) == ["t-queue", "t-runs"]


async def test_growing_and_shrinking_the_terminal_keeps_the_pane() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("3", "tab", "j")
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert shown(app) == ["t-runs"] and app.table is not None and app.table.rowset.cursor == "w2~1"
        await pilot.resize_terminal(*WIDE)
        await pilot.pause()
        assert len(shown(app)) == 2 and app.pane == "t-runs"


async def test_only_the_pane_that_keys_go_to_shows_its_cursor() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        assert (await settled(app, pilot)).count(">") == 1
        await pilot.press("tab", "j")
        text = await settled(app, pilot)
        assert text.count(">") == 1 and "> olmo" in text


async def test_a_click_chooses_a_pane() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("3")
        await pilot.pause()
        await pilot.click("#t-runs", offset=(5, 4))
        assert app.pane == "t-runs" and app.table is not None and app.table.rowset.cursor == "w3~1"


async def test_a_pane_without_rows_has_nothing_to_act_on() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("tab", "tab", "D")
        assert app.pane == "o-map" and "select a host first" in status(app)


async def test_a_reason_opens_the_queue_with_those_that_wait_for_it() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("shift+tab", "enter")
        await pilot.pause()
        assert "Waiting (1 of 3)  /reason=cluster_too_small" in seen(app) and app.pane == "t-queue"


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_what_a_row_has_no_room_for_stands_on_the_status_line(size: tuple[int, int]) -> None:
    async with console(busy_world(), size, write="") as (app, pilot):
        await pilot.press("3", "j")
        await pilot.pause()
        assert "WHY: too few GPUs serve, even once all runs end: not all of" in status(app)
        await pilot.press("4")
        await pilot.pause()
        assert status(app) == ""


async def test_sorting_by_command_completes_and_says_which_columns_there_are() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "colon", *"sort", "space", *"bu", "tab", "enter")
        await pilot.pause()
        table = app.table
        assert table is not None and table.rowset.order == ("busy",)
        await command(pilot, "sort -host")
        assert table.rowset.rows[0].key == "gpu006"
        await command(pilot, "sort health -host")
        assert [row.key for row in table.rowset.rows][:2] == ["gpu003", "gpu006"]
        await command(pilot, "sort natural")
        assert table.rowset.rows[0].key == "gpu001"
        await command(pilot, "sort nonsense")
        assert "no column is called 'nonsense': host" in status(app)
