"""Which rows a table shows, in which order, with which columns; views under names; what outlives a start."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from opsconsole.cli.arrangements import ArrangementsFile
from opsconsole.presenting.arranging import Arrangement, Arrangements, Kept, View
from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.desk import Desk
from opsconsole.ui.screens.plan import PlanScreen
from opsconsole.ui.widgets.table import Table
from tests.ui.driving import command, console, seen, status
from tests.ui.worlds import busy_world, empty_world

WIDE = (140, 40)


def kept_in(path: Path) -> ArrangementsFile:
    return ArrangementsFile(path / "views.json")


async def keeping(app: OpsConsoleApp, pilot: Pilot[int], line: str) -> None:
    """A command whose effect is kept."""
    await command(pilot, line)
    await app.supervisor.tasks["keeping"]
    await pilot.pause()


async def test_the_filter_line_offers_what_could_come_next_and_marks_what_is_wrong() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "slash", *"st")
        await pilot.pause()
        assert "state=" in seen(app).splitlines()[-2]
        await pilot.press("tab")
        await pilot.press("d", "tab")
        await pilot.pause()
        assert app.table is not None and app.table.rowset.filter.text == "state=draining"
        assert list(app.table.rowset.place) == ["gpu001"]
        await pilot.press("space", *"gpsu", "equals_sign", "8")
        await pilot.pause()
        assert "no column 'gpsu'; did you mean gpus?" in seen(app)
        assert list(app.table.rowset.place) == ["gpu001"], "what was right before stays"
        await pilot.press("enter")
        await pilot.pause()
        assert "did you mean gpus?" in seen(app).splitlines()[-2], "the line stays until it can be understood"
        await pilot.press("escape")
        assert len(app.table.rowset.rows) == 6


async def test_the_sort_picker_sorts_at_once_by_one_column_and_then_by_others() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "S")
        await pilot.pause()
        assert "Sort by" in seen(app)
        table = app.query_one("#t-hosts", Table)
        await pilot.press("j", "j", "enter")
        await pilot.pause()
        assert [*table.rowset.order] == ["health"] and "Sort by" not in seen(app)
        assert "HEALTH▲" in seen(app)
        await pilot.press("S", "space", "space")
        await pilot.pause()
        assert [*table.rowset.order] == ["health", "-host"]
        assert "HEALTH▲1" in seen(app) and "HOST▼2" in seen(app)
        assert list(table.rowset.place)[:2] == ["gpu003", "gpu006"]
        await pilot.press("escape")
        await pilot.pause()
        assert [*table.rowset.order] == ["health"], "Esc puts back what was"
        await pilot.press("S", "backspace", "enter")
        await pilot.pause()
        assert not table.rowset.order and "HEALTH▲" not in seen(app)


async def test_the_column_chooser_shows_and_hides_and_puts_back() -> None:
    async with console(busy_world(), (100, 30)) as (app, pilot):
        await pilot.press("2", "c")
        table = app.query_one("#t-hosts", Table)
        await pilot.press("j", "space", "G", "space")
        await pilot.pause()
        assert "fresh" not in table.shown() and "run_ids" in table.shown()
        await pilot.press("enter")
        await pilot.pause()
        assert "RUN IDS" in seen(app) and "FRESH" not in seen(app)
        await command(pilot, "columns host problems")
        assert table.shown() == ("host", "problems") and "GPU 5" in seen(app)
        await command(pilot, "columns usual")
        assert "FRESH" in seen(app)
        await command(pilot, "columns nonsense")
        assert "no column is called 'nonsense': host fresh" in status(app)


async def test_order_and_columns_outlive_the_console_and_a_filter_does_not(tmp_path: Path) -> None:
    async with console(busy_world(), WIDE, desk=Desk(arrangements=kept_in(tmp_path))) as (app, pilot):
        await pilot.press("2")
        await keeping(app, pilot, "sort -host")
        await keeping(app, pilot, "columns host state")
        await command(pilot, "filter gpu00")
    async with console(busy_world(), WIDE, desk=Desk(arrangements=kept_in(tmp_path))) as (app, pilot):
        await pilot.press("2")
        await pilot.pause()
        assert app.table is not None
        assert app.table.arrangement == Arrangement("", ("-host",), ("host", "state"))
        assert next(iter(app.table.rowset.place)) == "gpu006"


async def test_a_view_is_kept_shown_listed_and_deleted(tmp_path: Path) -> None:
    async with console(busy_world(), WIDE, desk=Desk(arrangements=kept_in(tmp_path))) as (app, pilot):
        await pilot.press("2")
        await command(pilot, "filter state=draining")
        await keeping(app, pilot, "sort -host")
        await keeping(app, pilot, "save_view mine")
        assert "view mine kept: /state=draining, by -host" in status(app)
        await keeping(app, pilot, "save_view two words")
        assert "one word" in status(app)
    async with console(busy_world(), WIDE, desk=Desk(arrangements=kept_in(tmp_path))) as (app, pilot):
        await command(pilot, "view mine")
        assert app.page == "hosts" and app.table is not None
        assert list(app.table.rowset.place) == ["gpu001"] and "/state=draining" in seen(app)
        await pilot.press("1")
        await command(pilot, "view")
        assert "Views" in seen(app) and "/state=draining, by -host" in seen(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.page == "hosts"
        await command(pilot, "view")
        await pilot.press("delete", "escape")
        await app.supervisor.tasks["keeping"]
        await pilot.pause()
        assert "view mine is deleted" in status(app)
        await command(pilot, "view mine")
        assert "no view is called 'mine'" in status(app)


async def test_a_broken_file_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    file = kept_in(tmp_path)
    file.path.write_text('{"views": [')
    async with console(busy_world(), WIDE, desk=Desk(arrangements=file)) as (app, pilot):
        assert "✖ /" in seen(app) and f"{file.path}: " in app.alerts.texts["views"]
        await pilot.press("2")
        await keeping(app, pilot, "sort -host")
        assert "mended or removed" in status(app)
        assert app.table is not None and app.table.rowset.order == ("-host",), "it sorts all the same"
        assert file.path.read_text() == '{"views": [' and "views" in app.alerts.texts


def test_what_is_no_file_of_ours_is_neither_waited_for_nor_followed_to_its_depth(tmp_path: Path) -> None:
    file = kept_in(tmp_path)
    os.mkfifo(file.path)
    with pytest.raises(ValueError, match="not a plain file; views"):
        file.load()
    file.path.unlink()
    file.path.write_text('{"other":' + "[" * 100_000)
    with pytest.raises(ValueError, match="recursion depth"):
        file.load()


def test_consoles_side_by_side_keep_each_others_views(tmp_path: Path) -> None:
    one, other = kept_in(tmp_path), kept_in(tmp_path)
    for file, name in ((one, "a"), (other, "b")):
        file.change(lambda kept, name=name: kept.named(name, View("t-hosts", Arrangement("x"))))  # type: ignore[misc]
    assert set(other.kept.views) == {"a", "b"} and [p.name for p in tmp_path.iterdir()] == ["views.json"]


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        ArrangementsFile(tmp_path / "file" / "views.json").change(lambda kept: kept)


async def test_a_view_of_another_version_says_what_it_does_not_know() -> None:
    arrangements = Arrangements()
    arrangements.change(lambda kept: kept.named("old", View("t-hosts", Arrangement("gone=1"))))
    arrangements.change(lambda kept: kept.named("lost", View("t-none", Arrangement())))
    async with console(busy_world(), WIDE, desk=Desk(arrangements=arrangements)) as (app, pilot):
        await command(pilot, "view old")
        assert "view old: gone=1: no column 'gone'" in status(app)
        await command(pilot, "view lost")
        assert "this console has no table 't-none'" in status(app)


async def test_pickers_open_where_there_is_nothing() -> None:
    async with console(empty_world(), (80, 24)) as (app, pilot):
        for page in "12345":
            for key in ("S", "c"):
                await pilot.press(page, key, "j", "space", "G", "space", "escape")
                await pilot.pause()
        await command(pilot, "view")
        await pilot.press("space", "enter", "delete", "escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1 and not app.alerts.texts


async def test_a_plan_for_marked_rows_says_so_and_how_many_of_them_the_filter_hides() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "j", "space", "space")
        await command(pilot, "filter gpu003")
        await pilot.press("C")
        await pilot.pause()
        assert "Cordon: 2 hosts, the marked ones (1 hidden by the filter)" in seen(app)
        assert isinstance(app.screen, PlanScreen) and app.screen.targets == ["gpu002", "gpu003"]
        await pilot.press("escape")
        await command(pilot, "cordon gpu004")
        assert "Cordon: 1 host, computed" in seen(app)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 60)])
async def test_a_picker_shows_its_keys_at_every_size(size: tuple[int, int]) -> None:
    async with console(busy_world(), size) as (app, pilot):
        await pilot.press("2", "S", "G")
        await pilot.pause()
        assert "Esc:" in seen(app) and "RUN IDS" in seen(app)
        await pilot.resize_terminal(80, 20)
        await pilot.pause()
        assert "Esc:" in seen(app)


@pytest.mark.parametrize(
    ("page", "text", "keys"),
    [
        ("3", "workload=w7", ["w7"]),
        ("3", "workload=olmo-32b !reason=held attempt=0", ["w7"]),
        ("4", "budget=olmo/eval running>0 max=?", ["olmo/eval"]),
        ("5", "host=gpu001 state=draining", ["d41"]),
        ("7", "about=gpu005 source=person kind=CordonRequested", ["3"]),
    ],
)
async def test_columns_of_every_page_are_keys_also_those_that_are_not_shown(
    page: str, text: str, keys: list[str]
) -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press(page)
        await command(pilot, f"filter {text}")
        assert app.table is not None and app.table.rowset.filter.text == text, status(app)
        assert [row.data.get("budget", row.key) if page == "4" else row.key for row in app.table.rowset.rows] == keys


class Hanging(Arrangements):
    """In a home directory that does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def change(self, change: Callable[[Kept], Kept]) -> None:
        self.answers.wait(20)
        super().change(change)


async def test_a_home_directory_that_hangs_holds_nothing_up_and_changes_are_kept_in_order() -> None:
    arrangements = Hanging()
    async with console(busy_world(), WIDE, desk=Desk(arrangements=arrangements)) as (app, pilot):
        await pilot.press("2")
        await command(pilot, "sort -host")
        await command(pilot, "save_view a")
        await command(pilot, "delete_view a")
        assert [*app.query_one("#t-hosts", Table).rowset.place][:1] == ["gpu006"] and not arrangements.kept.tables
        await pilot.press("3")
        assert app.page == "queue"
        arrangements.answers.set()
        await app.supervisor.tasks["keeping"]
        assert "t-hosts" in arrangements.kept.tables and not arrangements.kept.views
        assert status(app).strip() == "view a is deleted"
