"""Foreign text in Markdown reads as it was written, whatever it looks like."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from opsconsole.presenting.markdown import escaped
from opsconsole.presenting.text import clean

READER = MarkdownIt("gfm-like")  # with tables, strikethrough and links of bare addresses
assert READER.linkify is not None
READER.linkify.set({"fuzzy_link": False})  # GitHub makes none of a bare `a.com`; its `www.` is a case below
PIECES = st.sampled_from([*"ab \\`*_[]<>|~&#@$!:/.()-+1=\"'", "http://", "www.", "mailto:", "a.com", "&lt;", "<b>"])
TRICKY = st.lists(PIECES, max_size=30).map("".join)


class Tags(HTMLParser):
    """What a page is made of: its elements, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(TRICKY | st.text(max_size=60))
@settings(deadline=None)
def test_no_name_is_more_than_text(name: str) -> None:
    page = Tags(READER.render(f"- **gpu1**: {escaped(name)}"))
    assert set(page.tags) == {"ul", "li", "strong"}
    assert page.text.split() == f"\ngpu1: {clean(name)}\n".split()


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "http://evil.example",
        "www.evil.example",
        "*b* _i_ `c` ~~s~~ ![i](u)",
        "| a | b |",
        "&lt;script&gt;",
        "@team",
    ],
)
def test_what_attackers_write_is_shown_as_it_is(name: str) -> None:
    page = Tags(MarkdownIt("gfm-like").render(escaped(name)))
    assert page.tags == ["p"] and page.text.strip() == name
