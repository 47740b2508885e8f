"""Over a slow link less is written, and what is seen is the same."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.tmux import Tmux, in_tmux, needs_tmux

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


def walk(tmux: Tmux) -> list[str]:
    """What is seen after each step, once nothing moves any more."""
    found = []
    for keys, shows in (((), "Availability"), *STEPS):
        if keys:
            tmux.keys(*keys)
        before, now = "", tmux.until(shows)
        while before != now:
            before, now = now, settled(tmux)
        found.append(now)
    tmux.resize(100, 30)
    tmux.until("Help")
    tmux.keys("Escape")
    settled(tmux)
    tmux.keys("2")
    tmux.until("gpu006")
    found.append(settled(tmux))
    return found


def settled(tmux: Tmux) -> str:
    time.sleep(0.4)
    return tmux.seen


@pytest.mark.timeout(300)
def test_a_slow_link_shows_what_any_link_shows(tmp_path: Path) -> None:
    """The same world, the same keys: every screen, dialogs over it, and another size of the terminal."""
    shown = []
    for words in ([], ["slow"]):
        folder = tmp_path / "".join(words or ["any"])
        folder.mkdir()
        with in_tmux([sys.executable, "-m", "tests.ui.live_app", *words], folder, ENVIRONMENT) as tmux:
            shown.append(walk(tmux))
    for step, (any_link, slow_link) in enumerate(zip(*shown, strict=True)):
        assert any_link == slow_link, f"step {step}"
