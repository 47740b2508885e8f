"""Leading without a screen."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time

from opsconsole.cli.leadplan import changed_since, lead_sentences
from opsconsole.cli.reloading import Watch
from opsconsole.cli.wiring import Place
from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.leader import LeadPlan
from opsconsole.presenting.view import PendingInventory
from opsconsole.runtime import Runtime

STANDBY_S = 1.0
SAY_S = 0.5


def run(args: argparse.Namespace) -> int:
    """Leads until SIGTERM, SIGINT or SIGHUP, or until another leader takes over (exit status 1)."""
    return asyncio.run(_serve(args))


async def _serve(args: argparse.Namespace) -> int:
    place = Place.of(args)
    runtime = place.leader()
    stop = asyncio.Event()
    signals: list[int] = []

    def end(signum: int) -> None:
        signals.append(signum)
        stop.set()

    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(signum, end, signum)
    leading = asyncio.create_task(_lead(args, place, runtime))
    watch = Watch(place, runtime)
    others = [asyncio.create_task(work) for work in (stop.wait(), watch.run(), say(runtime, watch))]
    await asyncio.wait({leading, *others}, return_when=asyncio.FIRST_COMPLETED)
    for task in (leading, *others):
        task.cancel()
    try:
        await leading
    except asyncio.CancelledError:
        if runtime.led_until_closed:
            print("no longer leading; runs go on by themselves", file=sys.stderr)
        else:
            print("not leading; nothing was done", file=sys.stderr)
            return 130 if signal.SIGINT in signals else 0
    for task in others:  # one that failed is a defect that must be seen
        if task.done() and not task.cancelled():
            task.result()
    return 0


async def say(runtime: Runtime, watch: Watch) -> None:
    """All that a headless leader tells: that it leads, alarms as they come and go, what a changed inventory changes."""
    said: dict[str, str] = {}
    leads = False
    while True:
        if runtime.leader is not None and runtime.leader.acted and not leads:
            leads = True
            print(f"{clock()} leads {runtime.site.name}, epoch {runtime.leader.epoch}", flush=True)
        for about, text in runtime.alarms.items():
            if said.get(about) != text:
                print(f"{clock()} ! {about}: {text}", flush=True)
                if about == "inventory" and watch.pending is not None:
                    print_changes(watch.pending)
        for about in said.keys() - runtime.alarms.keys():
            print(f"{clock()} {about}: over", flush=True)
        said = dict(runtime.alarms)
        await asyncio.sleep(SAY_S)


def clock() -> str:
    return time.strftime("%H:%M:%S")


def print_changes(pending: PendingInventory) -> None:
    for change in pending.changes:
        print(f"  {change}")
    print("  opsconsole reload applies this", flush=True)


async def _lead(args: argparse.Namespace, place: Place, runtime: Runtime) -> None:
    if args.standby:
        while runtime.store.lease().live:
            await asyncio.sleep(STANDBY_S)

    async def confirm(plan: LeadPlan) -> bool:
        print(f"{place.cluster.name} by {place.file}, store {place.inventory.store_path(place.cluster)}")
        print(*changed_since(place, runtime), *lead_sentences(plan), sep="\n", flush=True)
        if args.dry_run:
            return False
        if args.yes or args.standby:
            return True
        if not sys.stdin.isatty():
            raise UsageError("not confirmed; nothing was done", advice="say --yes where nobody can be asked")
        return await typed("Lead this cluster? Type yes: ") == "yes"

    try:
        await runtime.lead("serve", confirm)
    except OpsConsoleError:
        if args.dry_run:
            return
        raise


async def typed(prompt: str) -> str:
    """A line from the terminal. A thread that waits for one would outlive Ctrl-C."""
    loop, line = asyncio.get_running_loop(), asyncio.Event()
    print(prompt, end="", flush=True)
    loop.add_reader(sys.stdin, line.set)
    try:
        await line.wait()
        return sys.stdin.readline().strip()
    finally:
        loop.remove_reader(sys.stdin)
