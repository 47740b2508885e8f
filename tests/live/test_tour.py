"""A newcomer's way through the demo, in tmux at the smallest size: what docs/tour.md shows."""

from __future__ import annotations

import re

import pytest

from tests.tmux import needs_tmux
from tests.tour import HEAD, PAGE, SIZES, squeezed, taken

pytestmark = needs_tmux


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", SIZES[:1], ids=lambda size: f"{size[0]}x{size[1]}")  # `make tour` walks them all
def test_the_screen_leads_from_a_question_to_a_drained_host_and_back(size: tuple[int, int]) -> None:
    frames = taken(size)
    assert len(frames) == 11
    assert all(len(line) <= size[0] for frame in frames for line in frame.seen.splitlines())
    page = PAGE.read_text()
    assert page.startswith(HEAD) and f"## {size[0]}×{size[1]}\n" in page
    told = page.partition(f"## {size[0]}×{size[1]}\n")[2].partition("\n## ")[0]
    steps = [re.sub(r"gpu\d\d", "", frame.did) for frame in frames]
    assert steps == [re.sub(r"gpu\d\d", "", did) for did in re.findall(r"^(.+)\n\n```text$", told, re.MULTILINE)], (
        "the page tells another way: make tour"
    )


def test_empty_lines_are_left_out_where_they_are_many() -> None:
    assert list(squeezed("a  \n\n\nb\n\n\n\n\nc\n\n")) == ["a", "", "", "b", "⋮", "c"]
