"""`opsconsole logs`: the output of a run, read from its host on a connection of its own."""

from __future__ import annotations

import argparse
import asyncio
import sys

from opsconsole.cli.acting import workload_ids
from opsconsole.cli.asking import look
from opsconsole.cli.output import pool_for, read_output
from opsconsole.cli.wiring import Place
from opsconsole.errors import UsageError
from opsconsole.presenting.naming import split_run
from opsconsole.presenting.view import ClusterView


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
    """To the standard output; why nothing comes just now, to the standard error."""
    tail = None if args.tail is None else int(args.tail)
    async with pool_for(Place.of(args), host) as pool:
        async for piece in read_output(pool, host, token, tail, args.follow):
            if piece.problem:
                print(piece.problem, file=sys.stderr)
            sys.stdout.buffer.write(piece.data)
            sys.stdout.buffer.flush()
    return 0
