"""GPUs as the PCI bus lists them, and the slots they keep: the driver alone does not tell which one it has lost."""

from __future__ import annotations

import os
import re
from typing import Any, FrozenSet

from .files import Damaged, Record, read_json, write_json
from .readings import failed, unreadable_gpu, value
from .state import StateDir

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA, 3D controller; audio and switches of the same vendor are no GPUs
ADDRESS = re.compile(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.([0-7]))?$")

Listing = FrozenSet[str]
_cache: dict[str, tuple[Listing, list[str]]] = {}


def normal_address(text: str) -> str:
    """`0000:9b:00.0`, from any of `00000000:9B:00.0`, `0000:9b:00`, `9b:00.0`. Other text comes back as it is."""
    found = ADDRESS.search(text.strip())
    if not found:
        return text.strip()
    domain, bus, device, function = found.groups()
    return f"{int(domain or '0', 16):04x}:{bus.lower()}:{device.lower()}.{function or '0'}"


def pci_gpus(root: str = "/sys/bus/pci/devices") -> list[str] | None:
    """Addresses of NVIDIA GPUs in order; None where the bus cannot be listed. Read again only when devices changed."""
    try:
        names = frozenset(os.listdir(root))
    except OSError:
        return None
    known = _cache.get(root)
    if known is not None and known[0] == names:
        return known[1]
    found = sorted(normal_address(name) for name in names if is_gpu(os.path.join(root, name)))
    _cache[root] = (names, found)
    return found


def is_gpu(device: str) -> bool:
    return read_word(device, "vendor") == NVIDIA and read_word(device, "class")[:6] in DISPLAY_CLASSES


def read_word(device: str, name: str) -> str:
    try:
        with open(os.path.join(device, name), encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def number_slots(known: Record, gpus: list[dict[str, Any]]) -> Record:
    """PCI address → {slot, uuid, name}. Known ones keep their slot; new ones follow in order of their address."""
    slots: Record = {pci: dict(entry) for pci, entry in known.items()}
    following = 1 + max([entry["slot"] for entry in slots.values()], default=-1)
    for gpu in sorted(gpus, key=lambda g: str(g["pci"])):
        if gpu["pci"] not in slots:
            slots[gpu["pci"]] = {"slot": following, "uuid": None, "name": None}
            following += 1
        for key in ("uuid", "name"):
            slots[gpu["pci"]][key] = gpu[key].get("v") or slots[gpu["pci"]][key]
    return slots


def with_slots(state: StateDir, gpus: list[dict[str, Any]], listed: list[str] | None) -> list[dict[str, Any]]:
    """Every GPU that is or was here, by slot. Lost ones fail in each reading and keep their last-known UUID."""
    try:
        known = (read_json(state.slots) or {}).get("pci") or {}
    except (Damaged, OSError):
        known = {}
    found = gpus + missing_gpus(known, {gpu["pci"] for gpu in gpus}, listed)
    slots = number_slots(known, found)
    if slots != known:
        remember(state, slots)
    for gpu in found:
        entry = slots[gpu["pci"]]
        gpu["slot"] = entry["slot"]
        for key in ("uuid", "name"):
            if "v" not in gpu[key] and entry[key]:
                gpu[key] = {**value(entry[key]), "last_known": True}
    return sorted(found, key=lambda gpu: int(gpu["slot"]))


def missing_gpus(known: Record, shown: set[str], listed: list[str] | None) -> list[dict[str, Any]]:
    """What the bus lists, or once listed, and the driver does not show."""
    gone = "the driver does not show this GPU any more"
    lost = []
    for pci in sorted((set(known) | set(listed or [])) - shown):
        if listed is not None and pci not in listed:
            gone = "gone from the PCI bus"
        elif pci not in known:
            gone = "on the PCI bus, but the driver does not show it"
        lost.append(unreadable_gpu(pci, failed(gone)))
    return lost


def remember(state: StateDir, slots: Record) -> None:
    """Best effort: on a full disk the numbering holds until the agent leaves."""
    try:
        write_json(state.slots, {"pci": slots})
    except OSError:
        return
