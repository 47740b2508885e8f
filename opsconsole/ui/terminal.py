"""The terminal's life: signals leave it sane, one that is gone ends the app, and leaving takes at most two seconds."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

LEAVE_S = 2.0
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
ESC = "\x1b"
FAILED = 255  # ssh's own exit status, when it is not that of the session
IN_FRONT = f"""
"$@"
status=$?
if [ $status -eq {FAILED} ]; then
    printf '\\nPress Enter to go back to the console. '
    read _
fi
exit $status
"""
# alternate screen, mouse in all its ways, bracketed paste, focus events, kitty keys off; cursor and attributes on
SANE = "\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[?25h\x1b[0m"


def on_signals(leave: Callable[[int], None]) -> Callable[[], None]:
    """Calls `leave` with the exit status 128 + n once. Returns what takes the handlers away."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave, 128 + number)

    def remove() -> None:
        for number in SIGNALS:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)

    return remove


def tty_is_gone(fd: int = 0) -> bool:
    """True where the other end of the terminal has closed, or of the pipe that stands for it. Never was one: False."""
    try:
        termios.tcgetattr(fd)
    except termios.error as error:
        return bool(error.args and error.args[0] == errno.EIO) or _hung_up(fd)
    return False


def _hung_up(fd: int) -> bool:
    """Nobody can write into this pipe any more: the browser's server has gone."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(what & select.POLLHUP for _, what in poll.poll(0))


def measure_the_terminal() -> None:
    """Where somebody exported COLUMNS and LINES, Textual goes by them and never hears that the terminal is another."""
    if sys.__stdout__ is not None and sys.__stdout__.isatty():
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)


def desktop_notice(text: str) -> str:
    """OSC 777 for a terminal that shows notices. tmux lets it through where `allow-passthrough` is on."""
    plain = "".join(c for c in text if c.isprintable()).replace(";", ",")
    notice = f"\x1b]777;notify;opsconsole;{plain}\x1b\\"
    return f"\x1bPtmux;{notice.replace(ESC, ESC * 2)}\x1b\\" if os.environ.get("TMUX") else notice


def set_mouse(driver: Any, on: bool) -> None:
    """Raises AttributeError for a driver that knows no mouse."""
    if on:
        driver._mouse = True
        driver._enable_mouse_support()
    else:
        driver._disable_mouse_support()
        driver._mouse = False


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Ctrl-C is for what runs in front, which still has it: a handler is not inherited, as being ignored would be."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def run_in_front(argv: Sequence[str]) -> int:
    """A command that has the terminal, while the loop goes on. Its exit status; what it said can be read if it failed.

    It ends with the caller.
    """
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", IN_FRONT, "sh", *argv)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()


class Deadline:
    """Leaves by force when leaving takes too long, with the terminal as it was."""

    def __init__(self, status: int, within_s: float = LEAVE_S) -> None:
        self._saved = saved_tty()
        self._status = status
        self._timer = threading.Timer(within_s, self._force)
        self._timer.daemon = True
        self._timer.start()

    def met(self) -> None:
        self._timer.cancel()

    def _force(self) -> None:
        restore(self._saved)
        os._exit(self._status)


def saved_tty(fd: int = 0) -> list[object] | None:
    with contextlib.suppress(termios.error, OSError, ValueError):
        return list(termios.tcgetattr(fd))
    return None


def restore(saved: list[object] | None, fd: int = 0) -> None:
    """Screen, mouse, paste, cursor and echo, also after a crash."""
    with contextlib.suppress(OSError, ValueError):
        if sys.__stdout__ is not None and sys.__stdout__.isatty():
            os.write(sys.__stdout__.fileno(), SANE.encode())
    if saved is not None:
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(fd, termios.TCSANOW, saved)  # type: ignore[arg-type]
