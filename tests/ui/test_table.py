"""The table: cursor and marks by key, widths by cells, and no row drawn that did not change."""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown

from opsconsole.presenting.filtering import parse_filter
from opsconsole.presenting.layout import layout, total
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean
from opsconsole.ui.messages import RowOpened
from opsconsole.ui.themes import DARK
from opsconsole.ui.widgets import drawnrows
from opsconsole.ui.widgets.painting import MARGIN, paint_header, paint_row
from opsconsole.ui.widgets.table import Table

COLUMNS = (Column("NAME", 10, most=20), Column("N", 5, right=True, by="n"), Column("NOTE", 8, grow=True))
NAMES = ("gpu", "日本語ノード", "e\u0301clair", "👩‍💻dev", "عربي", "a\u200bb", "tab\there", "[red]x[/]")


class Bench(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DARK.variables)

    def compose(self) -> ComposeResult:
        yield Table(id="t")

    @property
    def t(self) -> Table:
        return self.query_one(Table)


def row(key: str, n: int, note: str = "") -> Row:
    name = NAMES[n % len(NAMES)]
    return Row(key, (Cell(f"{name}{key}"), Cell(str(n)), Cell(note or "–", "warn" if n % 3 else "bad")), {"n": n})


def view(rows: list[Row]) -> TableView:
    return TableView("T", COLUMNS, tuple(rows))


def lines(bench: Bench) -> list[str]:
    table = bench.t
    return [table.render_line(y).text for y in range(table.size.height - 1)]


async def test_the_cursor_stays_with_its_row_and_the_row_on_its_line() -> None:
    """G5-06."""
    rows = [row(f"r{n:03}", n) for n in range(200)]
    bench = Bench()
    async with bench.run_test(size=(60, 20)) as pilot:
        bench.t.show(view(rows))
        bench.t.move_to_key("r100")
        await pilot.pause()
        line = bench.t.rowset.at - bench.t._top
        draw = random.Random(7)
        for _ in range(50):
            rows.insert(draw.randrange(50), row(f"new{draw.random()}", 1))
            del rows[draw.randrange(20)]
            bench.t.show(view(rows))
        assert bench.t.cursor_row is not None and bench.t.cursor_row.key == "r100"
        assert bench.t.rowset.at - bench.t._top == line


async def test_a_row_that_is_gone_leaves_the_cursor_next_door() -> None:
    """G5-06."""
    rows = [row(f"r{n}", n) for n in range(5)]
    bench = Bench()
    async with bench.run_test(size=(60, 20)):
        bench.t.show(view(rows))
        bench.t.move_to_key("r2")
        bench.t.show(view(rows[:2] + rows[3:]))
        assert bench.t.rowset.cursor == "r3"
        bench.t.show(view([]))
        assert bench.t.rowset.cursor is None and bench.t.rowset.chosen() == ()


async def test_marks_survive_refresh_sort_and_filter_and_say_how_many_are_hidden() -> None:
    rows = [row(f"r{n}", n) for n in range(10)]
    bench = Bench()
    async with bench.run_test(size=(60, 20)) as pilot:
        bench.t.show(view(rows))
        bench.t.focus()
        await pilot.press("space", "space", "v", "G", "v")
        assert list(bench.t.rowset.marks) == [f"r{n}" for n in (0, 1, *range(2, 10))]
        bench.t.rowset.marks = {"r1": None, "r7": None}
        bench.t.sort(["-n"])
        bench.t.apply(parse_filter("n<5", bench.t.rowset.view.columns))
        assert bench.t.rowset.summary() == "5 of 10, 2 marked (1 hidden)"
        bench.t.show(view(rows[:7]))
        assert list(bench.t.rowset.marks) == ["r1"], "a mark does not outlive its row"


