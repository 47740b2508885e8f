"""The fallback where NVML cannot be loaded: nvidia-smi's CSV. Fields are negotiated, answers cached for some seconds.

One GPU that cannot be reached makes nvidia-smi give up on all, so then each is asked for alone, by its address.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any

from .pci import normal_address, pci_gpus
from .readings import Reading, absent, all_of, denied, failed, unreadable_gpu, value
from .smi_text import Row, Table, Trouble, parse_csv

TIMEOUT_S = 20.0
CACHE_S = 10.0  # starting nvidia-smi costs up to a second of CPU
MIB = 1 << 20
# our key: (field, factor). `name` is asked for last, because it may hold a comma.
FIELDS: dict[str, tuple[str, float]] = {
    "memory_total_bytes": ("memory.total", MIB),
    "memory_used_bytes": ("memory.used", MIB),
    "utilization_percent": ("utilization.gpu", 1),
    "memory_utilization_percent": ("utilization.memory", 1),
    "temperature_c": ("temperature.gpu", 1),
    "temperature_margin_c": ("temperature.gpu.tlimit", 1),
    "power_w": ("power.draw", 1),
    "power_limit_w": ("power.limit", 1),
    "sm_clock_mhz": ("clocks.sm", 1),
    "sm_clock_max_mhz": ("clocks.max.sm", 1),
    "memory_clock_mhz": ("clocks.mem", 1),
    "performance_state": ("pstate", 1),
    "ecc_volatile_uncorrected": ("ecc.errors.uncorrected.volatile.total", 1),
    "ecc_volatile_corrected": ("ecc.errors.corrected.volatile.total", 1),
    "ecc_aggregate_uncorrected": ("ecc.errors.uncorrected.aggregate.total", 1),
    "ecc_aggregate_corrected": ("ecc.errors.corrected.aggregate.total", 1),
    "retired_pages_single_bit": ("retired_pages.single_bit_ecc.count", 1),
    "retired_pages_double_bit": ("retired_pages.double_bit.count", 1),
    "pcie_generation": ("pcie.link.gen.current", 1),
    "pcie_generation_max": ("pcie.link.gen.max", 1),
    "pcie_width": ("pcie.link.width.current", 1),
    "pcie_width_max": ("pcie.link.width.max", 1),
    "serial": ("serial", 1),
    "vbios": ("vbios_version", 1),
}
IDENTITY = ["uuid", "pci.bus_id", "driver_version"]
APPS = ["gpu_uuid", "pid", "used_memory", "process_name"]

_rejected: set[str] = set()  # by this driver; a worker lives no longer than its driver
_cache: dict[tuple[str, ...], tuple[float, int, str]] = {}


def run(*arguments: str) -> tuple[int, str]:
    """(exit code, stdout) in the C locale, bytes in no UTF-8 replaced. Raises OSError, subprocess.SubprocessError."""
    cached = _cache.get(arguments)
    if cached is not None and time.monotonic() - cached[0] < CACHE_S:
        return cached[1], cached[2]
    done = subprocess.run(
        ["nvidia-smi", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "LC_ALL": "C"},
        timeout=TIMEOUT_S,
    )
    output = done.stdout.decode("utf-8", "replace")
    _cache[arguments] = (time.monotonic(), done.returncode, output)
    return done.returncode, output


def query(kind: str, fields: list[str], *more: str) -> Table:
    """One unknown field rejects a whole query: leave it out, ask again, and remember that for this driver."""
    while True:
        asked = [field for field in fields if field not in _rejected]
        rc, output = run(f"--query-{kind}={','.join(asked)}", "--format=csv,noheader,nounits", *more)
        table = parse_csv(asked, output, rc)
        if table.rejected_field is None or table.rejected_field not in asked:
            return table
        _rejected.add(table.rejected_field)


def read_all(errors: list[str]) -> tuple[Reading, list[dict[str, Any]]] | None:
    """(driver, GPUs); None where nvidia-smi is not installed. What it complains about goes into `errors`."""
    import shutil

    if shutil.which("nvidia-smi") is None:
        return None
    try:
        tables = gpu_tables()
        owners = processes()
    except (OSError, subprocess.SubprocessError) as error:
        errors.append(f"nvidia-smi: {error}")
        return failed(f"nvidia-smi: {error}"), []
    rows = [row for table in tables for row in table.rows]
    troubles = [trouble for table in tables for trouble in table.troubles]
    errors += [f"nvidia-smi: {trouble.text}" for trouble in troubles]
    gpus = [gpu_of(row, owners) for row in rows]
    shown = {gpu["pci"] for gpu in gpus}
    gpus += [unreadable_gpu(t.pci, failed(t.text)) for t in troubles if t.pci and t.pci not in shown]
    return driver_of(rows, troubles), gpus


def gpu_tables() -> list[Table]:
    fields = [*IDENTITY, *(field for field, _ in FIELDS.values()), "name"]
    whole = query("gpu", fields)
    if whole.rows or not any(trouble.pci for trouble in whole.troubles):
        return [whole]
    return [query("gpu", fields, "-i", pci) for pci in pci_gpus() or []] or [whole]


def driver_of(rows: list[Row], troubles: list[Trouble]) -> Reading:
    if rows:
        return rows[0].get("driver_version", absent())
    return failed(troubles[0].text if troubles else "nvidia-smi shows no GPU")


def processes() -> dict[str, Reading]:
    """UUID → processes; under "" what to say where the list as a whole could not be had."""
    table = query("compute-apps", APPS)
    found: dict[str, Reading] = {"": value([])}
    for trouble in table.troubles:
        found[""] = denied(trouble.text) if "ermission" in trouble.text else failed(trouble.text)
    for row in table.rows:
        uuid, pid = row["gpu_uuid"].get("v"), row["pid"].get("v")
        if uuid is None or pid is None:
            found[""] = next((r for r in (row["gpu_uuid"], row["pid"]) if "denied" in r), failed("unreadable process"))
            continue
        used = row["used_memory"].get("v")
        entry = {"pid": pid, "gpu_memory_bytes": None if used is None else int(used * MIB)}
        entry["name"] = row["process_name"].get("v")
        found.setdefault(str(uuid), value([]))["v"].append(entry)
    return found


def gpu_of(row: Row, owners: dict[str, Reading]) -> dict[str, Any]:
    readings = {key: scaled(row.get(field), factor) for key, (field, factor) in FIELDS.items()}
    uuid = row.get("uuid", absent())
    return {
        "pci": normal_address(str(row.get("pci.bus_id", {}).get("v", ""))),
        "uuid": uuid,
        "name": row.get("name", absent()),
        "readings": {**readings, **all_of(("recovery_action",), absent())},
        "processes": owners.get(str(uuid.get("v")), owners[""]),
    }


def scaled(reading: Reading | None, factor: float) -> Reading:
    """A field that this driver does not know is absent."""
    if reading is None:
        return absent()
    found = reading.get("v")
    if factor == 1 or not isinstance(found, (int, float)):
        return reading
    return value(int(found * factor))
