"""`opsconsole logs`: the output of a run, read from its host on a connection of its own."""

from __future__ import annotations

import argparse
import asyncio
import base64
import sys

from opsconsole.cli.acting import workload_ids
from opsconsole.cli.asking import look
from opsconsole.cli.wiring import Place
from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.presenting.naming import split_run
from opsconsole.presenting.view import ClusterView
from opsconsole.transport.errors import NEEDS_A_PERSON, TransportError
from opsconsole.transport.link import LinkStatus
from opsconsole.transport.pool import HostPool

CHUNK = 64 * 1024  # over a slow line the readings of the host must not wait for long
ANSWER_S = 15.0
POLL_S = 0.5
CONNECT_S = 15.0


def run(args: argparse.Namespace) -> int:
    """Exit status 1 where the host cannot be asked."""
    _, view = look(args)
    token, hosts = find_run(view, args.id)
    host = args.host or hosts[0]
    if host not in hosts:
        raise UsageError(f"{token} has no member on {host}; choose one of {', '.join(hosts)}")
    return asyncio.run(_read(args, token, host))


def find_run(view: ClusterView, name: str) -> tuple[str, list[str]]:
    """The named run, or the newest of the named workload, with its hosts in rank order. Raises UsageError."""
    (wid,) = workload_ids(view, [name])
    record = view.state.workloads[wid]
    runs: list[tuple[str, list[str]]] = [
        (attempt.run, [member.host for member in attempt.members]) for attempt in reversed(record.attempts)
    ]
    if record.run is not None:
        runs.insert(0, (record.run, list(view.state.runs[record.run].members)))
    number = "" if name == wid else split_run(name)[1]
    for run, hosts in runs:
        if number in ("", run.removeprefix(wid)):
            return run, hosts
    raise UsageError(f"{name} has not run yet", advice=f"opsconsole explain {wid} tells why")


async def _read(args: argparse.Namespace, token: str, host: str) -> int:
    place = Place.of(args)
    addresses = [a for a in place.addresses() if a.name == host]
    if not addresses:
        raise OpsConsoleError(f"{host} is no longer in the inventory")
    hello = {"interval_s": place.inventory.ssh.probe_interval_ms / 1000}  # no store: it only looks
    pool = HostPool(addresses, place.pool_options(lambda name: hello), lambda event: None)
    pool.start()
    try:
        await _connected(pool, host)
        await _copy(args, pool, host, token)
    finally:
        await pool.aclose()
    return 0


async def _connected(pool: HostPool, host: str) -> None:
    for _ in range(int(CONNECT_S / 0.05)):
        status = pool.status(host)
        if status.state in ("live", "late"):
            return
        if status.attempts:
            break
        await asyncio.sleep(0.05)
    status = pool.status(host)
    raise unasked(host, status)


def unasked(host: str, status: LinkStatus) -> OpsConsoleError:
    said = ": ".join(filter(None, (status.kind, status.why)))
    return OpsConsoleError(f"{host} cannot be asked: {said}", advice=status.advice)


async def _connected_again(pool: HostPool, host: str, lost: TransportError) -> None:
    """A broken link ends nothing that is followed, unless only a person can mend it."""
    print(f"{host}: {lost.kind}: {lost.why}; going on as soon as it answers", file=sys.stderr)
    while (status := pool.status(host)).state != "live":
        if status.kind in NEEDS_A_PERSON:
            raise unasked(host, status)
        await asyncio.sleep(POLL_S)


async def _copy(args: argparse.Namespace, pool: HostPool, host: str, token: str) -> None:
    """To the standard output until the end, or until what there is has been read. Every byte once."""
    offset = await _first_offset(args, pool, host, token)
    while True:
        try:
            answer = await pool.request(host, "log", ANSWER_S, token=token, offset=offset, max_bytes=CHUNK)
        except TransportError as lost:
            if not args.follow:
                raise
            await _connected_again(pool, host, lost)
            continue
        if not answer.get("ok"):
            raise OpsConsoleError(f"{host} has no output of {token}: {answer.get('message', '')}")
        sys.stdout.buffer.write(base64.b64decode(answer["data"]))
        sys.stdout.buffer.flush()
        moved, offset = int(answer["offset"]) > offset, int(answer["offset"])
        if moved and offset < int(answer["size"]):
            continue
        if not args.follow or answer["ended"]:
            return
        await asyncio.sleep(POLL_S)


async def _first_offset(args: argparse.Namespace, pool: HostPool, host: str, token: str) -> int:
    if args.tail is None:
        return 0
    answer = await pool.request(host, "log", ANSWER_S, token=token, offset=0, max_bytes=1)
    size, tail = int(answer.get("size") or 0), int(args.tail)
    return max(0, size - tail)
