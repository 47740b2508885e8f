"""`opsconsole check`: every error of an inventory, and with --connect a table of its hosts."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from rich.table import Table
from rich.text import Text

from opsconsole.cli.tables import output
from opsconsole.cli.wiring import Place
from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import Inventory, find_inventory, read_inventory

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "unknown": "magenta"}


def run(args: argparse.Namespace) -> int:
    """Exit status 2 for errors of the file, 1 where a host is not ready."""
    try:
        inventory = read_inventory(find_inventory(args.file or args.inventory))
    except ConfigError as error:
        if not args.json:
            raise
        print(json.dumps({"ok": False, "problems": error.as_json()}, indent=2))
        return error.exit_code
    if args.connect:
        return asyncio.run(_connect(args, inventory))
    summary = _summary(inventory)
    print(json.dumps({"ok": True, "problems": [], **summary}, indent=2) if args.json else _sentence(inventory, summary))
    return 0


def _summary(inventory: Inventory) -> dict[str, Any]:
    return {
        "clusters": [
            {
                "name": c.name,
                "hosts": len(c.hosts),
                "gpus": sum(h.gpus for h in c.hosts),
                "budgets": len(c.budgets.budgets),
            }
            for c in inventory.clusters
        ]
    }


def _sentence(inventory: Inventory, summary: dict[str, Any]) -> str:
    parts = [f"{c['name']}: {c['hosts']} hosts, {c['gpus']} GPUs, {c['budgets']} budgets" for c in summary["clusters"]]
    return f"{inventory.path} is good. {'; '.join(parts)}. Try its hosts with --connect."


async def _connect(args: argparse.Namespace, inventory: Inventory) -> int:
    from opsconsole.transport.check import check_hosts

    hosts: list[Any] = []
    for cluster in inventory.clusters:
        place = Place(inventory, cluster)
        expected = {h.name: h.gpus for h in cluster.hosts}
        options = place.pool_options(lambda host: {"interval_s": 2})
        done: list[str] = []
        on_done = _progress(len(cluster.hosts), done)
        hosts += await check_hosts(place.addresses(), options, expected_gpus=expected, on_done=on_done)
    ok = all(host.ok for host in hosts)
    if args.json:
        print(json.dumps({"ok": ok, "problems": [], "hosts": [_host_json(h) for h in hosts]}, indent=2))
    else:
        _print_hosts(hosts)
    return 0 if ok else 1


def _progress(total: int, done: list[str]) -> Any:
    def on_done(host: str) -> None:
        done.append(host)
        if sys.stderr.isatty():
            print(f"\r{len(done)}/{total} hosts", end="\n" if len(done) == total else "", file=sys.stderr)

    return on_done


def _host_json(host: Any) -> dict[str, Any]:
    steps = {s.name.value: {"verdict": s.verdict.value, "found": s.found, "do": s.advice} for s in host.steps}
    return {"host": host.host, "ok": host.ok, "steps": steps}


def _print_hosts(hosts: list[Any]) -> None:
    names = list(dict.fromkeys(step.name.value for host in hosts for step in host.steps))
    table = Table("HOST", *(name.upper().replace("_", " ") for name in names), box=None, pad_edge=False)
    for host in hosts:
        steps = {step.name.value: step for step in host.steps}
        cells = []
        for name in names:
            step = steps.get(name)
            word = "" if step is None else step.verdict.value
            cells.append(Text("–" if step is None else f"{step.found or word}", style=STYLES.get(word, "dim")))
        table.add_row(Text(host.host), *cells)
    console = output()
    console.print(table)
    for host in hosts:
        for step in host.steps:
            if step.advice and step.verdict.value != "ok":
                console.print(Text(f"{host.host}: {step.name.value}: {step.found}: {step.advice}"))
