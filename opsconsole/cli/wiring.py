"""The composition root: inventory to store, pool and runtime."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from opsconsole.cli.kept import address_of, departed, document, led_by
from opsconsole.config.diff import reloaded
from opsconsole.config.inventory import Cluster, Inventory, find_inventory, read_inventory
from opsconsole.errors import OpsConsoleError
from opsconsole.following import EVENTS_KEPT
from opsconsole.ports import JournalEvent
from opsconsole.presenting.view import ClusterView, Happening, HostFacts, PendingInventory
from opsconsole.runtime import Runtime
from opsconsole.site import INVENTORY, Site
from opsconsole.store.store import Store
from scheduler_core.state import ClusterState

if TYPE_CHECKING:
    from opsconsole.transport.address import HostAddress
    from opsconsole.transport.pool import HostPool, PoolOptions


@dataclass(frozen=True, slots=True)
class Place:
    """The cluster that a command works on."""

    inventory: Inventory
    cluster: Cluster

    @classmethod
    def of(cls, args: argparse.Namespace) -> Place:
        """From --inventory and --cluster. Raises ConfigError."""
        inventory = read_inventory(find_inventory(args.inventory))
        return cls(inventory, inventory.cluster(args.cluster))

    @property
    def file(self) -> str:
        """The inventory, for those who started elsewhere."""
        return os.path.abspath(self.inventory.path)

    def site(self, left: Mapping[str, HostAddress] | None = None) -> Site:
        """`left`: hosts that the inventory has no more, and how they were reached."""
        inventory, left = self.inventory, left or {}
        return Site(
            self.cluster.name,
            self.cluster.loaded(),
            {address.name: address for address in self.addresses()},
            inventory.ssh.probe_interval_ms / 1000,
            inventory.system_processes,
            {host.name: host.fence for host in self.cluster.hosts if host.fence},
            inventory.fence_timeout_ms / 1000,
            inventory.digest,
            document(self.file, inventory.text, left),
            left,
            inventory.health.overrides,
            self.cluster.auto,
        )

    async def reread(self, digest: str) -> Site:
        """For a leader: the file as it is now. Raises OpsConsoleError where it is not the one that was agreed to."""
        new = await asyncio.to_thread(read_inventory, self.inventory.path)
        if new.digest != digest:
            what = f"the leader's inventory, {self.file}, is not the one that the plan was made from"
            raise OpsConsoleError(what, advice="look at it again: opsconsole reload --dry-run")
        with contextlib.closing(self.open_store(read_only=True)) as store:
            left = departed(store.get(INVENTORY), new, new.cluster(self.cluster.name))
        return Place(reloaded(self.inventory, new), new.cluster(self.cluster.name)).site(left)

    def open_store(self, read_only: bool = False) -> Store:
        return Store(self.inventory.store_path(self.cluster), read_only)

    def follower(self) -> Runtime:
        """A runtime that can only follow. Raises StoreError where nobody has ever led."""
        return Runtime(self.site(), self.open_store(read_only=True))

    def leader(self) -> Runtime:
        store = self.open_store()
        left = departed(store.get(INVENTORY), self.inventory, self.cluster)
        return Runtime(self.site(left), store, self.make_pool, self.reread)

    def take_over(self, runtime: Runtime) -> None:
        """Goes by what was led by last, not by a file that was read before somebody else changed and applied it."""
        kept = runtime.store.get(INVENTORY)
        if (old := led_by(kept)) is not None:
            cluster = old.cluster(self.cluster.name)
            led = Place(old, cluster)
            runtime.site, runtime.make_pool, runtime.reread = (
                led.site(departed(kept, old, cluster)),
                led.make_pool,
                led.reread,
            )

    def make_pool(
        self,
        hosts: Iterable[HostAddress],
        hello: Callable[[str], dict[str, Any]],
        hear: Callable[[str, str, Any], None],
    ) -> HostPool:
        """The pool of a leader; its events come to `hear` as (kind, host, payload)."""
        from opsconsole.transport.link import Connected, Disconnected
        from opsconsole.transport.pool import HostPool

        def on_event(event: Any) -> None:
            if isinstance(event, Connected):
                hear("connected", event.host, event.hello)
            elif isinstance(event, Disconnected):
                hear("disconnected", event.host, (event.kind.value, event.text))
            else:
                hear("line", event.host, event.fields)

        return HostPool(hosts, self.pool_options(hello), on_event)

    def pool_options(self, hello: Callable[[str], dict[str, Any]]) -> PoolOptions:
        from opsconsole.hostkit.zipapp_build import build_zipapp
        from opsconsole.transport.bootstrap import Kit
        from opsconsole.transport.pool import PoolOptions

        ssh = self.inventory.ssh
        return PoolOptions(
            Kit(*build_zipapp()),
            hello,
            ssh_config=ssh.config,
            known_hosts=ssh.known_hosts,
            connecting_at_once=ssh.connecting,
        )

    def addresses(self) -> list[HostAddress]:
        return [address_of(host, self.inventory) for host in self.cluster.hosts]

    def address(self, name: str) -> HostAddress:
        """Of one host. Raises OpsConsoleError where the inventory does not have it (any more)."""
        host = next((host for host in self.cluster.hosts if host.name == name), None)
        if host is None:
            raise OpsConsoleError(f"the inventory has no host {name}")
        return address_of(host, self.inventory)


LOOKING = "this console, not yet: it looks at every host"


def view_of(runtime: Runtime, pending: PendingInventory | None = None) -> ClusterView:
    """What screens and tables are drawn from, at this moment."""
    lease, state = runtime.lease, _as_of_now(runtime)
    leading = runtime.leader is not None and runtime.leader.acted
    hosts = dict.fromkeys((*runtime.site.hosts, *state.hosts))
    leader = f"{lease.kind} at {lease.holder}" if lease.live else "nobody"
    return ClusterView(
        runtime.site.name,
        state,
        time.time_ns() // 1_000_000,
        {host: _facts(runtime, host) for host in hosts},
        "this console" if leading else LOOKING if runtime.leader is not None else leader,
        leading,
        0.0 if runtime.leader is not None else _lag_s(runtime),
        runtime.site.interval_s,
        dict(runtime.alarms),
        Told(tuple(runtime.events)),
        runtime.version,
        pending,
        rounds=runtime.rounds,
        kept=runtime.kept(),
    )


def _as_of_now(runtime: Runtime) -> ClusterState:
    """A follower's engine stands where the journal ends, and a quiet leader writes nothing: ages and countdowns go on
    all the same. The records are the engine's own."""
    if runtime.leader is not None:
        return runtime.state
    state = copy(runtime.state)
    state.now = max(state.now, runtime.clock.now())
    return state


