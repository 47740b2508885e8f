"""JSON lines on two descriptors: what comes from the client and what goes to it. Nothing here waits."""

from __future__ import annotations

import json
import os
import selectors
from typing import Any, Callable

from .files import Record

LINE_BYTES_MAX = 1 << 20
OUTPUT_FULL = 1 << 18  # what can be left out is left out while this much waits for the client
OUTPUT_LIMIT = 1 << 26


class Leave(BaseException):
    """The agent's work is over. No door for exceptions stops it."""


class Wire:
    """`on_value` gets what each line holds; a line without JSON is refused here. Raises Leave when nobody is left."""

    def __init__(
        self, stdin: int, stdout: int, selector: selectors.BaseSelector, on_value: Callable[[Any], None]
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.selector = selector
        self.on_value = on_value
        self.input = b""
        self.skipping = False
        self.output = bytearray()
        self.writing = False

    def open(self) -> None:
        for fd in (self.stdin, self.stdout):
            os.set_blocking(fd, False)
        self.selector.register(self.stdin, selectors.EVENT_READ, self._read)

    # -- in -----------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            data = os.read(self.stdin, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            raise Leave()
        *lines, self.input = (self.input + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self.input) > LINE_BYTES_MAX:
            self.input, self.skipping = b"", True

    def _line(self, line: bytes) -> None:
        if self.skipping or len(line) > LINE_BYTES_MAX:
            self.skipping = False
            self.refuse(None, "bad_request", f"a line has at most {LINE_BYTES_MAX} bytes")
            return
        if not line.strip():
            return
        try:
            value = json.loads(line)
        except ValueError as error:
            self.refuse(None, "bad_request", f"no JSON: {error}")
        except RecursionError:
            self.refuse(None, "bad_request", "nested too deeply")
        else:
            self.on_value(value)

    # -- out ----------------------------------------------------------------------------------------------------------

    def answer(self, number: Any, fields: Record) -> None:
        self.send({"re": number, "ok": True, **fields})

    def refuse(self, number: Any, code: str, message: str) -> None:
        self.send({"re": number, "ok": False, "error": code, "message": message})

    def send(self, message: Record) -> None:
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        if len(line) > LINE_BYTES_MAX:
            kept: Record = {key: value for key, value in message.items() if key in ("re", "event")}
            short = {**kept, "ok": False, "error": "too_long", "message": "longer than a line may be"}
            line = json.dumps(short).encode() + b"\n"
        self.output += line
        self._write()

    @property
    def crowded(self) -> bool:
        return len(self.output) >= OUTPUT_FULL

    def _write(self) -> None:
        """As much as the client takes; the rest when it takes more."""
        try:
            while self.output:
                sent = os.write(self.stdout, self.output[: 1 << 16])
                del self.output[:sent]
        except BlockingIOError:
            pass
        except OSError:
            raise Leave() from None
        if len(self.output) > OUTPUT_LIMIT:
            raise Leave()
        if bool(self.output) != self.writing:
            self.writing = bool(self.output)
            if self.writing:
                self.selector.register(self.stdout, selectors.EVENT_WRITE, self._write)
            else:
                self.selector.unregister(self.stdout)

    def flush_once(self) -> None:
        try:
            if self.output:
                os.write(self.stdout, self.output)
        except OSError:
            return
