"""One agent session over any byte channel: bootstrap, then requests with deadlines and unasked lines.

Decides when a session is dead: the channel ended, or nothing was heard for `SILENT_INTERVALS` intervals plus a margin
(a half-open link ends like this, in bounded time, whatever TCP believes). It refuses to resend anything.

States: booting → (placing) → ready → ended. `feed`, `feed_stderr` and `lost` are called by the channel; nothing blocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from opsconsole.transport.bootstrap import BOOT_MARK, Boot, Kit, boot_script, parse_boot
from opsconsole.transport.errors import TransportError, Unreach, plain
from opsconsole.transport.lines import LineCounts, LineReader, Tail, parse_object

SILENT_INTERVALS = 3
SILENCE_MARGIN_S = 2.0
MAX_WAITING = 256  # requests without an answer, per session


class Channel(Protocol):
    """Where bytes go. Neither call blocks or raises on a dead channel."""

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None: ...


def agent_kind(code: object, other: Unreach) -> Unreach:
    """The agent's error code as a kind of ours."""
    return {"fenced": Unreach.FENCED, "state_dir": Unreach.STATE_DIR}.get(str(code), other)


class Session:
    """See the module. `on_line` gets every object that answers no request."""

    def __init__(self, host: str, on_line: Callable[[dict[str, Any]], None]) -> None:
        self.host = host
        self.counts = LineCounts()
        self.boot: Boot | None = None
        self.noise = Tail()
        self.stderr = Tail()
        self.last_line_at = 0.0  # time.monotonic()
        self.rtt_s: float | None = None
        self.closed: asyncio.Future[TransportError] = asyncio.get_running_loop().create_future()
        self._on_line = on_line
        self._channel: Channel | None = None
        self._reader = LineReader(self._line, self._overlong)
        self._nonce = secrets.token_hex(8)
        self._step: asyncio.Future[dict[str, Any]] | None = None  # what the bootstrap waits for
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next_id = 1
        self._watch: asyncio.TimerHandle | None = None
        self._exit_status: int | None = None
        self._asked_at = 0.0
        self._fatal: dict[str, Any] | None = None

    # What the channel calls

    def attach(self, channel: Channel) -> None:
        """The channel is open."""
        self._channel = channel

    def feed(self, data: bytes) -> None:
        self._reader.feed(data)

    def feed_stderr(self, data: bytes) -> None:
        self.stderr.add(data)

    def exited(self, status: int) -> None:
        """The far side's command ended."""
        self._exit_status = status

    def lost(self, why: str = "") -> None:
        """The channel is gone."""
        if self.boot is None:
            said = plain(f"{self.noise.text()} {self.stderr.text()}") or why
            self._end(Unreach.NO_SHELL if self._exit_status is not None else Unreach.CLOSED, said or "nothing was said")
            return
        if self._fatal is not None:
            kind = agent_kind(self._fatal.get("error"), Unreach.CLOSED)
            self._end(kind, plain(str(self._fatal.get("message"))))
            return
        status = f"exit status {self._exit_status}" if self._exit_status is not None else why
        self._end(Unreach.CLOSED, plain(f"{status or 'the connection ended'} {self.stderr.text()}"))

    # What its owner calls

    async def bootstrap(self, kit: Kit, *, state_dir: str | None = None, python: str | None = None) -> Boot:
        """Until the agent runs. The caller sets the deadline. Raises TransportError."""
        self._write(boot_script(kit, self._nonce, state_dir, python))
        boot = parse_boot(await self._next_step(), self._nonce)
        assert boot is not None
        self.boot = boot
        if boot.state_dir_error:
            self._fail(Unreach.STATE_DIR, boot.state_dir_error)
        if boot.python is None:
            found = ", ".join(f"{path} {version or 'does not run'}" for path, version in boot.pythons)
            self._fail(Unreach.NO_PYTHON, f"found {found}" if found else "none on PATH")
        if not boot.have:
            await self._place(kit)
        return boot

    async def _place(self, kit: Kit) -> None:
        self._write(kit.data)
        answer = await self._next_step()
        if not answer.get("placed"):
            self._fail(Unreach.STATE_DIR, plain(str(answer.get("error"))))

    async def request(self, op: str, *, deadline_s: float, **fields: Any) -> dict[str, Any]:
        """The agent's answer, `ok` true or false. TransportError when none came; `outcome_unknown`: it was sent."""
        if self.closed.done():
            raise self._unsent(op, self.closed.result().kind, self.closed.result().why)
        if len(self._waiting) >= MAX_WAITING:
            raise self._unsent(op, Unreach.LOCAL_LIMIT, f"{MAX_WAITING} requests wait for an answer already")
        number, self._next_id = self._next_id, self._next_id + 1
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        sent_at = monotonic()
        self._write(json.dumps({"id": number, "op": op, **fields}, separators=(",", ":")).encode() + b"\n")
        try:
            async with asyncio.timeout(deadline_s):
                answer: dict[str, Any] = await future
        except TimeoutError:
            why = f"no answer in {deadline_s:g} s"
            raise TransportError(self.host, op, why, Unreach.TIMED_OUT, outcome_unknown=True) from None
        finally:
            self._waiting.pop(number, None)
        if op != "hello":  # its answer waits for Python to start
            self.rtt_s = monotonic() - sent_at
        return answer

    def expect_every(self, interval_s: float) -> None:
        """From now on a line is due every `interval_s`. A silent agent is asked once; a silent link ends."""
        self._ask()
        self._schedule_watch(interval_s)

    def end(self, kind: Unreach = Unreach.CLOSED, why: str = "closed by the console") -> None:
        """Close now. The agent leaves with its stdin; runs do not notice."""
        self._end(kind, why)

    # Inside

    def _write(self, data: bytes) -> None:
        if self._channel is not None:
            self._channel.write(data)

    async def _next_step(self) -> dict[str, Any]:
        if self.closed.done():
            raise self.closed.result()
        self._step = asyncio.get_running_loop().create_future()
        return await self._step

    def _line(self, line: bytes) -> None:
        self.last_line_at = monotonic()
        if self.boot is None:
            self._boot_line(line)
            return
        fields = parse_object(line)
        self.counts.lines += 1
        if fields is None:
            if line.strip():
                self.counts.undecodable += 1
                self.noise.add(line + b"\n")
        elif "placed" in fields:
            self._take_step(fields)
        elif "re" in fields:
            self._answer(fields)
        else:
            if fields.get("event") == "fatal":  # its last words: the reason of the end that follows
                self._fatal = fields
            self._on_line(fields)

    def _boot_line(self, line: bytes) -> None:
        _, found, rest = line.partition(BOOT_MARK)
        fields = parse_object(rest.decode("utf-8", "replace").encode()) if found else None
        if fields is not None and parse_boot(fields, self._nonce) is not None:
            self._take_step(fields)
        else:
            self.noise.add(line + b"\n")

    def _take_step(self, fields: dict[str, Any]) -> None:
        if self._step is not None and not self._step.done():
            self._step.set_result(fields)

    def _answer(self, fields: dict[str, Any]) -> None:
        number = fields["re"]
        if number == 0:
            self.rtt_s = monotonic() - self._asked_at
        future = self._waiting.get(number) if isinstance(number, int) else None
        if future is not None and not future.done():  # else: it came after its deadline
            future.set_result(fields)

    def _overlong(self, length: int) -> None:
        self.last_line_at = monotonic()
        if self.boot is not None:
            self.counts.overlong += 1
        self.noise.add(f"(a line of {length} bytes)\n".encode())

    def _unsent(self, op: str, kind: Unreach, why: str) -> TransportError:
        return TransportError(self.host, op, why, kind)

    def _fail(self, kind: Unreach, why: str) -> None:
        self._end(kind, why)
        raise self.closed.result()

    def _end(self, kind: Unreach, why: str) -> None:
        if self.closed.done():
            return
        what = "session" if self.boot is not None else "login shell"
        error = TransportError(self.host, what, why, kind, exit_status=self._exit_status, stderr=self.stderr.text())
        self.closed.set_result(error)
        if self._watch is not None:
            self._watch.cancel()
        if self._step is not None and not self._step.done():
            self._step.set_exception(error)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(TransportError(self.host, "request", why, kind, outcome_unknown=True))
        if self._channel is not None:
            with contextlib.suppress(Exception):  # the far end may be in any state; it is gone for us either way
                self._channel.abort()

    def _schedule_watch(self, interval_s: float, asked: bool = False) -> None:
        """Look again when the next limit could be passed, not before."""
        limit_s = SILENT_INTERVALS * interval_s + SILENCE_MARGIN_S if asked else 2 * interval_s
        loop = asyncio.get_running_loop()
        due = max(self.last_line_at + limit_s, monotonic()) + 0.01
        self._watch = loop.call_at(due, self._check_silence, interval_s, asked)

    def _check_silence(self, interval_s: float, asked: bool) -> None:
        silent_s = monotonic() - self.last_line_at
        if silent_s > SILENT_INTERVALS * interval_s + SILENCE_MARGIN_S:
            self._end(Unreach.TIMED_OUT, f"silent for {silent_s:.0f} s")
            return
        late = silent_s > 2 * interval_s
        if late and not asked:  # an agent whose probe hangs still answers; a dead link does not
            self._ask()
        self._schedule_watch(interval_s, asked=late)

    def _ask(self) -> None:
        """A small request for its round trip and as a sign of life; its answer has number 0."""
        self._asked_at = monotonic()
        self._write(b'{"id":0,"op":"list"}\n')