def _lag_s(runtime: Runtime) -> float:
    """How old the newest word of the leader is: its last sign of life, when the store was read the last time."""
    said_ms = runtime.lease.age_ms if runtime.lease.live else None
    return time.monotonic() - runtime.followed_at + (said_ms or 0) / 1000


class Told(Sequence[Happening]):
    """Rows of the journal, each decoded once, when somebody looks at it."""

    def __init__(self, events: Sequence[JournalEvent]) -> None:
        self._events = events

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, at: int) -> Happening: ...
    @overload
    def __getitem__(self, at: slice) -> Told: ...
    def __getitem__(self, at: int | slice) -> Happening | Told:
        if isinstance(at, slice):
            return Told(self._events[at])
        return _happening(self._events[at])


@lru_cache(maxsize=2 * EVENTS_KEPT)
def _happening(event: JournalEvent) -> Happening:
    return Happening(event.seq, event.wall_ms, event.kind, event.value)


def _facts(runtime: Runtime, host: str) -> HostFacts:
    reading = runtime.readings[host]
    age = None if reading.probe_at is None else time.monotonic() - reading.probe_at
    if runtime.leader is None or not runtime.leader.links.knows(host):
        return HostFacts("", "", age, None, reading.probe, tuple(reading.kernel))
    status = runtime.leader.links.pool.status(host)
    return HostFacts(status.state.value, status.why, age, status.rtt_s, reading.probe, tuple(reading.kernel))
