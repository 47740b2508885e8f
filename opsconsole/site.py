"""What a process knows of its cluster beside the store: the inventory, and how its hosts are reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler_core.observations import InventoryLoaded


@dataclass(frozen=True, slots=True)
class Site:
    """`address` is what other hosts reach a host by."""

    name: str
    inventory: InventoryLoaded
    address: Callable[[str], str]
    interval_s: float = 2.0
    system_processes: tuple[str, ...] = ()

    def gpus(self, host: str) -> int:
        """GPUs that the inventory expects there; 0 where it names no such host."""
        return next((h.gpus for h in self.inventory.hosts if h.name == host), 0)

    @property
    def hosts(self) -> list[str]:
        return [host.name for host in self.inventory.hosts]
