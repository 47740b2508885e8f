"""Leading without a screen."""

from __future__ import annotations

import argparse
import asyncio
import signal

from opsconsole.cli.leadplan import changed_since, lead_sentences
from opsconsole.cli.prompting import INTERRUPTED, NotConfirmed, ask_meanwhile, need_answer
from opsconsole.cli.reloading import Watch
from opsconsole.cli.telling import Teller, tell
from opsconsole.cli.wiring import Place, view_of
from opsconsole.errors import OpsConsoleError, StoreUnavailable
from opsconsole.leader import Confirm, LeadPlan
from opsconsole.runtime import Runtime

STANDBY_S = 1.0


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
    watch = Watch(place, runtime)
    teller = Teller(runtime, watch, args.quiet)
    leading = asyncio.create_task(_lead(args, place, teller))
    others = [asyncio.create_task(work) for work in (stop.wait(), watch.run(), teller.run())]
    await asyncio.wait({leading, *others}, return_when=asyncio.FIRST_COMPLETED)
    for task in (leading, *others):
        task.cancel()
    try:
        await leading
    except asyncio.CancelledError:
        if runtime.led_until_closed:
            tell("no longer leading; runs go on by themselves")
        else:
            tell("not leading; nothing was done")
            return INTERRUPTED if signal.SIGINT in signals else 0
    for task in others:  # one that failed is a defect that must be seen
        if task.done() and not task.cancelled():
            task.result()
    return 0


async def _lead(args: argparse.Namespace, place: Place, teller: Teller) -> None:
    runtime = teller.runtime
    asks = not (args.standby or args.dry_run) and need_answer(args)
    if args.standby and not args.dry_run and await _stand_by(runtime):
        place.take_over(runtime)
    shown = False

    async def confirm(plan: LeadPlan) -> bool:
        nonlocal shown
        print(f"{place.cluster.name} by {place.file}, store {place.inventory.store_path(place.cluster)}")
        print(*changed_since(place, runtime), *lead_sentences(plan, view_of(runtime)), sep="\n", flush=True)
        teller.seen, shown = runtime.following.seq, True
        if asks and await ask_meanwhile("Lead this cluster? Type yes: ") != "yes":
            raise NotConfirmed
        return not args.dry_run

    try:
        await _take(runtime, confirm, args.standby and not args.dry_run)
    except OpsConsoleError:
        if not (args.dry_run and shown):
            raise


async def _take(runtime: Runtime, confirm: Confirm, patient: bool) -> None:
    """Leads. A former leader that froze inside a write holds the store: who is `patient` tries until it lets go."""
    said = False
    while True:
        epoch = runtime.store.lease().epoch
        try:
            return await runtime.lead("serve", confirm)
        except StoreUnavailable as error:
            if not patient or runtime.store.lease().epoch != epoch:
                raise
            if not said:
                tell(f"cannot take over yet: {error.args[0]}")
            said = True
        await asyncio.sleep(STANDBY_S)


async def _stand_by(runtime: Runtime) -> bool:
    """Until nobody leads; says whom it waits for. False where nobody led."""
    waited_for = ""
    while (lease := runtime.store.lease()).live:
        if lease.holder != waited_for:
            waited_for = lease.holder
            tell(f"standing by: {lease.kind} at {lease.holder} leads {runtime.site.name}")
        await asyncio.sleep(STANDBY_S)
    return bool(waited_for)
