"""Rows as people arrange them: filters, sorting, columns, rows that are made only when they are looked at."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsconsole.presenting.completing import complete_filter
from opsconsole.presenting.filtering import FilterError, parse_filter
from opsconsole.presenting.layout import GAP, column_at, layout, total
from opsconsole.presenting.rows import Cell, Column, LazyRows, Row, TableView, find_column
from opsconsole.presenting.rowset import RowSet
from opsconsole.presenting.sorting import read_order, sorted_places, stepped

COLUMNS = (
    Column("NAME", 8, most=20, by="name"),
    Column("BUSY", 5, right=True, by="busy_percent"),
    Column("WAITED", 6, right=True, by="waited_s"),
    Column("STATE", 10, grow=True),
    Column("RUNS", 8, by="runs", extra=True),
    Column("FRESH", 5, by="fresh", extra=True),
    Column("ENDS BY", 7, right=True, by="ends_ms", extra=True),
)


def row(name: str, busy: float | None, waited: float, state: str = "ok", token: str = "good", **data: Any) -> Row:
    known = (Cell(name), Cell("?" if busy is None else f"{busy:.0f}%"), Cell(f"{waited:.0f}s"), Cell(state, token))
    cells = (*known, Cell(str(data.get("runs"))), Cell(str(data.get("fresh"))), Cell("soon"))
    return Row(name, cells, {"name": name, "busy_percent": busy, "waited_s": waited, **data})


ROWS = (
    row("gpu1", 90.0, 7200, "serving", runs=["w1~1"], fresh=True),
    row("gpu2", None, 60, "lost: timed out", "bad", runs=[], fresh=False),
    row("gpu10", 20.0, 3600, "unknown", "unknown", runs=["w2~1"], fresh=True),
    row("[red]", 55.0, 90_000, "draining", "warn", runs=[], fresh=True),
)
TABLE = TableView("T", COLUMNS, ROWS)


def passing(text: str) -> list[str]:
    return [ROWS[at].key for at in parse_filter(text, COLUMNS).places(TABLE)]


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
        ("w2~1", ["gpu10"]),
        ("fresh=no", ["gpu2"]),
        ("!gpu", ["[red]"]),
        ("!state=serving !draining", ["gpu2", "gpu10"]),
        ("!name!=gpu1", ["gpu1"]),
        ("name!~gpu", ["[red]"]),
        ('state~"^lost: timed"', ["gpu2"]),
        ('state="lost: timed out"', ["gpu2"]),
        ("busy=?", ["gpu2"]),
        ("busy=90", ["gpu1"]),
        ("b>50 w>1d", ["[red]"]),
        ("90", []),
        ("waited>0", ["gpu1", "gpu2", "gpu10", "[red]"]),
    ],
)
def test_filters(text: str, keys: list[str]) -> None:
    assert passing(text) == keys


def test_what_is_not_known_is_neither_more_nor_less() -> None:
    assert "gpu2" not in passing("busy>0") + passing("busy<=0")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bsy>5", "no column 'bsy'; did you mean busy?"),
        ("oops=1", "no column 'oops'; there are name busy waited state"),
        ("busy>much", "busy counts percent: 50 or 50%"),
        ("busy>2h", "busy counts percent"),
        ("waited>2", "waited counts time: 90s, 30m, 2h"),
        ("ends_by<2h", "ends_by is a time of day"),
        ("name~(", "is no pattern"),
        ("name=", "a value comes after it"),
        ("!", "what is not wanted comes after it"),
        ('name="gpu', "this quote is not closed"),
    ],
)
def test_a_wrong_filter_says_what_it_does_not_understand_and_where(text: str, says: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(f"gpu1 {text}", COLUMNS)
    assert says in str(caught.value)
    start = 5 if '"' not in text else 5 + text.index('"')
    assert (caught.value.start, caught.value.end) == (start, 5 + len(text))


def test_a_pattern_cannot_take_for_ever() -> None:
    """One that backtracks would look at this for longer than the universe has been there."""
    rows = (row("a" * 400 + "!", 1.0, 1),)
    assert parse_filter("name~(a+)+$", COLUMNS).places(TableView("T", COLUMNS, rows)) == []


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("", ["name=", "busy>", "waited>", "state=", "runs=", "fresh=", "ends_by="]),
        ("gpu1 !b", ["!busy>"]),
        ("busy>5 na", ["name="]),
        ("name=g", ["name=gpu1", "name=gpu2", "name=gpu10"]),
        ("state=", ["state=serving", 'state="lost: timed out"', "state=unknown", "state=draining"]),
        ('state="lo', ['state="lost: timed out"']),
        ("!runs=w", ["!runs=w1~1", "!runs=w2~1"]),
        ("fresh=", ["fresh=yes", "fresh=no"]),
        ("busy>5", []),
        ("oops=", []),
    ],
)
def test_what_could_come_next_is_offered(text: str, offers: list[str]) -> None:
    assert list(complete_filter(text, TABLE)) == offers


@given(st.text(alphabet='ab"=~!<> x1hnamewited_', max_size=30))
def test_what_is_offered_is_a_filter(text: str) -> None:
    for part in complete_filter(text, TABLE):
        if not part.endswith((">", "=")):
            parse_filter(part, COLUMNS)


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_a_clear_error(text: str) -> None:
    try:
        parse_filter(text, COLUMNS).places(TABLE)
    except FilterError as error:
        assert str(error) and 0 <= error.start < error.end <= len(text)


def test_a_column_is_found_by_its_beginning() -> None:
    assert [find_column(COLUMNS, t) for t in ("name", "BU", "w", "x", "", "ends by")] == [0, 1, 2, None, None, 6]


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        ("name", ["[red]", "gpu1", "gpu10", "gpu2"]),
        ("busy", ["gpu2", "gpu10", "[red]", "gpu1"]),
        ("-busy", ["gpu1", "[red]", "gpu10", "gpu2"]),
        ("state", ["gpu2", "gpu10", "[red]", "gpu1"]),
        ("fresh -name", ["gpu2", "gpu10", "gpu1", "[red]"]),
        ("none", ["gpu1", "gpu2", "gpu10", "[red]"]),
    ],
)
def test_sorting_puts_the_worst_first_and_unknown_before_warnings(order: str, keys: list[str]) -> None:
    assert [ROWS[at].key for at in sorted_places(TABLE, range(4), order.split())] == keys


def test_a_column_that_says_one_of_a_few_words_is_sorted_by_how_bad_they_are() -> None:
    columns = (Column("HEALTH", 6, by="health", order=("fail", "unknown", "ok")),)
    rows = tuple(Row(word, (Cell(word),), {"health": word}) for word in ("ok", "fail", "unknown", "new"))
    assert [rows[at].key for at in sorted_places(TableView("T", columns, rows), range(4), ["health"])] == [
        "new",
        "fail",
        "unknown",
        "ok",
    ]


def test_an_order_is_read_and_stepped_through() -> None:
    assert read_order("-wai, bu", COLUMNS) == ("-waited", "busy")
    with pytest.raises(ValueError, match="no column is called 'x': name busy"):
        read_order("x", COLUMNS)
    order: tuple[str, ...] = ("busy",)
    seen = [order := stepped(order, "waited") for _ in range(3)]
    assert seen == [("busy", "waited"), ("busy", "-waited"), ("busy",)]


USUAL = tuple(column for column in COLUMNS if not column.extra)


@given(st.integers(31, 400))
def test_columns_fill_the_width_and_none_is_narrower_than_declared(width: int) -> None:
    placed = layout(COLUMNS, width, width)
    assert total(placed) == max(width, sum(c.width for c in USUAL) + 3 * GAP)
    assert all(p.width >= p.column.width for p in placed)
    assert placed[0].width <= COLUMNS[0].most
    assert (placed[1].width, placed[2].width) == (5, 6), "numbers do not grow"


def test_columns_are_those_that_were_chosen_and_a_place_on_the_line_belongs_to_one() -> None:
    placed = layout(COLUMNS, 20, 20, chosen=("runs", "busy"))
    assert [p.column.title for p in placed] == ["BUSY", "RUNS"]
    assert layout(COLUMNS, 60, 60, chosen=("gone",)) == layout(COLUMNS, 60, 60)
    assert [column_at(placed, x) for x in (-1, 0, 4, 5, 6, 13, 14)] == ["", "busy", "busy", "", "runs", "runs", ""]


def test_room_is_shared_before_the_growing_column_takes_the_rest() -> None:
    widths = [[p.width for p in layout(COLUMNS, width, width)] for width in (32, 38, 60)]
    assert widths == [[8, 5, 6, 10], [11, 5, 6, 13], [20, 5, 6, 26]]


def test_columns_of_narrow_tables_are_fewer_unless_all_are_wanted() -> None:
    columns = (Column("A", 4), Column("B", 4, from_width=90))
    assert [p.column.title for p in layout(columns, 70, 80)] == ["A"]
    assert [p.column.title for p in layout(columns, 70, 80, wide=True)] == ["A", "B"]


def lazy_rows(count: int, made: list[int]) -> LazyRows[int]:
    def cells(n: int) -> tuple[Cell, ...]:
        made.append(n)
        return row(f"w{n}", 1.0, n, runs=[], fresh=True).cells

    values = {"name": lambda n: f"w{n}", "busy_percent": lambda n: n % 7, "waited_s": lambda n: float(n)}
    return LazyRows([f"w{n}" for n in range(count)], lambda at: at, cells, values)


def test_rows_are_made_once_and_only_when_looked_at() -> None:
    made: list[int] = []
    rows = lazy_rows(10_000, made)
    rowset = RowSet()
    rowset.show(TableView("T", COLUMNS, rows))
    assert made == [] and len(rowset.rows) == 10_000
    rowset.move_to(9_999)
    assert made == [] and rowset.cursor == "w9999" and rowset.current is rows[-1]
    assert [r.key for r in rows[2:4]] == ["w2", "w3"] and rows[2].data["waited_s"] == 2.0
    rowset.mark_all()
    assert len(rowset.marks) == 10_000 and sorted(made) == [2, 3, 9_999]


def test_neither_sorting_nor_filtering_makes_rows_where_values_tell() -> None:
    made: list[int] = []
    rowset = RowSet(filter=parse_filter("waited>=9000s busy=3", COLUMNS), order=("-waited",))
    rowset.show(TableView("T", COLUMNS, lazy_rows(10_000, made)))
    wanted = [n for n in range(9_999, 8_999, -1) if n % 7 == 3]
    assert made == [] and [*rowset.place] == [f"w{n}" for n in wanted]
    assert rowset.rows[1].data["waited_s"] == wanted[1] and made == [wanted[1]]


def test_cursor_and_marks_follow_their_rows() -> None:
    rowset = RowSet()
    rowset.show(TABLE)
    rowset.move_to(2)
    rowset.toggle()
    rowset.order, rowset.filter = ("name",), parse_filter("gpu", COLUMNS)
    rowset.arrange()
    assert (rowset.cursor, rowset.at, list(rowset.marks)) == ("gpu10", 1, ["gpu10"])
    rowset.show(TableView("T", COLUMNS, (*ROWS[:2], ROWS[3])))
    assert (rowset.cursor, rowset.marks) == ("gpu2", {}), "the next one; a mark does not outlive its row"
    rowset.filter = parse_filter("nothing", COLUMNS)
    rowset.arrange()
    assert rowset.chosen() == () and rowset.summary() == "0 of 3"


def test_marking_all_again_takes_away_the_marks_that_are_shown_and_no_others() -> None:
    rowset = RowSet()
    rowset.show(TABLE)
    rowset.move_to(3)
    rowset.toggle()
    rowset.filter = parse_filter("gpu", COLUMNS)
    rowset.arrange()
    rowset.mark_all()
    assert rowset.summary() == "3 of 4, 4 marked (1 hidden)"
    rowset.mark_all()
    assert rowset.summary() == "3 of 4, 1 marked (1 hidden)"


KEYS = st.lists(st.sampled_from([f"r{n}" for n in range(12)]), unique=True, max_size=12)
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("show"), KEYS),
        st.tuples(st.just("filter"), st.sampled_from(["", "r1", "busy>40", "!r2 waited<8s"])),
        st.tuples(st.just("sort"), st.sampled_from(["", "name", "-busy name", "state"])),
        st.tuples(st.sampled_from(["toggle", "range", "all"]), st.integers(0, 12)),
    ),
    max_size=25,
)


@given(DEEDS)
def test_marks_are_of_rows_that_there_are_and_nothing_but_a_key_changes_them(deeds: list[tuple[str, Any]]) -> None:
    rowset = RowSet()
    for deed, what in deeds:
        before, there = dict(rowset.marks), {row.key for row in rowset.view.rows}
        if deed == "show":
            rows = tuple(row(key, int(key[1:]) * 10.0, int(key[1:])) for key in what)
            rowset.show(TableView("T", COLUMNS, rows))
            there = set(what)
            assert rowset.marks.keys() == before.keys() & there
        elif deed == "filter":
            rowset.filter = parse_filter(what, COLUMNS)
            rowset.arrange()
            assert rowset.marks == before
        elif deed == "sort":
            rowset.order = read_order(what, COLUMNS)
            rowset.arrange()
            assert rowset.marks == before
        else:
            rowset.move_to(what)
            {"toggle": rowset.toggle, "range": rowset.mark_range, "all": rowset.mark_all}[deed]()
        assert rowset.marks.keys() <= there
        assert (rowset.cursor in rowset.place) if rowset.rows else rowset.cursor is None
        assert rowset.hidden == len(rowset.marks.keys() - rowset.place.keys())
