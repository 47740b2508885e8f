"""The YAML layer alone: what is refused before any field is read, and how a text is understood (group G6)."""

from __future__ import annotations

import time

import pytest
from yaml.nodes import Node

from opsconsole.config.document import MOST_DEPTH, read_document
from opsconsole.config.errors import ConfigError
from opsconsole.config.yamlio import Source


def top(text: str) -> tuple[Source, dict[str, Node]]:
    source = Source("f.yaml", text)
    return source, source.mapping(source.root(), "")


def refused(text: str) -> str:
    begun = time.process_time()
    with pytest.raises(ConfigError) as caught:
        read_document("f.yaml", text)
    assert time.process_time() - begun < 1
    return str(caught.value)


def field_errors(text: str, read: str, *args: object) -> str:
    """What a reader of Source says about the value of `x`."""
    source, entries = top(text)
    assert getattr(source, read)(entries["x"], "x", *args) is None
    (problem,) = source.problems
    return str(problem)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: 010", "8 in YAML 1.1 and 10 elsewhere"),
        ("x: 09", "no number in YAML 1.1 and 9 elsewhere"),
        ("x: 0x10", "write 16"),
        ("x: 1_000", "write 1000"),
        ("x: 1:30", "90 in YAML 1.1"),
        ("x: .inf", "whole number"),
        ("x: .nan", "whole number"),
        ("x: 0.5", "whole number"),
        ("x: 8.0", "whole number"),
        ("x: '8 '", "whole number, got '8 '"),
        ("x: eight", "got 'eight'; write digits, such as 8"),
        ("x: -1", "outside 1 to 64"),
        ("x: 9223372036854775808", "9223372036854775808 is outside 1 to 64"),
        ("x: " + "9" * 5000, "outside 1 to 64"),
        ("x:", "has no value"),
        ("x: null", "has no value"),
        ("x: ~", "has no value"),
        ("x: [8]", "expected one value, got a list"),
        ("x: ٣", "whole number"),
    ],
)
def test_numbers_are_plain_and_bounded(text: str, said: str) -> None:
    """G1-18, and the readings in which YAML versions differ."""
    assert said in field_errors(text, "integer", 1, 64)


@pytest.mark.parametrize("word", ["yes", "on", "Y", "TRUE"])
def test_other_booleans_say_what_they_would_mean(word: str) -> None:
    assert "write true" in field_errors(f"x: {word}", "boolean")


@pytest.mark.parametrize(
    "word", ["no", "on", "y", "null", "~", "2026-11-30", "00:11:22", "010", "1_000", "1e3", ".inf", "8:00", "49100:22"]
)
def test_a_text_is_what_was_typed(word: str) -> None:
    source, entries = top(f"x: '{word}'\ny: {word}")
    assert source.text(entries["x"], "x") == word
    if word not in ("null", "~"):
        assert source.text(entries["y"], "y") == word


@pytest.mark.parametrize("fix", ["0.05", "5"])
def test_a_bare_fraction_shows_both_readings(fix: str) -> None:
    assert f"{fix}% or" in field_errors(f"x: {fix}", "percent_ppm")


@pytest.mark.parametrize(
    "text",
    ["1796040000", "1796040000000", "2026-11-30", "2026-11-30T12:00:00", "noon", "0001-01-01T00:00:00Z", "12:00"],
)
def test_instants_need_date_time_and_zone(text: str) -> None:
    """G6-19: naive, epoch seconds and milliseconds are refused, with what to write."""
    field_errors(f"x: {text}", "instant_ms")


def test_a_duplicate_key_names_both_lines() -> None:
    """G6-04."""
    source, entries = top("a: 1\nb: 2\na: 3\n")
    (problem,) = source.problems
    assert (problem.line, problem.fix) == (3, "first in line 1; keep one")
    assert entries["a"].value == "1"


def test_merge_keys_are_refused_by_name() -> None:
    source, _ = top("a: &a {x: 1}\n")
    merged = Source("f.yaml", "x: {<<: {gpus: 8}}")
    merged.mapping(merged.mapping(merged.root(), "")["x"], "x")
    assert not source.problems
    assert "merge keys" in str(merged.problems[0])


def test_small_aliases_are_read() -> None:
    source, entries = top("a: &a {rack: r1}\nb: *a\n")
    assert source.text(source.mapping(entries["b"], "b")["rack"], "b.rack") == "r1"
    assert not source.problems


def test_bombs_loops_and_depth_are_refused_at_once() -> None:
    """G6-05."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert "without bound" in refused("\n".join(rows))
    assert "holds itself" in refused("a: &a [*a]")
    assert "no" in refused("a: *b")
    assert "nest" in refused("[" * 10_000)
    assert f"deeper than {MOST_DEPTH}" in refused("\n".join(" " * n + "a:" for n in range(300)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:\n\tb: 1\n", "f.yaml:2: a tab"),
        ("a: !!int 3", "tag"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: holds a second document"),
        ("a: 1\n--- \n", "second document"),
        ("a: \x00", "control character"),
        ("a: 1\nb: \x1b[31m", "f.yaml:2: holds the control character"),
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("---\n", "is empty"),
        ("a: @b", "quotes"),
        ("a: %x", "quotes"),
        ("a: 'open", "f.yaml:"),
    ],
)
def test_what_is_no_document(text: str, said: str) -> None:
    assert said in refused(text)


def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("crlf") / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: two\r\n")
    source = Source.open(str(path))
    entries = source.mapping(source.root(), "")
    assert source.text(entries["b"], "b") == "two"
    assert entries["b"].start_mark.line == 1


def test_files_have_a_size(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("big") / "f.yaml"
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        Source.open(str(path), 1 << 20)


def test_messages_hold_no_control_characters() -> None:
    source, entries = top('x: "a\\e[31mb"\n"k\\ney": 1\n')
    assert source.text(entries["x"], "x") is None
    assert len(source.problems) == 2
    assert not any(char < " " for problem in source.problems for char in str(problem))
