"""What a process knows of its cluster beside the store: the inventory, and how its hosts are reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opsconsole.health.acting import Automatic
from opsconsole.health.rules import Override
from opsconsole.ports import Destination
from scheduler_core.observations import InventoryLoaded

INVENTORY, INVENTORY_DIGEST = "inventory", "inventory_digest"  # in the store: what the leader goes by


@dataclass(frozen=True)
class Site:
    """`document` is the inventory's text with its path, as `digest` names it; the store keeps it for those who come."""

    name: str
    inventory: InventoryLoaded
    reach: Mapping[str, Destination] = field(default_factory=dict)  # by host
    interval_s: float = 2.0
    system_processes: tuple[str, ...] = ()
    fence: Mapping[str, Sequence[str]] = field(default_factory=dict)  # command by host, where it has one
    fence_s: float = 120.0
    digest: str = ""
    document: str = ""
    left: Mapping[str, Destination] = field(default_factory=dict)  # hosts that it has no more, as they were reached
    health: Mapping[str, Override] = field(default_factory=dict)  # its own word on rules of health
    auto: Automatic = field(default_factory=Automatic)

    def gpus(self, host: str) -> int | None:
        """GPUs that the inventory expects there; None where it names no such host."""
        return self._gpus.get(host)

    @cached_property
    def _gpus(self) -> dict[str, int]:
        return {host.name: host.gpus for host in self.inventory.hosts}

    def address(self, host: str) -> str:
        """What other hosts reach it by."""
        address = self.reach[host].address
        return "127.0.0.1" if address == "local" else address

    @property
    def hosts(self) -> list[str]:
        return [host.name for host in self.inventory.hosts]
