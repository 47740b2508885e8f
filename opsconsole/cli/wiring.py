"""The composition root: inventory to store, pool and runtime."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opsconsole.config.inventory import Cluster, Inventory, InventoryHost, find_inventory, read_inventory
from opsconsole.presenting.view import ClusterView, Happening, HostFacts
from opsconsole.runtime import Runtime
from opsconsole.site import Site
from opsconsole.store.store import Store

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

    def site(self) -> Site:
        addresses = {h.name: h.address for h in self.cluster.hosts}
        return Site(
            self.cluster.name,
            self.cluster.loaded(),
            lambda host: "127.0.0.1" if addresses[host] == "local" else addresses[host],
            self.inventory.ssh.probe_interval_ms / 1000,
            self.inventory.system_processes,
        )

    def open_store(self, read_only: bool = False) -> Store:
        return Store(self.inventory.store_path(self.cluster), read_only)

    def follower(self) -> Runtime:
        """A runtime that can only follow. Raises StoreError where nobody has ever led."""
        return Runtime(self.site(), self.open_store(read_only=True))

    def leader(self) -> Runtime:
        return Runtime(self.site(), self.open_store(), self.make_pool)

    def make_pool(self, hello: Callable[[str], dict[str, Any]], hear: Callable[[str, str, Any], None]) -> HostPool:
        """The pool of a leader; its events come to `hear` as (kind, host, payload)."""
        from opsconsole.transport.link import Connected, Disconnected
        from opsconsole.transport.pool import HostPool

        def on_event(event: Any) -> None:
            if isinstance(event, Connected):
                hear("connected", event.host, event.hello)
            elif isinstance(event, Disconnected):
                hear(
                    "disconnected", event.host, (event.kind.value, f"{event.kind.value.replace('_', ' ')}: {event.why}")
                )
            else:
                hear("line", event.host, event.fields)

        return HostPool(self.addresses(), self.pool_options(hello), on_event)

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


def address_of(host: InventoryHost, inventory: Inventory) -> HostAddress:
    """How transport reaches a host of the inventory."""
    from opsconsole.transport.address import HostAddress

    return HostAddress(
        host.name,
        host.address,
        host.port,
        host.user,
        host.identity,
        host.jump,
        inventory.ssh.connect_timeout_ms / 1000,
        host.python,
        host.state_dir,
    )


def view_of(runtime: Runtime) -> ClusterView:
    """What screens and tables are drawn from, at this moment."""
    lease = runtime.lease
    leader = f"{lease.kind} at {lease.holder}" if lease.live else "nobody"
    return ClusterView(
        runtime.site.name,
        runtime.state,
        time.time_ns() // 1_000_000,
        {host: _facts(runtime, host) for host in runtime.site.hosts},
        "this console" if runtime.leader is not None else leader,
        runtime.leader is not None,
        0.0 if runtime.leader is not None else time.monotonic() - runtime.followed_at,
        runtime.site.interval_s,
        dict(runtime.alarms),
        [Happening(e.seq, e.wall_ms, e.kind, e.value) for e in runtime.events],
        runtime.version,
    )


def _facts(runtime: Runtime, host: str) -> HostFacts:
    reading = runtime.readings[host]
    age = None if reading.probe_at is None else time.monotonic() - reading.probe_at
    if runtime.pool is None:
        return HostFacts("", "", age, None, reading.probe, tuple(reading.kernel))
    status = runtime.pool.status(host)
    return HostFacts(status.state.value, status.why, age, status.rtt_s, reading.probe, tuple(reading.kernel))
