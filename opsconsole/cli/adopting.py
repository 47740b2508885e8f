"""`opsconsole adopt`: takes hosts over from another store, once its leader is gone for good."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from typing import Any

from opsconsole.cli.acting import host_names, report, show_plan, show_plan_json
from opsconsole.cli.prompting import confirm_meanwhile
from opsconsole.cli.wiring import Place
from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.presenting.plans import PLAIN_COLUMNS, Plan, command_line
from opsconsole.presenting.rows import Cell, Row, TableView
from opsconsole.presenting.text import clean, count
from opsconsole.transport.link import Connected, Disconnected
from opsconsole.transport.pool import HostPool

ADOPT_S = 15.0
FINAL = ("released", "never_started")
Hello = dict[str, Any]


def run(args: argparse.Namespace) -> int:
    """Exit status 1 where a host could not be taken over."""
    return asyncio.run(_adopt(args))


async def _adopt(args: argparse.Namespace) -> int:
    place = Place.of(args)
    store = place.open_store()
    mine = {"store": store.id, "epoch": store.lease().epoch}
    addresses = {address.name: address for address in place.addresses()}
    names = host_names(args.hosts) or list(addresses)
    if unknown := [name for name in names if name not in addresses]:
        raise UsageError(f"no host {', '.join(unknown)} in the inventory")
    said: dict[str, Hello | str] = {}

    def hear(event: object) -> None:
        if isinstance(event, Connected):
            said[event.host] = event.hello
        elif isinstance(event, Disconnected):
            said.setdefault(event.host, f"{event.kind}: {event.why}")

    pool = HostPool([addresses[n] for n in names], place.pool_options(lambda _: {"interval_s": 60}), hear)
    pool.start()
    try:
        await _until_all(names, said, place.inventory.ssh.connect_timeout_ms / 1000 + ADOPT_S)
        plan = adopt_plan(names, said, store.id)
        if plan.done and not plan.refused:
            return report(args, plan, plan.done)
        if args.json and args.dry_run:
            show_plan_json(plan)
        elif not args.json:
            show_plan(plan)
        if args.dry_run:
            return 0
        if not plan.targets:
            raise OpsConsoleError("\n".join(plan.refused))
        await confirm_meanwhile(args, plan)
        for name in plan.targets:
            answer = await pool.request(name, "adopt", ADOPT_S, **mine)
            if not answer.get("ok"):
                raise OpsConsoleError(f"{name}: {clean(str(answer.get('message')))}")
        report(args, plan, "adopted")
        return 1 if plan.refused else 0
    finally:
        await pool.aclose()


async def _until_all(names: Sequence[str], said: dict[str, Hello | str], longest_s: float) -> None:
    until = time.monotonic() + longest_s
    while len(said) < len(names) and time.monotonic() < until:
        await asyncio.sleep(0.05)


def adopt_plan(names: Sequence[str], said: dict[str, Hello | str], store: str) -> Plan:
    """Of those that answer, the ones that belong to another store; with what runs there for it."""
    rows, targets, refused = [], [], []
    for name in names:
        hello = said.get(name, "no answer")
        if isinstance(hello, str):
            refused.append(f"{name}: {clean(hello)}")
            continue
        owner = (hello.get("fence") or {}).get("store")
        if owner == store:
            continue
        live = [r for r in hello.get("runs", []) if r.get("store") != store and r.get("phase") not in FINAL]
        runs = f"{count(len(live), 'run')} of its own" + "".join(f" {clean(str(r.get('token')))}" for r in live[:5])
        targets.append(name)
        now = f"store {clean(str(owner), 40)}, {runs}"
        rows.append(Row(name, (Cell(name), Cell(now), Cell("takes orders from this store alone", "warn"))))
    effect = ("what runs there goes on; its GPUs are not used before it ends",) if rows else ()
    table = TableView(f"Adopt: {count(len(targets), 'host')}", PLAIN_COLUMNS, tuple(rows), "no host of another store")
    return Plan(
        "adopt",
        tuple(targets),
        table,
        (*effect, *refused),
        command_line("adopt", targets),
        (),
        lambda by: [],
        refused=tuple(refused),
        done="" if targets else "no host belongs to another store",
    )
