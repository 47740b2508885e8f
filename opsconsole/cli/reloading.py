"""A changed inventory: noticed, read, compared with what the leader goes by. Nothing here applies it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from opsconsole.cli.kept import led_by
from opsconsole.cli.wiring import Place
from opsconsole.config.budgets import number
from opsconsole.config.diff import diff_inventories
from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import Inventory, read_inventory
from opsconsole.errors import OpsConsoleError, StoreError
from opsconsole.presenting.cluster_plans import plan_reload
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.text import count
from opsconsole.presenting.view import ClusterView, InventoryChange, PendingInventory
from opsconsole.runtime import Runtime
from opsconsole.site import INVENTORY, INVENTORY_DIGEST
from scheduler_core.budget import BudgetTree
from scheduler_core.state import ClusterState

NOBODY_KNOWS = "nobody can tell what the leader goes by"
LOOK_S = 1.0
FIRST_ERRORS = 3
Signature = tuple[int, ...]


def pending(name: str, state: ClusterState, old: Inventory, new: Inventory) -> PendingInventory | None:
    """What the new inventory changes for the cluster of that name. None where that is nothing. Raises ConfigError."""
    new.cluster(name)
    found = diff_inventories(old, new, {name: state})
    rows = tuple(InventoryChange(c.topic.value, c.subject, c.what, c.effect) for c in found if c.cluster in ("", name))
    return PendingInventory(new.digest, rows, tuple(_by_hand(state, new.cluster(name).budgets))) if rows else None


def _by_hand(state: ClusterState, tree: BudgetTree) -> Iterator[str]:
    """Weights that somebody set: they stay where the file says what it said then, and end where it does not."""
    for budget, hand in state.weights.items():
        declared = tree.by_id.get(budget)
        stays = declared is not None and declared.weight == hand.instead_of
        what = f"weight {number(hand.weight)} of {state.budgets.paths[budget]} by hand {'stays' if stays else 'ends'}"
        file = f"the file says {number(hand.instead_of)} as before" if stays else "the file has the last word"
        yield f"{what} ({hand.by}): {file}"


def run(args: argparse.Namespace) -> int:
    """`opsconsole reload`: shows what the file changes, and asks the leader to go by it."""
    from opsconsole.cli.acting import act  # the console watches the file without it

    place = Place.of(args)
    store = place.open_store(read_only=True)

    def make(view: ClusterView, _: Sequence[str]) -> Plan:
        old, new = led_by(store.get(INVENTORY)), read_inventory(place.inventory.path)
        if old is None:
            raise OpsConsoleError(NOBODY_KNOWS, advice="restart the leader: it reads the file")
        return plan_reload(replace(view, pending=pending(place.cluster.name, view.state, old, new)))

    return act(args, (), make, ended="applied")


@dataclass
class Watch:
    """Looks at the inventory's file until cancelled: what it would change stands in `pending`, what is wrong with it
    is an alarm.

    A file counts once it has stayed the same for a look, so that nobody reads a half of it.
    """

    place: Place
    runtime: Runtime
    pending: PendingInventory | None = None
    _judged: tuple[Signature | None, str | None] | None = None
    _last: Signature | None = field(default=None)

    async def run(self) -> None:
        while True:
            with contextlib.suppress(StoreError):  # said by those who follow or lead; looked at again
                await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        now = await asyncio.to_thread(signature, self.place.inventory.path)
        settled, self._last = now == self._last, now
        led = self.runtime.store.get(INVENTORY_DIGEST)
        if settled and led is not None and self._judged != (now, led):
            self._judged = (now, led)
            await self._judge()

    async def _judge(self) -> None:
        problem = ""
        self.pending = None
        try:
            old = await asyncio.to_thread(led_by, self.runtime.store.get(INVENTORY))
            new = await asyncio.to_thread(read_inventory, self.place.inventory.path)
            if old is not None:
                self.pending = pending(self.place.cluster.name, self.runtime.state, old, new)
        except ConfigError as error:
            problem = _first(error)
        self.runtime.alarm("inventory", problem or _news(self.pending))


def signature(path: str) -> Signature | None:
    """Differs when the file was written or replaced; None where there is none."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _first(error: ConfigError) -> str:
    more = len(error.problems) - FIRST_ERRORS
    said = " | ".join(map(str, error.problems[:FIRST_ERRORS])) + (f" | and {more} more" if more > 0 else "")
    return f"the changed inventory is wrong, the one before stays: {said}"


def _news(found: PendingInventory | None) -> str:
    if found is None:
        return ""
    return f"the file has {count(len(found.changes), 'change')} that nobody has applied; :reload shows them"
