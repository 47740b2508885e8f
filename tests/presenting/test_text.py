"""Text for people: foreign text made harmless, spans, times of day, columns of cells."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from opsconsole.presenting.text import clean, count, day_clock, fit, ordinal, parse_until, span
from opsconsole.spans import parse_span_ms

NOON_MS = 1_764_504_000_000  # a Sunday, 12:00 in UTC
MINUTE_MS = 60_000


@given(st.text(max_size=400))
def test_cleaned_text_is_one_short_line_without_controls(text: str) -> None:
    shown = clean(text, 40)
    assert len(shown) <= 40
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in shown)


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b[2Jgone", "[2Jgone"),
        ("two\nlines\tand\rmore", "two lines and more"),
        ("user\u202egnp.exe", "usergnp.exe"),
        ("日本語 node", "日本語 node"),
        ("[red]x[/]", "[red]x[/]"),
    ],
)
def test_what_foreign_text_becomes(foreign: str, shown: str) -> None:
    assert clean(foreign) == shown


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Cf", "Mn")), max_size=30), st.integers(0, 20))
def test_a_fitted_text_is_exactly_as_wide_as_its_column(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(fit(text, width, right=True)) == width


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (None, "?"),
        (-5, "0s"),
        (41_000, "41s"),
        (723_000, "12m03s"),
        (22_320_000, "6h12m"),
        (273_600_000, "3d04h"),
        (1_800_000, "30m"),
        (90_000, "1m30s"),
    ],
)
def test_spans_have_at_most_two_units(ms: int | None, words: str) -> None:
    assert span(ms) == words
    if ms is not None and ms >= 0:
        assert parse_span_ms(words) >= 0, "what is shown can be typed"


def test_numbers_and_nouns() -> None:
    assert [count(n, "host") for n in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        *("1st", "2nd", "3rd", "4th", "11th"),
        *("12th", "13th", "21st", "102nd", "111th"),
    ]


def test_until_is_a_span_or_the_next_such_time_of_day() -> None:
    assert parse_until("2h", NOON_MS) == 120 * MINUTE_MS
    assert parse_until("17:30", NOON_MS) == 330 * MINUTE_MS
    assert parse_until("9:00", NOON_MS) == 21 * 60 * MINUTE_MS, "tomorrow"
    assert [parse_until(text, NOON_MS) for text in ("24:00", "12", "12:60", "soon", "")] == [None] * 5


def test_a_time_of_day_is_the_readers_also_when_clocks_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    evening = 1_774_724_400_000  # 28 March 2026, 20:00 there; clocks go forward in the night
    assert day_clock(evening, evening) == "20:00"
    at = parse_until("6:00", evening)
    assert at == 9 * 60 * MINUTE_MS
    assert day_clock(evening + at, evening) == "06:00"
