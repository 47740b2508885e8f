"""One host's link: connect, say hello, stay; when it ends, say why and try again after a growing, jittered pause.

    never seen ─► connecting ─► live ⇄ late
                      ▲  └────────┴──► lost (kind, why) ─┐
                      └──────────────────────────────────┘
`late` is a fact of the clock (no line for two intervals), not a stored state. A lost host stays `lost` with its reason
while it is tried again, so that the reason does not flicker. Runs on the host never depend on this link.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import Any, Protocol

from opsconsole.transport.address import HostAddress
from opsconsole.transport.bootstrap import Boot, Kit
from opsconsole.transport.errors import ADVICE, NEEDS_A_PERSON, TransportError, Unreach, plain
from opsconsole.transport.session import Session, agent_kind

LATE_INTERVALS = 2
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
HEALTHY_S = 30.0  # a link that lived this long starts its pauses anew
EARLY_LINES = 256  # that may come in one piece with the answer to hello
SLOW_AFTER_S = 2.0  # a connection that takes longer gives its place to the next and goes on


class LinkState(StrEnum):
    NEVER_SEEN = "never seen"
    CONNECTING = "connecting"
    LIVE = "live"
    LATE = "late"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """How a host is reached now. Instants are `time.monotonic()` seconds; None means: not yet."""

    state: LinkState
    kind: Unreach | None  # None while live
    why: str
    advice: str
    since: float
    rtt_s: float | None
    attempts: int  # failed ones since it was live
    last_line_at: float | None
    bad_lines: int = 0  # overlong or no JSON, in this session


@dataclass(frozen=True, slots=True)
class Connected:
    host: str
    boot: Boot
    hello: dict[str, Any]
    noise: str = ""  # what the login printed before the agent spoke: harmless, worth a warning


@dataclass(frozen=True, slots=True)
class Disconnected:
    """It was live and is not, or the reason why it is not has changed."""

    host: str
    kind: Unreach
    what: str  # was being done
    why: str
    advice: str

    @property
    def text(self) -> str:
        """For people, with what to do where waiting does not mend it."""
        said = f"{self.kind}: {self.why}"
        return f"{said}. {self.advice}" if self.kind in NEEDS_A_PERSON else said


@dataclass(frozen=True, slots=True)
class Line:
    """One unasked object of the agent."""

    host: str
    fields: dict[str, Any]


HostEvent = Connected | Disconnected | Line


class Opener(Protocol):
    """Gives a session its channel."""

    async def open(self, address: HostAddress, session: Session) -> None: ...


class Gate:
    """Bounds how many connect at once. One that is slow leaves the queue's place after `SLOW_AFTER_S` and goes on."""

    def __init__(self, places: int) -> None:
        self._free = asyncio.Semaphore(places)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        await self._free.acquire()
        held = True

        def leave() -> None:
            nonlocal held
            if held:
                held = False
                self._free.release()

        timer = asyncio.get_running_loop().call_later(SLOW_AFTER_S, leave)
        try:
            yield
        finally:
            timer.cancel()
            leave()


@dataclass(frozen=True, slots=True)
class LinkContext:
    """What all links of a pool share."""

    kit: Kit
    hello: Callable[[str], dict[str, Any]]  # host → fields of hello: store, epoch, interval_s, …
    emit: Callable[[HostEvent], None]
    gate: Gate
    boot_timeout_s: float = 30.0
    longest_pause_s: float = LONGEST_PAUSE_S


def pause_s(failures: int, kind: Unreach, longest_s: float = LONGEST_PAUSE_S) -> float:
    """Seconds before the next try: doubling, half of it by chance; at once the longest where only a person can help."""
    grown = longest_s if kind in NEEDS_A_PERSON else min(longest_s, FIRST_PAUSE_S * 2 ** min(failures - 1, 16))
    return grown * random.uniform(0.5, 1.0)


