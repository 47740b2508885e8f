"""Fatal errors that drivers write into kernel logs: what they mean, and what to do about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsconsole.presenting.text import span
from opsconsole.presenting.view import HostFacts
from scheduler_core.state import HostRecord

RESET = "reset the GPU"
REBOOT = "reboot, or cycle the power; if it comes again it is the hardware"
FATAL: dict[int, tuple[str, str]] = {
    46: ("engine hung", RESET),
    48: ("uncorrectable memory error", f"{RESET}; if it repeats, run the diagnostic"),
    54: ("power cable missing", "somebody has to look at the cable"),
    62: ("controller halted", RESET),
    64: ("a memory repair could not be recorded", f"{RESET}; if it comes again, replace the GPU"),
    79: ("GPU fell off the bus", REBOOT),
    95: ("uncontained memory error", RESET),
    110: ("security fault", RESET),
    119: ("GSP timed out", f"{RESET}; if that fails, reboot"),
    120: ("GSP failed", f"{RESET}; if that fails, reboot"),
    140: ("memory error that nothing corrected", RESET),
    143: ("GPU could not be initialised", f"{RESET}; if that fails it is the hardware"),
    158: ("fatal timeout", RESET),
}


def ago_s(line: Mapping[str, Any], facts: HostFacts) -> float | None:
    """How long ago a line of the kernel's log was written; None where it or the readings do not say."""
    at, uptime_s = line.get("monotonic_s"), (facts.probe or {}).get("uptime_s")
    if not isinstance(at, int | float) or not isinstance(uptime_s, int | float):
        return None
    return uptime_s - at + (facts.age_s or 0.0)


def fatal_xids(record: HostRecord, facts: HostFacts, now: int) -> list[tuple[str, str]]:
    """What happened, and what to do about it; each code of each GPU once, the newest time. `now` in cluster ms.

    What lies before a person's return of the host to service has been seen to.
    """
    if not facts.kernel:
        return []
    slots = {gpu.get("pci"): gpu.get("slot") for gpu in (facts.probe or {}).get("gpus", []) if gpu.get("pci")}
    found: dict[tuple[int, Any], tuple[str, str]] = {}
    for line in facts.kernel:
        xid = line.get("xid")
        if not isinstance(xid, dict) or xid.get("code") not in FATAL or xid.get("sxid"):
            continue
        slot, ago = slots.get(xid.get("pci")), ago_s(line, facts)
        ago_ms = None if ago is None else int(ago * 1000)
        if record.by is not None and ago_ms is not None and now - ago_ms < record.since:
            continue
        meaning, todo = FATAL[xid["code"]]
        where = f"GPU {slot}: " if slot is not None else ""
        when = "" if ago_ms is None else f", {span(ago_ms)} ago"
        found[xid["code"], xid.get("pci")] = (f"{where}XID {xid['code']}, {meaning}{when}", todo)
    return list(found.values())
