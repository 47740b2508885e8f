"""nvidia-smi's names for what readings call otherwise, of CSV, XML and -q, older and newer ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsconsole.hostkit.pci import normal_address
from opsconsole.hostkit.smi import FIELDS

MIB = 1 << 20
# reading: (factor, names of XML and -q); those of CSV are the probe's own
MORE: dict[str, tuple[float, tuple[str, ...]]] = {
    "memory_total_bytes": (MIB, ("fb_memory_usage.total",)),
    "memory_used_bytes": (MIB, ("fb_memory_usage.used",)),
    "utilization_percent": (1, ("utilization.gpu_util", "utilization.gpu")),
    "temperature_c": (1, ("temperature.gpu_temp", "temperature.gpu_current_temp")),
    "temperature_margin_c": (1, ("temperature.gpu_temp_tlimit", "temperature.gpu_t_limit_temp")),
    "power_w": (
        1,
        (
            "gpu_power_readings.power_draw",
            "gpu_power_readings.average_power_draw",
            "gpu_power_readings.instant_power_draw",
            "power_readings.power_draw",
            "power.draw.average",
            "power.draw.instant",
        ),
    ),
    "power_limit_w": (
        1,
        ("gpu_power_readings.current_power_limit", "gpu_power_readings.power_limit", "power_readings.power_limit"),
    ),
    "sm_clock_mhz": (1, ("clocks.sm_clock", "clocks.current.sm")),
    "sm_clock_max_mhz": (1, ("max_clocks.sm_clock", "max_clocks.sm")),
    "pcie_generation": (1, ("pci.pci_gpu_link_info.pcie_gen.current_link_gen", "pcie.link.gen.gpucurrent")),
    "pcie_generation_max": (1, ("pci.pci_gpu_link_info.pcie_gen.max_link_gen",)),
    "pcie_width": (1, ("pci.pci_gpu_link_info.link_widths.current_link_width",)),
    "pcie_width_max": (1, ("pci.pci_gpu_link_info.link_widths.max_link_width",)),
    "row_remap_pending": (1, ("remapped_rows.pending", "remapped_rows.remapped_row_pending")),
    "row_remap_failed": (
        1,
        ("remapped_rows.failure", "remapped_rows.remapped_row_failure", "remapped_rows.remapping_failure_occurred"),
    ),
    "rows_remapped_uncorrected": (
        1,
        ("remapped_rows.uncorrectable", "remapped_rows.uncorrectable_error", "remapped_rows.remapped_row_unc"),
    ),
    "retired_pages_pending": (1, ("retired_pages.pending", "retired_pages.pending_retirement")),
    "ecc_volatile_uncorrected": (1, ("ecc_errors.volatile.double_bit.total",)),
    "ecc_aggregate_uncorrected": (1, ("ecc_errors.aggregate.double_bit.total",)),
    "recovery_action": (1, ("gpu_recovery_action",)),
    "fan_percent": (1, ("fan.speed", "fan_speed")),
}
NAMES: dict[str, tuple[str, float]] = {name: (key, factor) for key, (name, factor) in FIELDS.items()}
NAMES |= {name: (key, factor) for key, (factor, names) in MORE.items() for name in names}
SUMS = {
    f"ecc_{kind}_uncorrected": tuple(
        f"ecc_errors.{kind}.{place}_uncorrectable{way}"
        for place in ("sram", "dram")
        for way in ("", "_parity", "_secded")
    )
    for kind in ("volatile", "aggregate")
}
YES_NO = ("row_remap_pending", "row_remap_failed", "retired_pages_pending")
RECOVERY = ("none", "reset", "reboot", "drain p2p", "drain and reset")
REASONS = ("clocks_event_reasons.", "clocks_throttle_reasons.")
IDENTITY = {
    "pci": ("pci.bus_id", "id", "pci.pci_bus_id"),
    "uuid": ("uuid", "gpu_uuid"),
    "name": ("name", "product_name"),
}

Reading = dict[str, Any]
Field = Mapping[str, Any]


def probe_of(output: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent would say, had it read this: from the JSON of parse-smi."""
    gpus = [_gpu(gpu, n) for n, gpu in enumerate(output.get("gpus") or []) if isinstance(gpu, Mapping)]
    fatal = str(output.get("fatal") or "")
    one_gpu = any(why and why in fatal for gpu in gpus for why in [gpu.get("uuid", {}).get("failed")])
    driver: Reading = {"failed": fatal} if fatal and not one_gpu else {"v": "not told"}
    return {"driver": driver, "gpus": gpus, "errors": [str(warning) for warning in output.get("warnings") or []]}


def _gpu(fields: Mapping[str, Field], n: int) -> dict[str, Any]:
    readings: dict[str, Reading] = {}
    for name, one in fields.items():
        key, factor = NAMES.get(name, ("", 1))
        if key and ("v" not in readings.get(key, {})):
            readings[key] = _scaled(key, reading_of(one), factor)
    for key, names in SUMS.items():
        parts = [reading_of(fields[name]) for name in names if name in fields]
        if parts and key not in readings:
            readings[key] = _sum(parts)
    reasons = _reasons(fields)
    if reasons is not None:
        readings["clock_event_reasons"] = reasons
    said: dict[str, Any] = {"slot": n, "readings": readings}
    for key, names in IDENTITY.items():
        found = next((fields[name] for name in names if name in fields), None)
        if key == "pci":
            said[key] = normal_address(str(found["value"])) if found and found["state"] == "value" else f"row {n}"
        elif found is not None:
            said[key] = reading_of(found)
    if "processes" in fields:
        said["processes"] = reading_of(fields["processes"])
    return said


def reading_of(one: Field) -> Reading:
    state = one.get("state")
    if state == "value":
        return {"v": one.get("value")}
    return {"absent": True} if state == "absent" else {str(state): str(one.get("why"))}


def _scaled(key: str, reading: Reading, factor: float) -> Reading:
    found = reading.get("v")
    if key in YES_NO and "v" in reading:
        return {"v": str(found).lower() in ("yes", "1", "true")}
    if key == "recovery_action" and isinstance(found, str):
        words = found.lower().removeprefix("gpu ").removeprefix("node ")
        return {"v": RECOVERY.index(words)} if words in RECOVERY else {"failed": f"unknown action: {found}"}
    return {"v": found * factor} if factor != 1 and isinstance(found, int | float) else reading


def _sum(parts: list[Reading]) -> Reading:
    """Of what is known; what fails is not left out of a sum, it is its end."""
    gaps = [part for part in parts if "failed" in part or "denied" in part]
    numbers = [part["v"] for part in parts if isinstance(part.get("v"), int | float)]
    if gaps and not any(numbers):
        return gaps[0]
    return {"v": sum(numbers)} if numbers else {"absent": True}


def _reasons(fields: Mapping[str, Field]) -> Reading | None:
    """Those that are active; unknown where one that may be cannot be read."""
    told = {name: one for name, one in fields.items() if name.startswith(REASONS)}
    words = {name.rpartition(".")[2].removeprefix("clocks_event_reason_"): one for name, one in told.items()}
    if not words:
        return None
    active = [word for word, one in words.items() if one.get("value") == "Active"]
    gap = next((one for one in told.values() if one["state"] in ("failed", "denied")), None)
    return reading_of(gap) if gap is not None and not active else {"v": active}
