"""A program in a tmux of its own: keys in, the screen out."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

TMUX = shutil.which("tmux")
PATIENCE_S = 60.0  # on a machine that does much else
needs_tmux = [pytest.mark.tmux, pytest.mark.skipif(TMUX is None, reason="no tmux here")]


@dataclass
class Tmux:
    """One session with one pane. `socket` is its server's alone."""

    socket: Path

    def run(self, *words: str) -> str:
        argv = [str(TMUX), "-S", str(self.socket), "-f", "/dev/null", *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout

    def keys(self, *keys: str) -> None:
        """By tmux's names: Enter, Escape, C-z."""
        self.run("send-keys", *keys)

    def type(self, text: str) -> None:
        self.run("send-keys", "-l", text)

    @property
    def seen(self) -> str:
        return self.run("capture-pane", "-p")

    def until(self, *words: str) -> str:
        """What is seen once all of them stand there. Fails with the screen."""
        end = time.monotonic() + PATIENCE_S
        while not all(word in (seen := self.seen) for word in words):
            assert time.monotonic() < end, f"waited for {words}; the screen:\n{seen}"
            time.sleep(0.05)
        return seen

    def resize(self, columns: int, lines: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(lines))


@contextmanager
def in_tmux(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], size: tuple[int, int] = (120, 40)
) -> Iterator[Tmux]:
    """`folder` gets the socket. Whatever happens, it all ends."""
    tmux = Tmux(folder / "tmux")
    given = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    try:
        tmux.run("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), *given, *argv)
        yield tmux
    finally:
        subprocess.run([str(TMUX), "-S", str(tmux.socket), "kill-server"], capture_output=True, check=False)
