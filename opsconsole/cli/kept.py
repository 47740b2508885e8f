"""What the store keeps of the inventory that the leader goes by: its text, and the way to hosts that have left it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec

from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import Cluster, Inventory, InventoryHost, parse_inventory
from opsconsole.config.yamlio import Source

if TYPE_CHECKING:
    from opsconsole.transport.address import HostAddress


def document(file: str, text: str, left: Mapping[str, HostAddress]) -> str:
    """`left`: hosts that are in it no more, for as long as they have runs."""
    return json.dumps([file, text, {name: asdict(address) for name, address in left.items()}])


def led_by(kept: str | None) -> Inventory | None:
    """The inventory that the leader goes by, or the last one went by. None: nobody can tell."""
    if kept is None:
        return None
    path, text, *_ = json.loads(kept)
    try:
        return parse_inventory(Source(path, text), path)
    except ConfigError:
        return None  # written by a version that takes what this one refuses


def departed(kept: str | None, inventory: Inventory, cluster: Cluster) -> dict[str, HostAddress]:
    """Hosts that this cluster of the inventory has no more, with the last address that each had."""
    from opsconsole.transport.address import HostAddress

    if kept is None:
        return {}
    _, text, *more = json.loads(kept)
    known = msgspec.convert(more[0], dict[str, HostAddress]) if more else {}
    old = led_by(kept) if text != inventory.text else None  # none has left the same text
    with contextlib.suppress(ConfigError):  # it had no such cluster
        if old is not None:
            known |= {host.name: address_of(host, old) for host in old.cluster(cluster.name).hosts}
    here = {host.name for host in cluster.hosts}
    return {name: address for name, address in known.items() if name not in here}


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
