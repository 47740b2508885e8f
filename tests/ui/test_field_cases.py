"""Faults that other consoles had (field_reports.json), in a real pseudo-terminal."""

from __future__ import annotations

import os
import select
import time

from tests.ui.test_terminal import SHOWN, Terminal

IDLE_S = 4.0  # several turns of the timer that lets ages tick
PATIENCE_S = 30.0  # until the first picture is whole


def test_an_idle_screen_sends_nothing() -> None:
    """G5-16: at 9,600 baud a picture that is painted again each second leaves no room for a key."""
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        end = time.monotonic() + PATIENCE_S
        while sent := read_for(terminal, IDLE_S):
            assert time.monotonic() < end, sent
        os.write(terminal.master, b"2")
        terminal.read_until(b"gpu001")
    finally:
        terminal.close()


def read_for(terminal: Terminal, seconds: float) -> bytes:
    until, found = time.monotonic() + seconds, b""
    while (left := until - time.monotonic()) > 0:
        if select.select([terminal.master], [], [], left)[0]:
            found += os.read(terminal.master, 65_536)
    return found
