"""The output of a run, piece by piece from its host: for `opsconsole logs` and for the console."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from opsconsole.cli.wiring import Place
from opsconsole.errors import OpsConsoleError
from opsconsole.ports import Pool
from opsconsole.transport.errors import NEEDS_A_PERSON, TransportError
from opsconsole.transport.link import LinkStatus
from opsconsole.ui.source import OutputPiece

CHUNK = 64 * 1024  # over a slow line the readings of the host must not wait for long
ANSWER_S = 15.0
POLL_S = 0.5
CONNECT_S = 15.0


@asynccontextmanager
async def pool_for(place: Place, host: str) -> AsyncIterator[Pool]:
    """A connection of its own, which only looks. Raises OpsConsoleError where the host cannot be asked."""
    from opsconsole.transport.pool import HostPool

    address = place.address(host)
    hello = {"interval_s": place.inventory.ssh.probe_interval_ms / 1000}  # no store: nothing is fenced
    pool = HostPool([address], place.pool_options(lambda name: hello), lambda event: None)
    pool.start()
    try:
        await _connected(pool, host)
        yield pool
    finally:
        await pool.aclose()


async def _connected(pool: Pool, host: str) -> None:
    for _ in range(int(CONNECT_S / 0.05)):
        status = pool.status(host)
        if status.state in ("live", "late"):
            return
        if status.attempts:
            break
        await asyncio.sleep(0.05)
    raise unasked(host, pool.status(host))


def unasked(host: str, status: LinkStatus) -> OpsConsoleError:
    said = ": ".join(filter(None, (status.kind, status.why)))
    return OpsConsoleError(f"{host} cannot be asked: {said}", advice=status.advice)


async def read_output(
    pool: Pool, host: str, token: str, tail: int | None, follow: bool, keep_up: bool = False
) -> AsyncIterator[OutputPiece]:
    """From the last `tail` bytes on (None: the first), until the end, or until what there is has been read. Every byte
    once, but where it would fall further behind than `tail` and shall `keep_up`.

    A broken link ends nothing that is followed, unless only a person can mend it. Raises OpsConsoleError.
    """
    offset = 0 if tail is None else await _offset(pool, host, token, tail)
    while True:
        try:
            answer = await pool.request(host, "log", ANSWER_S, token=token, offset=offset, max_bytes=CHUNK)
        except TransportError as lost:
            if not follow:
                raise
            yield OutputPiece(b"", problem=f"{host}: {lost.kind}: {lost.why}; going on as soon as it answers")
            await _connected_again(pool, host)
            continue
        _check(host, token, answer)
        moved, offset, size = int(answer["offset"]) > offset, int(answer["offset"]), int(answer["size"])
        more = moved and offset < size
        ended = bool(answer["ended"]) and not more
        yield OutputPiece(base64.b64decode(answer["data"]), ended)
        if more:
            offset = max(offset, size - tail) if keep_up and tail is not None else offset
        elif ended or not follow:
            return
        else:
            await asyncio.sleep(POLL_S)


async def _offset(pool: Pool, host: str, token: str, tail: int) -> int:
    answer = await pool.request(host, "log", ANSWER_S, token=token, offset=0, max_bytes=1)
    _check(host, token, answer)
    return max(0, int(answer["size"]) - tail)


def _check(host: str, token: str, answer: dict[str, Any]) -> None:
    if not answer.get("ok"):
        raise OpsConsoleError(f"{host} has no output of {token}: {answer.get('message', '')}")


async def _connected_again(pool: Pool, host: str) -> None:
    while (status := pool.status(host)).state != "live":
        if status.kind in NEEDS_A_PERSON:
            raise unasked(host, status)
        await asyncio.sleep(POLL_S)
