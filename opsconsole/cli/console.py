"""`opsconsole` without a command: the console. And the demo's, which leads."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from opsconsole.cli.wiring import Place
from opsconsole.errors import UsageError
from opsconsole.memory import all_to_stay

if TYPE_CHECKING:
    from opsconsole.config.console import Layer
    from opsconsole.demo.cluster import DemoCluster
    from opsconsole.ui.app import OpsConsoleApp
    from opsconsole.ui.desk import Desk

FAULT_AT_S = 40.0
FAULT = ("gpu06", 3)


def run(args: argparse.Namespace) -> int:
    """Opens the console; it follows, unless --lead."""
    _need_terminal()
    place = Place.of(args)
    desk = _desk(args, place.inventory.console)
    write = f"{args.write} from the command line" if args.write else ""
    return asyncio.run(show(place, "console" if args.lead else "", write, desk=desk))


def run_demo(args: argparse.Namespace) -> int:
    """The console on a cluster of its own, which it leads and which goes with it."""
    _need_terminal()
    return asyncio.run(_demo(args, _desk(args)))


def _desk(args: argparse.Namespace, cluster: Layer | None = None) -> Desk:
    with all_to_stay():
        from opsconsole.cli.desk import desk_of

        return desk_of(args, cluster)


def _need_terminal() -> None:
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # it draws on the last
        raise UsageError("the console needs a terminal", advice="for scripts: opsconsole queue --json, events -f, …")


async def present(app: OpsConsoleApp, last: bool = False) -> int:
    """The console until somebody leaves it: its exit status. Raises the defect that ended it.

    `last`: nothing that matters follows, so what the loop and threads still do may not keep the process for long.
    """
    from opsconsole.ui.terminal import Deadline, measure_the_terminal

    measure_the_terminal()
    status = await app.run_async(mouse=app.settings.mouse) or 0
    if app.failure is not None:
        raise app.failure
    if last:
        Deadline(status)
    return status


async def show(place: Place, lead_as: str = "", write: str = "", read_only: str = "", desk: Desk | None = None) -> int:
    """`read_only`: why nobody may open a write window in it."""
    with all_to_stay():
        from opsconsole.cli.source import LiveSource
        from opsconsole.ui.app import OpsConsoleApp

        source = LiveSource(place, place.leader(), lead_as, read_only=read_only)
        app = OpsConsoleApp(source, write, desk)
    try:
        return await present(app, last=True)
    finally:
        if source.left:
            print(source.left, file=sys.stderr)


async def _demo(args: argparse.Namespace, desk: Desk) -> int:
    from opsconsole.cli.source import LiveSource
    from opsconsole.demo.cluster import DemoCluster
    from opsconsole.demo.feeding import feed
    from opsconsole.demo.stream import submissions
    from opsconsole.ui.app import OpsConsoleApp

    cluster = DemoCluster(args.hosts)
    print(f"Starting {args.hosts} hosts of 8 simulated GPUs, each a real SSH server on loopback …", flush=True)
    try:
        await cluster.start()
        args.inventory, args.cluster = str(cluster.inventory), None
        place = Place.of(args)
        runtime = place.leader()
        source = LiveSource(place, runtime, "demo", hand_over=False)

        async def live() -> None:
            """Teams submit, and a GPU goes bad in the first minute."""
            while not runtime.state.hosts:
                await asyncio.sleep(0.1)
            await asyncio.gather(feed(runtime, submissions(args.seed)), _fault(cluster))

        living = asyncio.create_task(live())
        try:
            return await present(OpsConsoleApp(source, desk=desk))
        finally:
            living.cancel()
    finally:
        await cluster.stop()


async def _fault(cluster: DemoCluster) -> None:
    await asyncio.sleep(FAULT_AT_S)
    if cluster.hosts >= int(FAULT[0].removeprefix("gpu")):
        cluster.break_gpu(*FAULT)
