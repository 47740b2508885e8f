"""The console in a real pseudo-terminal: signals, a terminal that goes away, and what is left behind."""

from __future__ import annotations

import base64
import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

SHOWN = b"gpu006"
ENDED = 6.0
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """The console in a pty of 120x40; `said` is all that it wrote."""

    def __init__(self, *words: str, env: dict[str, str] | None = None) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 120))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "", **(env or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.live_app", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environ,
            start_new_session=True,
        )
        self.said = b""

    def read_until(self, wanted: bytes, within_s: float = 20.0) -> None:
        """As it was written, or as it is read: without what colours and places it."""
        until = time.monotonic() + within_s
        while not (there := wanted in self.said or wanted in ESCAPES.sub(b"", self.said)) and time.monotonic() < until:
            if select.select([self.master], [], [], 0.1)[0]:
                self.said += os.read(self.master, 65_536)
        assert there, self.said[-2000:]

    def wait(self) -> tuple[int, float]:
        """Its exit status, and how long that took. What it writes meanwhile is read."""
        begun = time.monotonic()
        while self.process.poll() is None and time.monotonic() - begun < ENDED:
            if select.select([self.master], [], [], 0.05)[0]:
                self.said += os.read(self.master, 65_536)
        while select.select([self.master], [], [], 0.1)[0]:
            self.said += os.read(self.master, 65_536)
        status = self.process.poll()
        assert status is not None, "it is still there"
        return status, time.monotonic() - begun

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(fd)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_the_terminal_as_it_was(number: signal.Signals, status: int) -> None:
    """G5-12."""
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        terminal.process.send_signal(number)
        found, took_s = terminal.wait()
        assert found == status and took_s < 3.0
        assert terminal.said.rfind(b"\x1b[?1049l") > terminal.said.rfind(b"\x1b[?1049h"), "the alternate screen"
        assert b"\x1b[?25h" in terminal.said[-400:], "the cursor"
        assert b"\x1b[?1000l" in terminal.said[-600:], "the mouse"
        assert termios.tcgetattr(terminal.slave)[3] == terminal.before[3], "echo and line mode"
    finally:
        terminal.close()


def test_what_is_stuck_behind_the_console_keeps_nobody_waiting() -> None:
    """With the status that it would have had, and the terminal as it was."""
    terminal = Terminal("stuck")
    try:
        terminal.read_until(SHOWN)
        os.write(terminal.master, b"\x11")
        found, took_s = terminal.wait()
        assert found == 0 and took_s < ENDED
        assert termios.tcgetattr(terminal.slave)[3] == terminal.before[3], "echo and line mode"
    finally:
        terminal.close()


def test_quitting_by_key() -> None:
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        os.write(terminal.master, b"\x11")
        found, took_s = terminal.wait()
        assert found == 0 and took_s < 3.0
    finally:
        terminal.close()


def test_a_defect_is_one_line_behind_the_console_and_a_file(tmp_path: Path) -> None:
    """With the terminal as it was, and no traceback: that one is in the file."""
    terminal = Terminal("defect", env={"TMPDIR": str(tmp_path)})
    try:
        terminal.read_until(SHOWN)
        os.write(terminal.master, b"\x03")
        assert terminal.wait()[0] == 1
        _, _, behind = terminal.said.rpartition(b"\x1b[?1049l")
        assert b"a defect of opsconsole: ZeroDivisionError" in behind
        assert b"Traceback" not in terminal.said
        (file,) = tmp_path.iterdir()
        assert str(file).encode() in behind and "ZeroDivisionError" in file.read_text()
        assert termios.tcgetattr(terminal.slave)[3] == terminal.before[3], "echo and line mode"
    finally:
        terminal.close()


def test_keys_in_a_burst_are_taken_one_after_another() -> None:
    """A slow line delivers them so. A plan is opened for the row that they lead to, and what follows `:` is typed."""
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        os.write(terminal.master, b":hosts\r")
        terminal.read_until(b"draining: fan")
        os.write(terminal.master, b"jjC")
        terminal.read_until(b"$ opsconsole cordon gpu003")
    finally:
        terminal.close()


def test_without_a_mouse_the_terminal_keeps_its_own_until_somebody_asks() -> None:
    terminal = Terminal("keys")
    try:
        terminal.read_until(SHOWN)
        assert b"\x1b[?1000h" not in terminal.said
        os.write(terminal.master, b":mouse\r")
        terminal.read_until(b"\x1b[?1000h")
        os.write(terminal.master, b":mouse\r")
        terminal.read_until(b"\x1b[?1000l")
    finally:
        terminal.close()


def test_a_copy_reaches_the_terminal() -> None:
    """OSC 52 with the name of the selected thing, whatever becomes of it there."""
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        os.write(terminal.master, b"2")
        terminal.read_until(b"draining: fan")
        os.write(terminal.master, b"y")
        terminal.read_until(b"\x1b]52;c;" + base64.b64encode(b"gpu001") + b"\x07")
    finally:
        terminal.close()


def test_what_is_pasted_is_neither_keys_nor_commands() -> None:
    """On a table a bracketed paste does nothing; on the command line its first line is typed, and not entered."""
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        os.write(terminal.master, b"\x1b[200~2D\r:quit\r\x11\x1b[201~")
        os.write(terminal.master, b":\x1b[200~explain no-such-thing\nquit\n\x1b[201~")
        terminal.read_until(b"explain no-such-thing")
        assert terminal.process.poll() is None and b"Drain plan" not in terminal.said
        os.write(terminal.master, b"\r")
        terminal.read_until(b"Explain no-such-thing")
        os.write(terminal.master, b"\x11")
        assert terminal.wait()[0] == 0
    finally:
        terminal.close()


def test_a_terminal_that_is_gone_ends_the_console() -> None:
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        os.close(terminal.slave)
        os.close(terminal.master)
        assert terminal.process.wait(ENDED) != 0
    finally:
        terminal.close()


def test_a_hang_up_that_wakes_it_too_leaves_nothing_behind() -> None:
    """The kernel sends SIGCONT after SIGHUP: it must not leave a second reader of keys behind that never ends."""
    terminal = Terminal()
    try:
        terminal.read_until(SHOWN)
        for _ in range(5):
            terminal.process.send_signal(signal.SIGCONT)
            time.sleep(0.1)
        os.close(terminal.slave)
        os.close(terminal.master)
        assert terminal.process.wait(ENDED) != 0
    finally:
        terminal.close()


def test_screens_import_no_transport_store_or_hostkit() -> None:
    """And no asyncssh: the first frame is worth 150 ms."""
    code = (
        "import sys, opsconsole.ui.app\n"
        "bad = ('asyncssh', 'sqlite3', 'opsconsole.transport', 'opsconsole.store', 'opsconsole.hostkit')\n"
        "sys.exit(', '.join(m for m in sys.modules if m.startswith(bad)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