@pytest.mark.parametrize("seed", range(8))
async def test_random_changes_end_as_the_model_says(seed: int) -> None:
    """G5-07: add, update, remove, clear, sort, filter and resize between two idle moments."""
    draw = random.Random(seed)
    rows: list[Row] = []
    bench = Bench()
    async with bench.run_test(size=(60, 20)) as pilot:
        for step in range(125):
            deed = draw.randrange(8)
            if deed < 3 or not rows:
                rows.insert(draw.randrange(len(rows) + 1), row(f"k{seed}-{step}", draw.randrange(99)))
            elif deed == 3:
                at = draw.randrange(len(rows))
                rows[at] = row(rows[at].key, draw.randrange(99), "x" * draw.randrange(40))
            elif deed == 4:
                del rows[draw.randrange(len(rows))]
            elif deed == 5:
                bench.t.sort(draw.choice((["n"], ["-name"], ["note", "-n"], [])))
            elif deed == 6:
                bench.t.move_to(draw.randrange(200))
            elif draw.random() < 0.3:
                await pilot.resize_terminal(draw.randrange(1, 200), draw.randrange(1, 60))
            if draw.random() < 0.02:
                rows.clear()
            bench.t.show(view(list(rows)))
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        bench.t.sort(())
        bench.t.show(view(rows))
        bench.t.move_to(0)
        await pilot.pause()
        assert [r.key for r in bench.t.rowset.rows] == [r.key for r in rows]
        for drawn, model in zip(lines(bench)[1:], rows, strict=False):
            assert f" {model.cells[1].text} " in drawn


async def test_columns_line_up_by_terminal_cells() -> None:
    """G5-17: wide, joined, combining, right-to-left and invisible characters."""
    rows = [row(f"r{n}", n) for n in range(len(NAMES) * 3)]
    bench = Bench()
    async with bench.run_test(size=(60, 40)) as pilot:
        bench.t.show(view(rows))
        await pilot.pause()
        assert {cell_len(line) for line in lines(bench)[: len(rows)]} == {bench.t.scrollable_content_region.width}


async def test_of_ten_thousand_rows_only_visible_ones_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G5-08. How long it takes: benchmarks/ui/tables.py."""
    painted: list[str] = []

    def counting(row: Row, *rest: Any) -> list[Segment]:
        painted.append(row.key)
        return paint_row(row, *rest)

    monkeypatch.setattr(drawnrows, "paint_row", counting)
    rows = [row(f"r{n:05}", n) for n in range(10_000)]
    bench = Bench()
    async with bench.run_test(size=(120, 40)) as pilot:
        bench.t.show(view(rows))
        await pilot.pause()
        assert 0 < len(set(painted)) <= 40
        painted.clear()
        bench.t.show(view([row(r.key, n) for n, r in enumerate(rows)]))
        await pilot.pause()
        assert painted == [], "what did not change is not drawn again"
        rows[3] = row("r00003", 77)
        bench.t.show(view(rows))
        await pilot.pause()
        assert painted == ["r00003"]
        bench.t.focus()
        await pilot.press("G", "k", "pageup", "g")
        assert bench.t.rowset.at == 0


async def test_an_outage_a_filter_and_nothing_are_different_words() -> None:
    bench = Bench()
    async with bench.run_test(size=(70, 10)) as pilot:
        bench.t.show(TableView("T", COLUMNS, (), "nobody waits"))
        await pilot.pause()
        assert "nobody waits" in lines(bench)[1]
        bench.t.show(TableView("T", COLUMNS, (), "nobody waits"), "the store cannot be read")
        await pilot.pause()
        assert "the store cannot be read" in lines(bench)[1]
        bench.t.show(view([row("a", 1)]))
        bench.t.apply(parse_filter("n=5", bench.t.rowset.view.columns))
        await pilot.pause()
        assert "none of 1 passes the filter" in lines(bench)[1]


class Opened(Bench):
    """Remembers what was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def on_row_opened(self, message: RowOpened) -> None:
        self.opened.append(message.key)


