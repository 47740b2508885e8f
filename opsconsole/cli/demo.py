"""`opsconsole demo`: hosts on loopback, then the console on them, or a story without a screen."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from dataclasses import asdict

from opsconsole.cli.wiring import Place
from opsconsole.demo import fault, story
from opsconsole.demo.cluster import DemoCluster
from opsconsole.demo.story import Story
from opsconsole.errors import OpsConsoleError


def run(args: argparse.Namespace) -> int:
    """Leaves nothing behind, however it ends."""
    if args.script:
        try:
            return asyncio.run(_script(args))
        except asyncio.CancelledError:
            raise OpsConsoleError("ended by a signal before the story was told") from None
    from opsconsole.cli.console import run_demo

    return run_demo(args)


async def _script(args: argparse.Namespace) -> int:
    told = fault if args.script == "fault" else story
    cluster = DemoCluster(args.hosts, told.HEALTH)
    task = asyncio.current_task()
    assert task is not None
    for signum in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(signum, task.cancel)
    try:
        await cluster.start()
        args.inventory, args.cluster = str(cluster.inventory), None
        place = Place.of(args)
        found = await told.tell(cluster, place.leader(), lambda line: print(line, file=sys.stderr, flush=True))
    finally:
        await cluster.stop()
    _print(args, found)
    return 0 if found.held else 1


def _print(args: argparse.Namespace, story: Story) -> None:
    if args.json:
        print(json.dumps({**asdict(story), "held": story.held}, indent=2))
        return
    for row in story.runs:
        ran = f"ran {row.get('ran_s', 0):.1f} s of at least {row['min_runtime_s']:.0f}"
        print(f"{row['run']} ({row['budget']}): {ran}; {row['cause'] or 'ended by itself'}")
    for row in story.restarted:
        print(f"{row['workload']} went on as {row['run']} on {', '.join(row['hosts'])}")
    for promise, held in story.promises.items():
        print(f"{'kept' if held else 'BROKEN'}: {promise}")
