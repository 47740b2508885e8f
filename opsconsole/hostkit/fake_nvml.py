"""GPUs from a JSON file instead of the driver, for the demo and tests: OPSCONSOLE_FAKE_NVML=/path/to/gpus.json.

    {"driver": "580.95.05 (simulated)",
     "gpus": [{"pci": "00000000:10:00.0", "uuid": "GPU-…", "name": "NVIDIA H100 80GB HBM3",
               "memory_total_bytes": 85520809984,
               "readings": {KEY: value | {"absent": true} | {"denied": why} | {"failed": why}},
               "foreign": [{"pid": 1, "user": "root", "name": "Xorg", "gpu_memory_bytes": 1048576}],
               "lost": false, "hang_s": 0}],
     "kernel": [{"monotonic_s": 12.5, "text": "NVRM: Xid (PCI:0000:10:00): 79, …"}]}

The file is read again at each probe; only `pci` and `uuid` are required. `readings` overrides anything, `processes`,
`uuid` and `name` included. `lost` makes every reading fail; `hang_s` sleeps, as a stuck driver call does. A GPU that a
living run of this host holds shows that run's main process (40 GiB, about 90 % busy) until the whole tree is gone.
`foreign` adds processes of others; they are shown as they are written. `kernel` replaces the host's kernel log.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict

from . import proc, tree
from .files import Record
from .pci import normal_address
from .readings import Reading, absent, failed, unreadable_gpu, value
from .runs import LIVE, all_runs
from .state import StateDir

GIB = 1 << 30
RUN_MEMORY_BYTES = 40 * GIB
RUN_BUSY_PERCENT = 90
READING_KINDS = ("v", "absent", "denied", "failed")

Holder = Dict[str, Any]


def path() -> str | None:
    return os.environ.get("OPSCONSOLE_FAKE_NVML") or None


def load() -> Record:
    """Raises OSError, ValueError."""
    with open(path() or "", encoding="utf-8") as file:
        table = json.load(file)
    if not isinstance(table, dict):
        raise ValueError("the file of fake GPUs holds no object")
    return table


def read_all(state: StateDir) -> tuple[Reading, list[dict[str, Any]]]:
    """(driver, GPUs) in the shape in which NVML is read. Raises OSError, ValueError."""
    table = load()
    holders = run_holders(state)
    driver = table.get("driver", "fake")
    return as_reading(driver), [read_one(gpu, holders.get(str(gpu["uuid"]), [])) for gpu in table["gpus"]]


def as_reading(found: Any) -> Reading:
    """Overrides may be a bare value or one of the other three states."""
    if isinstance(found, dict) and len(found) == 1 and next(iter(found)) in READING_KINDS:
        return found
    return value(found)


def read_one(gpu: Record, holders: list[Holder]) -> dict[str, Any]:
    if gpu.get("hang_s"):
        time.sleep(float(gpu["hang_s"]))
    pci = normal_address(str(gpu["pci"]))
    if gpu.get("lost"):
        return unreadable_gpu(pci, failed("GPU is lost (NVML 15)"))
    processes = holders + [dict(entry) for entry in gpu.get("foreign") or []]
    overrides = {key: as_reading(found) for key, found in (gpu.get("readings") or {}).items()}
    return {
        "pci": pci,
        "uuid": overrides.pop("uuid", value(gpu["uuid"])),
        "name": overrides.pop("name", value(gpu.get("name", "Fake GPU"))),
        "processes": overrides.pop("processes", value(processes)),
        "readings": {**healthy_readings(gpu, processes, bool(holders)), **overrides},
    }


def healthy_readings(gpu: Record, processes: list[Holder], busy: bool) -> dict[str, Reading]:
    """What a sound card of this generation says, idle or at work."""
    total = int(gpu.get("memory_total_bytes", 80 * GIB))
    used = sum(int(entry.get("gpu_memory_bytes") or 0) for entry in processes)
    found: dict[str, Any] = {
        "memory_total_bytes": total,
        "memory_used_bytes": min(total, used),
        "utilization_percent": RUN_BUSY_PERCENT if busy else 0,
        "memory_utilization_percent": 55 if busy else 0,
        "temperature_c": 64 if busy else 31,
        "temperature_margin_c": 23 if busy else 56,
        "power_w": 612.0 if busy else 71.0,
        "power_limit_w": 700.0,
        "sm_clock_mhz": 1980 if busy else 345,
        "sm_clock_max_mhz": 1980,
        "memory_clock_mhz": 2619,
        "clock_event_reasons": [] if busy else ["gpu_idle"],
        "performance_state": "P0",
        "recovery_action": 0,
        "mig_enabled": False,
        "mig_instances": [],
        "nvlinks_up": 18,
        "nvlinks_down": [],
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "row_remap_pending": False,
        "row_remap_failed": False,
        "remap_spare_banks": {"max": 640, "high": 0, "partial": 0, "low": 0, "none": 0},
        "serial": f"16{abs(hash_of(str(gpu['uuid']))) % 10**11:011d}",
        "vbios": "96.00.89.00.01",
        "persistence_mode": True,
        **dict.fromkeys(ZEROES, 0),
    }
    readings = {key: value(one) for key, one in found.items()}
    readings.update(dict.fromkeys(("retired_pages_single_bit", "retired_pages_double_bit"), absent()))
    return readings


ZEROES = (
    "ecc_volatile_uncorrected",
    "ecc_volatile_corrected",
    "ecc_aggregate_corrected",
    "ecc_aggregate_uncorrected",
    "ecc_aggregate_uncorrected_sram",
    "ecc_aggregate_uncorrected_dram",
    "rows_remapped_corrected",
    "rows_remapped_uncorrected",
    "nvlink_crc_flit_errors",
    "nvlink_crc_data_errors",
    "nvlink_replay_errors",
    "nvlink_recovery_errors",
    "pcie_replays",
)


def hash_of(text: str) -> int:
    """The same in every process, unlike `hash`."""
    return int.from_bytes(text.encode()[-8:], "big")


def run_holders(state: StateDir) -> dict[str, list[Holder]]:
    """UUID → the process that stands for each run whose tree is alive on this host."""
    processes = proc.scan()
    found: dict[str, list[Holder]] = {}
    for run in all_runs(state):
        if not run.gpus or run.phase() not in LIVE:
            continue
        alive = tree.members(run, processes, look_inside=True)
        if not alive:
            continue
        main = run.identity("main")
        pid = main.pid if main is not None and main.pid in alive else min(alive)
        for uuid in run.gpus:
            found.setdefault(uuid, []).append({"pid": pid, "gpu_memory_bytes": RUN_MEMORY_BYTES})
    return found
