"""Over a slow link less is written, and what is seen is the same."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.tmux import PATIENCE_S, Tmux, in_tmux, needs_tmux

pytestmark = needs_tmux
ENVIRONMENT = {"TZ": "UTC", "PYTHONPATH": os.pathsep.join(sys.path)}
STEPS = (
    (("2",), "gpu006"),
    (("j", "j", "Space"), "*gpu003"),
    (("D",), "Drain plan"),
    (("Escape",), "gpu006"),
    (("w",), "all columns"),
    (("x",), "Explain"),
    (("Escape",), "gpu006"),
    (("3",), "Waiting"),
    (("Tab", "G"), "Running"),
    (("z",), "[Running"),
    (("z", "/"), "/"),
    (("o", "l", "m", "o", "Enter"), "/olmo"),
    (("1",), "Availability"),
    (("?",), "Help"),
)


def agree(both: tuple[Tmux, Tmux], after: str) -> None:
    """Until both show the same and nothing moves any more."""
    before, now, end = [""], [tmux.seen for tmux in both], time.monotonic() + PATIENCE_S
    while before != now or now[0] != now[1]:
        assert time.monotonic() < end, f"after {after}, any link shows\n{now[0]}\na slow one\n{now[1]}"
        time.sleep(0.4)
        before, now = now, [tmux.seen for tmux in both]


def walk(both: tuple[Tmux, Tmux]) -> None:
    for keys, shows in (((), "Availability"), *STEPS):
        for tmux in both:
            if keys:
                tmux.keys(*keys)
            tmux.until(shows)
        agree(both, str(keys))
    for tmux in both:
        tmux.resize(100, 30)
        tmux.until("Help")
    agree(both, "another size")
    for key, shows in (("Escape", "Availability"), ("2", "gpu006")):
        for tmux in both:
            tmux.keys(key)
            tmux.until(shows)
        agree(both, key)


@pytest.mark.timeout(300)
def test_a_slow_link_shows_what_any_link_shows(tmp_path: Path) -> None:
    """The same world, the same keys: every screen, dialogs over it, and another size of the terminal."""
    with ExitStack() as stack:
        walk((opened(stack, tmp_path / "any"), opened(stack, tmp_path / "slow", "slow")))


def opened(stack: ExitStack, folder: Path, *words: str) -> Tmux:
    folder.mkdir()
    return stack.enter_context(in_tmux([sys.executable, "-m", "tests.ui.live_app", *words], folder, ENVIRONMENT))