@dataclass(slots=True)
class HostLink:
    """See the module. `start` once; `close` is final."""

    address: HostAddress
    opener: Opener
    context: LinkContext
    session: Session | None = None
    _state: LinkState = LinkState.NEVER_SEEN
    _error: TransportError | None = None
    _since: float = 0.0
    _failures: int = 0
    _interval_s: float = 0.0
    _last_line_at: float | None = None
    _rtt_s: float | None = None
    _early: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=EARLY_LINES))
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._since = monotonic()
        self._task = asyncio.create_task(self._run(), name=f"link {self.address.name}")

    def status(self) -> LinkStatus:
        """As it is at this moment."""
        session = self.session if self._state == LinkState.LIVE else None
        last = session.last_line_at if session is not None else self._last_line_at
        late = session is not None and last is not None and monotonic() - last > LATE_INTERVALS * self._interval_s
        kind = self._kind()
        why = self._error.why if self._error is not None else ""
        advice = self._error.advice or "" if self._error is not None else ADVICE[kind] if kind is not None else ""
        return LinkStatus(
            state=LinkState.LATE if late else self._state,
            kind=kind,
            why=why,
            advice=advice,
            since=self._since,
            rtt_s=session.rtt_s if session is not None else self._rtt_s,
            attempts=self._failures,
            last_line_at=last,
            bad_lines=session.counts.bad if session is not None else 0,
        )

    def _kind(self) -> Unreach | None:
        if self._state == LinkState.LIVE:
            return None
        return self._error.kind if self._error is not None else Unreach.NEVER_SEEN

    async def request(self, op: str, deadline_s: float, **fields: Any) -> dict[str, Any]:
        """See Session.request. Where the host is not live it fails at once: nothing is queued."""
        if self._state != LinkState.LIVE or self.session is None:
            kind = self._kind() or Unreach.CLOSED
            raise TransportError(self.address.name, op, self._error.why if self._error else "not connected", kind)
        return await self.session.request(op, deadline_s=deadline_s, **fields)

    def retry_now(self) -> None:
        """End the pause."""
        self._failures = 0
        self._wake.set()

    def close(self) -> list[asyncio.Task[None]]:
        """Cut it. Returns what ends soon."""
        if self.session is not None:
            self.session.end()
        if self._task is None:
            return []
        self._task.cancel()
        return [self._task]

    async def _run(self) -> None:
        while True:
            error = await self._once()
            self._lose(error)
            self._wake.clear()
            try:
                async with asyncio.timeout(pause_s(self._failures, error.kind, self.context.longest_pause_s)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _once(self) -> TransportError:
        """One life of the link, from dialling to its end."""
        if self._state == LinkState.NEVER_SEEN:
            self._state, self._since = LinkState.CONNECTING, monotonic()
        self._early.clear()
        session = self.session = Session(self.address.name, self._line)
        try:
            async with self.context.gate.place():
                await self.opener.open(self.address, session)
                hello = await self._greet(session)
            self._live(session, hello)
            await asyncio.wait({session.closed})
            return session.closed.result()
        except TransportError as error:
            return error
        except Exception as error:  # a mistake of ours: the person sees it at this host, the others go on
            return TransportError(self.address.name, "connect", plain(repr(error)), Unreach.PROTOCOL)
        finally:
            session.end()

    async def _greet(self, session: Session) -> dict[str, Any]:
        fields = self.context.hello(self.address.name)
        self._interval_s = float(fields.get("interval_s", 10.0))
        try:
            async with asyncio.timeout(self.context.boot_timeout_s):
                await session.bootstrap(self.context.kit, state_dir=self.address.state_dir, python=self.address.python)
                hello = await session.request("hello", deadline_s=self.context.boot_timeout_s, **fields)
        except TimeoutError:
            said = session.noise.text()
            why = f"no answer in {self.context.boot_timeout_s:g} s" + (f"; it said: {said}" if said else "")
            what = "start the agent" if session.boot else "wait for the login shell"
            raise TransportError(self.address.name, what, why, Unreach.TIMED_OUT) from None
        if not hello.get("ok"):
            kind = agent_kind(hello.get("error"), Unreach.PROTOCOL)
            raise TransportError(self.address.name, "hello", plain(str(hello.get("message"))), kind)
        self._require_ours(hello.get("fence"), fields)
        return hello

    def _require_ours(self, fence: object, fields: dict[str, Any]) -> None:
        """A host answers everybody, and takes orders from the newest leader of one store. Who asks without a store only
        looks.
        """
        if "store" not in fields or not isinstance(fence, dict):
            return
        store, epoch = fence.get("store"), fence.get("epoch")
        if store != fields["store"]:
            why = f"it belongs to store {plain(str(store), 40)}"
            raise TransportError(self.address.name, "hello", why, Unreach.OTHER_STORE)
        if isinstance(epoch, int) and epoch > fields.get("epoch", epoch):
            why = f"epoch {fields['epoch']} is over: it has served epoch {epoch}"
            raise TransportError(self.address.name, "hello", why, Unreach.FENCED)

    def _live(self, session: Session, hello: dict[str, Any]) -> None:
        assert session.boot is not None
        self._state, self._error, self._since = LinkState.LIVE, None, monotonic()
        session.expect_every(self._interval_s)
        self.context.emit(Connected(self.address.name, session.boot, hello, session.noise.text()))
        while self._early:
            self._line(self._early.popleft())

    def _lose(self, error: TransportError) -> None:
        was_live = self._state == LinkState.LIVE
        if was_live and monotonic() - self._since >= HEALTHY_S:
            self._failures = 0
        self._failures += 1
        if was_live and self.session is not None:
            self._last_line_at, self._rtt_s = self.session.last_line_at, self.session.rtt_s
        news = was_live or self._error is None or self._error.kind != error.kind
        if was_live or self._state != LinkState.LOST:
            self._since = monotonic()
        self._state, self._error = LinkState.LOST, error
        if news:
            self.context.emit(Disconnected(self.address.name, error.kind, error.what, error.why, error.advice or ""))

    def _line(self, fields: dict[str, Any]) -> None:
        """What came in one piece with the answer to hello is told after it: the receiver begins anew there."""
        if self._state == LinkState.LIVE:
            self.context.emit(Line(self.address.name, fields))
        else:
            self._early.append(fields)
