"""Lines out of chunks, whatever the chunks are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opsconsole.transport.errors import plain
from opsconsole.transport.lines import MAX_LINE_BYTES, LineReader, Tail, parse_object


def read(chunks: list[bytes]) -> tuple[list[bytes], list[int]]:
    lines: list[bytes] = []
    overlong: list[int] = []
    reader = LineReader(lines.append, overlong.append)
    for chunk in chunks:
        reader.feed(chunk)
    return lines, overlong


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_chunks_do_not_matter(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    assert read(chunks) == read([whole]) == (whole.split(b"\n")[:-1], [])


def test_an_overlong_line_is_skipped_and_holds_no_memory() -> None:
    lines: list[bytes] = []
    overlong: list[int] = []
    reader = LineReader(lines.append, overlong.append)
    for _ in range(5):
        reader.feed(b"x" * MAX_LINE_BYTES)
        assert len(reader.pending) <= MAX_LINE_BYTES
    reader.feed(b"\nnext\n")
    assert lines == [b"next"] and overlong == [5 * MAX_LINE_BYTES]


def test_a_line_of_exactly_the_limit_passes() -> None:
    lines, overlong = read([b"x" * MAX_LINE_BYTES, b"\n"])
    assert len(lines[0]) == MAX_LINE_BYTES and not overlong


def test_only_objects_are_objects() -> None:
    assert parse_object(b'{"a": 1}') == {"a": 1}
    for bad in (b"", b"[1]", b"\xff{}", b"{", b"1", b"[" * 100_000):
        assert parse_object(bad) is None


def test_a_probe_stays_as_it_was_sent_and_is_known_to_be_sound() -> None:
    assert parse_object(b'{"event": "probe", "probe": {"a": [1,  2]}}') == {
        "event": "probe",
        "probe": b'{"a": [1,  2]}',
    }
    for bad in (b'{"a": "\xff"}', b'{"a": NaN}', b'{"a": 1 2}', b"[" * 100_000):
        assert parse_object(b'{"event": "probe", "probe": ' + bad + b"}") is None


def test_half_a_surrogate_pair_is_mended() -> None:
    """Python writes such for a file name that is no UTF-8; SQLite and most readers refuse it."""
    assert parse_object(rb'{"a": "x\udcff", "b": "\ud83d\ude00"}') == {"a": "x\ufffd", "b": "\ufffd\ufffd"}
    assert parse_object(rb'{"b": "\ud83d\ude00"}') == {"b": "\U0001f600"}


def test_foreign_text_becomes_one_plain_line() -> None:
    assert plain("a\x1b[31m\nb\x00c\u202e") == "a [31m b c"
    assert len(plain("x" * 5000, 300)) == 300


def test_the_tail_keeps_beginning_and_end() -> None:
    tail = Tail(10)
    tail.add(b"beginning of " + b"x" * 100_000 + b" the end")
    assert tail.text() == "beginning ... xx the end"
