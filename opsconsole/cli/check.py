"""`opsconsole check`: every error of an inventory, and with --connect how far each host comes."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from opsconsole.cli.tables import output, print_below
from opsconsole.cli.wiring import Place
from opsconsole.config.errors import ConfigError, Problem, problems_json
from opsconsole.config.inventory import Inventory, find_inventory, read_inventory
from opsconsole.errors import StoreError
from opsconsole.presenting.text import count, few

TOLD = ("python", "driver", "gpus", "clock", "disk")  # of what is well
STYLES = {"ok": "green", "fail": "bold red"}


def run(args: argparse.Namespace) -> int:
    """Exit status 2 for errors of the file, 1 where a store is damaged or a host is not ready."""
    try:
        inventory = read_inventory(find_inventory(args.file or args.inventory))
    except ConfigError as error:
        if not args.json:
            raise
        print(json.dumps({"ok": False, "problems": error.as_json(), "warnings": []}, indent=2))
        return error.exit_code
    for cluster in inventory.clusters:
        _check_store(Place(inventory, cluster))
    warnings = [*inventory.warnings, *_ssh_warnings(inventory)]
    if not args.json:
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
    if args.connect:
        return asyncio.run(_connect(args, inventory, warnings))
    summary = _summary(inventory)
    found = {"ok": True, "problems": [], "warnings": problems_json(warnings), **summary}
    print(json.dumps(found, indent=2) if args.json else _sentence(inventory, summary))
    return 0


def _ssh_warnings(inventory: Inventory) -> list[Problem]:
    """What OpenSSH would do by the same configuration and opsconsole does not."""
    from opsconsole.transport.resolve import CONFIG_FILES
    from opsconsole.transport.unsupported import unsupported

    files = CONFIG_FILES if inventory.ssh.config is None else inventory.ssh.config
    return [Problem(u.file, u.line, u.keyword, u.what, u.fix, warning=True) for u in unsupported(files)]


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
    parts = [
        f"{c['name']}: {count(c['hosts'], 'host')}, {count(c['gpus'], 'GPU')}, {count(c['budgets'], 'budget')}"
        for c in summary["clusters"]
    ]
    return f"{inventory.path} is good. {'; '.join(parts)}. Try its hosts with --connect."


async def _connect(args: argparse.Namespace, inventory: Inventory, warnings: Sequence[Problem]) -> int:
    from opsconsole.transport.check import check_hosts

    hosts: list[Any] = []
    for cluster in inventory.clusters:
        place = Place(inventory, cluster)
        expected = {h.name: h.gpus for h in cluster.hosts}
        options = place.pool_options(lambda host: {"interval_s": 2})
        done: list[str] = []
        on_done = _progress(len(cluster.hosts), done)
        hosts += await check_hosts(
            place.addresses(), options, expected_gpus=expected, store=_store_id(place), on_done=on_done
        )
    ok = all(host.ok for host in hosts)
    if args.json:
        found = {"ok": ok, "problems": [], "warnings": problems_json(warnings)}
        print(json.dumps({**found, "hosts": [_host_json(h) for h in hosts]}, indent=2))
    else:
        _print_hosts(hosts)
    return 0 if ok else 1


def _check_store(place: Place) -> None:
    """Raises StoreError where there is one and it is damaged, or lies where it must not."""
    if place.inventory.store_path(place.cluster).exists():
        store = place.open_store(read_only=True)
        store.check()
        store.close()


def _store_id(place: Place) -> str | None:
    """None where nobody has led from this machine: then any owner of a host will do."""
    try:
        store = place.open_store(read_only=True)
    except StoreError:
        return None
    store.close()
    owner: str = store.id
    return owner


def _progress(total: int, done: list[str]) -> Any:
    def on_done(host: str) -> None:
        done.append(host)
        if sys.stderr.isatty():
            print(f"\r{len(done)} of {count(total, 'host')}", end="\n" if len(done) == total else "", file=sys.stderr)

    return on_done


def _host_json(host: Any) -> dict[str, Any]:
    steps = {s.name.value: {"verdict": s.verdict.value, "found": s.found, "do": s.advice} for s in host.steps}
    return {"host": host.host, "ok": host.ok, "steps": steps}


def _print_hosts(hosts: list[Any]) -> None:
    """A line for each host, and below them all what to do about which: one cause often stops many."""
    console, width = output(), max(len(host.host) for host in hosts)
    to_do: dict[str, list[str]] = {}
    for host in hosts:
        wrong = [step for step in host.steps if step.verdict.value in ("fail", "warn")]
        mark = ("✓ ready", STYLES["ok"]) if host.ok else ("✖ not ready", STYLES["fail"])
        well = [f"{s.name} {s.found}" for s in host.steps if s.name.value in TOLD and s.verdict.value == "ok"]
        told = [f"{step.name}: {step.found}" for step in wrong]
        _print_host(console, Text.assemble(f"{host.host:<{width}}  ", mark), told or well)
        for step in wrong:
            to_do.setdefault(step.advice, []).append(host.host)
    to_do.pop("", None)
    for advice, names in to_do.items():
        console.print(Text(f"{few(names, 5)}:", style="bold"))
        print_below(console, Text(advice))


def _print_host(console: Console, host: Text, told: Sequence[str]) -> None:
    """On one line, where there is room for it."""
    line = Text.assemble(host, f": {', '.join(told)}" if told else "")
    if line.cell_len <= console.width:
        console.print(line)
        return
    console.print(host)
    for words in told:
        print_below(console, Text(words))
