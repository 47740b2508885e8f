"""Rows as people arrange them: filters, sorting, columns, rows that are made only when they are looked at."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsconsole.presenting.filtering import FilterError, parse_filter
from opsconsole.presenting.layout import GAP, layout, total
from opsconsole.presenting.rows import Cell, Column, LazyRows, Row, TableView
from opsconsole.presenting.rowset import RowSet
from opsconsole.presenting.sorting import find_column, sorted_rows

COLUMNS = (
    Column("NAME", 8, most=20, by="name"),
    Column("BUSY", 5, right=True, by="busy_percent"),
    Column("WAITED", 6, right=True, by="waited_s"),
    Column("STATE", 10, grow=True),
)


def row(name: str, busy: float | None, waited: float, state: str = "ok", token: str = "good", **data: Any) -> Row:
    cells = (Cell(name), Cell("?" if busy is None else f"{busy:.0f}%"), Cell(f"{waited:.0f}s"), Cell(state, token))
    return Row(name, cells, {"name": name, "busy_percent": busy, "waited_s": waited, **data})


ROWS = (
    row("gpu1", 90.0, 7200, "serving", runs=["w1~1"], fresh=True),
    row("gpu2", None, 60, "lost: timed out", "bad", runs=[], fresh=False),
    row("gpu10", 20.0, 3600, "unknown", "unknown", runs=["w2~1"], fresh=True),
    row("[red]", 55.0, 90_000, "draining", "warn", runs=[], fresh=True),
)
TABLE = TableView("T", COLUMNS, ROWS)


def passing(text: str) -> list[str]:
    return [r.key for r in parse_filter(text, TABLE).rows(ROWS)]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", ["gpu1", "gpu2", "gpu10", "[red]"]),
        ("GPU1", ["gpu1", "gpu10"]),
        ("gpu timed", ["gpu2"]),
        ('"timed out"', ["gpu2"]),
        ("[red]", ["[red]"]),
        ("name=gpu1", ["gpu1"]),
        ("name!=gpu1", ["gpu2", "gpu10", "[red]"]),
        ("name~^gpu1.$", ["gpu10"]),
        ("busy>50", ["gpu1", "[red]"]),
        ("busy<=55%", ["gpu10", "[red]"]),
        ("waited>1h", ["gpu1", "[red]"]),
        ("waited>=1h waited<1d", ["gpu1", "gpu10"]),
        ("state=serving", ["gpu1"]),
        ("runs=w2~1", ["gpu10"]),
        ("fresh=no", ["gpu2"]),
    ],
)
def test_filters(text: str, keys: list[str]) -> None:
    assert passing(text) == keys


def test_what_is_not_known_is_neither_more_nor_less() -> None:
    assert "gpu2" not in passing("busy>0") + passing("busy<=0")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bsy>5", "no key 'bsy'; there are name, busy"),
        ("busy>much", "neither a number nor a time such as 2h"),
        ("name~(", "is no pattern"),
        ("name=", "needs a value"),
    ],
)
def test_a_wrong_filter_says_what_it_does_not_understand(text: str, says: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text, TABLE)
    assert says in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_a_clear_error(text: str) -> None:
    try:
        parse_filter(text, TABLE).rows(ROWS)
    except FilterError as error:
        assert str(error)


def test_a_column_is_found_by_its_beginning() -> None:
    assert [find_column(TABLE, t) for t in ("name", "BU", "w", "x", "")] == [0, 1, 2, None, None]


@pytest.mark.parametrize(
    ("title", "reverse", "keys"),
    [
        ("NAME", False, ["[red]", "gpu1", "gpu10", "gpu2"]),
        ("BUSY", False, ["gpu2", "gpu10", "[red]", "gpu1"]),
        ("BUSY", True, ["gpu1", "[red]", "gpu10", "gpu2"]),
        ("STATE", False, ["gpu2", "gpu10", "[red]", "gpu1"]),
        ("NONE", False, ["gpu1", "gpu2", "gpu10", "[red]"]),
    ],
    ids=lambda value: str(value)[:8],
)
def test_sorting_puts_the_worst_first_and_unknown_before_warnings(title: str, reverse: bool, keys: list[str]) -> None:
    assert [r.key for r in sorted_rows(TABLE, title, reverse)] == keys


@given(st.integers(31, 400))
def test_columns_fill_the_width_and_none_is_narrower_than_declared(width: int) -> None:
    placed = layout(COLUMNS, width, width)
    assert total(placed) == max(width, sum(c.width for c in COLUMNS) + 3 * GAP)
    assert all(p.width >= p.column.width for p in placed)
    assert placed[0].width <= COLUMNS[0].most
    assert (placed[1].width, placed[2].width) == (5, 6), "numbers do not grow"


def test_room_is_shared_before_the_growing_column_takes_the_rest() -> None:
    widths = [[p.width for p in layout(COLUMNS, width, width)] for width in (32, 38, 60)]
    assert widths == [[8, 5, 6, 10], [11, 5, 6, 13], [20, 5, 6, 26]]


def test_columns_of_narrow_tables_are_fewer_unless_all_are_wanted() -> None:
    columns = (Column("A", 4), Column("B", 4, from_width=90))
    assert [p.column.title for p in layout(columns, 70, 80)] == ["A"]
    assert [p.column.title for p in layout(columns, 70, 80, wide=True)] == ["A", "B"]


def test_rows_are_made_once_and_only_when_looked_at() -> None:
    made: list[int] = []

    def make(at: int) -> Row:
        made.append(at)
        return row(f"w{at}", 1.0, at)

    rows = LazyRows([f"w{n}" for n in range(10_000)], make)
    rowset = RowSet()
    rowset.show(TableView("T", COLUMNS, rows))
    assert made == [] and len(rowset.rows) == 10_000
    rowset.move_to(9_999)
    assert rowset.cursor == "w9999" and rowset.current is rows[-1]
    assert [r.key for r in rows[2:4]] == ["w2", "w3"]
    rowset.mark_all()
    assert len(rowset.marks) == 10_000 and sorted(set(made)) == [2, 3, 9_999] and len(made) == 3


def test_cursor_and_marks_follow_their_rows() -> None:
    rowset = RowSet()
    rowset.show(TABLE)
    rowset.move_to(2)
    rowset.toggle()
    rowset.sort, rowset.filter = "NAME", parse_filter("gpu", TABLE)
    rowset.arrange()
    assert (rowset.cursor, rowset.at, list(rowset.marks)) == ("gpu10", 1, ["gpu10"])
    rowset.show(TableView("T", COLUMNS, (*ROWS[:2], ROWS[3])))
    assert (rowset.cursor, rowset.marks) == ("gpu2", {}), "the next one; a mark does not outlive its row"
    rowset.filter = parse_filter("nothing", TABLE)
    rowset.arrange()
    assert rowset.chosen() == () and rowset.summary() == "0 of 3"