async def test_a_click_selects_and_a_double_click_opens() -> None:
    bench = Opened()
    async with bench.run_test(size=(60, 20)) as pilot:
        bench.t.show(view([row(f"r{n}", n) for n in range(5)]))
        await pilot.pause()
        await pilot.click(Table, offset=(5, 3))
        assert bench.t.rowset.cursor == "r2" and not bench.opened
        await pilot.click(Table, offset=(5, 4), times=2)
        await pilot.pause()
        assert bench.t.rowset.cursor == "r3" and bench.opened == ["r3"]
        await pilot.click(Table, offset=(5, 12))
        await pilot.click(Table, offset=(5, 2), button=3)
        assert bench.t.rowset.cursor == "r3", "below the rows there is nothing, and the other buttons do nothing"


async def test_a_click_on_a_header_sorts_again_the_other_way_and_again_not_at_all() -> None:
    bench = Bench()
    async with bench.run_test(size=(60, 20)) as pilot:
        bench.t.show(view([row(f"r{n}", n) for n in (3, 1, 2)]))
        await pilot.pause()
        at = lines(bench)[0].index("N", lines(bench)[0].index("NAME") + 4)
        shown = []
        for _ in range(3):
            await pilot.click(Table, offset=(at, 0))
            await pilot.pause(0.6)  # or it would be a double click
            shown.append(([*bench.t.rowset.place], lines(bench)[0][at - 1 : at + 1].strip()))
        assert shown == [(["r1", "r2", "r3"], "N▲"), (["r3", "r2", "r1"], "N▼"), (["r3", "r1", "r2"], "N")]


async def test_the_wheel_scrolls_and_leaves_the_cursor_and_dragging_does_nothing() -> None:
    bench = Bench()
    async with bench.run_test(size=(60, 20)) as pilot:
        bench.t.show(view([row(f"r{n:03}", n) for n in range(100)]))
        await pilot.pause()
        for _ in range(3):
            bench.t.post_message(MouseScrollDown(bench.t, 5, 5, 0, 1, 0, False, False, False))
        await pilot.pause()
        top = bench.t._top
        assert top > 0 and bench.t.rowset.cursor == "r000"
        bench.t.show(view([row(f"r{n:03}", n) for n in range(100)]))
        await pilot.pause()
        assert bench.t._top == top, "a new picture does not scroll back"
        await pilot.mouse_down(Table, offset=(5, 3))
        await pilot.hover(Table, offset=(20, 9))
        await pilot.mouse_up(Table, offset=(20, 9))
        await pilot.pause()
        assert bench.screen.get_selected_text() is None and not bench.t.rowset.marks


def is_whole(line: str, width: int) -> bool:
    return cell_len(line) == width and not any(unicodedata.category(c) in ("Cc", "Cs") for c in line)


HOSTILE = st.text(max_size=300) | st.sampled_from(
    ["[red]x[/]", "[@click=app.quit]q[/]", "\x1b[31mred\x1b]0;title\x07", "\u202egnp.exe", "日" * 300, "👩‍💻" * 40, ""]
)


@given(st.lists(HOSTILE, min_size=3, max_size=3), st.integers(0, 90), st.integers(0, 60), st.booleans())
def test_a_row_fills_its_columns_exactly_whatever_it_is_called(
    names: list[str], width: int, outer: int, wide: bool
) -> None:
    placed = layout(COLUMNS, width, outer, wide)
    shown = Row("k", tuple(Cell(clean(name), "bad") for name in names))
    segments = paint_row(shown, placed, {}, Style(), cursor=True, marked=True)
    assert is_whole("".join(segment.text for segment in segments), total(placed) + MARGIN)
    header = paint_header(placed, Style(), ["-n", "name", "gone"])
    assert is_whole("".join(segment.text for segment in header), total(placed) + MARGIN)


@pytest.mark.parametrize("count", [0, 1, 10_000])
async def test_every_key_works_on_no_row_on_one_and_on_ten_thousand(count: int) -> None:
    bench = Bench()
    async with bench.run_test(size=(60, 20)) as pilot:
        bench.t.show(view([row(f"r{n:05}", n) for n in range(count)]))
        bench.t.focus()
        await pilot.press("j", "k", "G", "pagedown", "pageup", "h", "l", "enter", "g", "space", "v", "G", "v")
        await pilot.pause()
        assert len(bench.t.rowset.marks) == count
        await pilot.press("asterisk")
        assert not bench.t.rowset.marks
