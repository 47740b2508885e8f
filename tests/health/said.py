"""Hosts that say what a test wants: sound ones, but for what is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opsconsole.health.rules import builtin_rules
from opsconsole.health.verdict import Said, Verdict, judge
from opsconsole.hostkit.fake_nvml import read_one

GPUS = 8
UPTIME_S = 10_000.0


def pci(slot: int) -> str:
    return f"0000:{slot + 1:02x}:00.0"


def gpu(slot: int, **readings: Any) -> dict[str, Any]:
    """A sound one of the demo's, idle. A reading is a value, or one of the other three states."""
    fake = {"pci": pci(slot), "uuid": f"GPU-{slot:04}", "name": "NVIDIA H100 80GB HBM3", "readings": readings}
    return {"slot": slot, **read_one(fake, [])}


def lost(slot: int, why: str = "GPU is lost (NVML 15)") -> dict[str, Any]:
    one = gpu(slot)
    gone = {"failed": why}
    return {
        **one,
        "uuid": {"v": one["uuid"]["v"], "last_known": True},
        "processes": gone,
        "readings": dict.fromkeys(one["readings"], gone),
    }


def probe(gpus: Sequence[Mapping[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    listed = [gpu(slot) for slot in range(GPUS)] if gpus is None else list(gpus)
    said = {"driver": {"v": "570.86"}, "gpus": listed, "uptime_s": UPTIME_S, "boot_id": "boot"}
    return {**said, "host": {"kernel_log": {"v": "kmsg"}}, **more}


def but(slot: int, changed: Mapping[str, Any]) -> dict[str, Any]:
    """A host of which one GPU is another."""
    return probe([changed if n == slot else gpu(n) for n in range(GPUS)])


def xid(code: int, slot: int = 3, ago_s: float = 5.0, text: str = "", **more: Any) -> dict[str, Any]:
    """A line of the kernel's log, as agents send it."""
    line = f"NVRM: Xid (PCI:{pci(slot)[:-2]}): {code}, pid=7, name=python{text and ', ' + text}"
    found = {"code": code, "pci": pci(slot), "pid": 7, "process": "python", "sxid": False, "caused_by": None}
    found |= {"injected": False, "nvlink": None, "recovery_action": None}
    return {"monotonic_s": UPTIME_S - ago_s, "text": line, "kind": "xid", "xid": found | more}


def verdict(said: Mapping[str, Any] | None = None, *kernel: Mapping[str, Any], **more: Any) -> Verdict:
    """Of one look."""
    return judge(Said(GPUS, probe() if said is None else said, 0.0, kernel, **more), builtin_rules())


def rules_of(found: Verdict) -> list[str]:
    return [one.rule.id for one in found.findings]
