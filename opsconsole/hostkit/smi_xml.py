"""`nvidia-smi -q -x`: scoped look-ups in a tree whose shape changes with the driver. Nothing is taken from "anywhere".

Elements moved and were renamed at 535 and 570; both layouts are known. What is not there is absent, never an error.
Names in another code page are decoded with replacement, and a block that is no proper XML is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .pci import normal_address
from .readings import Reading, absent, is_known, plain, value
from .smi_text import parse_value

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MIB = 1 << 20
ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
SKIPPED = re.compile(r"<supported_clocks>.*?</supported_clocks>", re.DOTALL)

# reading: paths below <gpu>, the newest layout first; the first that exists counts
PATHS: dict[str, tuple[str, ...]] = {
    "memory_total_mib": ("fb_memory_usage/total",),
    "memory_used_mib": ("fb_memory_usage/used",),
    "utilization_percent": ("utilization/gpu_util",),
    "memory_utilization_percent": ("utilization/memory_util",),
    "temperature_c": ("temperature/gpu_temp",),
    "temperature_margin_c": ("temperature/gpu_temp_tlimit",),
    "fan_percent": ("fan_speed",),
    "power_w": (
        "gpu_power_readings/power_draw",
        "gpu_power_readings/average_power_draw",
        "gpu_power_readings/instant_power_draw",
        "power_readings/power_draw",
    ),
    "power_limit_w": (
        "gpu_power_readings/current_power_limit",
        "gpu_power_readings/power_limit",
        "power_readings/enforced_power_limit",
        "power_readings/power_limit",
    ),
    "sm_clock_mhz": ("clocks/sm_clock",),
    "sm_clock_max_mhz": ("max_clocks/sm_clock",),
    "memory_clock_mhz": ("clocks/mem_clock",),
    "pcie_generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie_generation_max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "pcie_width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie_width_max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
    "row_remap_pending": ("remapped_rows/remapped_row_pending",),
    "row_remap_failed": ("remapped_rows/remapped_row_failure",),
}
ECC = {"uncorrected": ("uncorrectable", "double_bit"), "corrected": ("correctable", "single_bit")}


def parse_xml(data: bytes | str) -> list[dict[str, Any]]:
    """One dictionary per GPU: pci, uuid, name, readings, processes. Raises ValueError when it is no XML at all."""
    from xml.etree.ElementTree import ParseError, fromstring

    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    text = ILLEGAL.sub("\ufffd", text)
    try:
        root = fromstring(text)
    except ParseError:
        try:
            root = fromstring(SKIPPED.sub("", text))
        except ParseError as error:
            raise ValueError(f"nvidia-smi printed no proper XML: {error}") from error
    return [parse_gpu(gpu) for gpu in gpus_of(root)]


def gpus_of(root: Element) -> list[Element]:
    """The <gpu> elements; a fragment without one is taken for the inside of one."""
    if root.tag == "gpu":
        return [root]
    if root.tag == "nvidia_smi_log":
        return root.findall("gpu")
    from xml.etree.ElementTree import Element

    gpu = Element("gpu")
    gpu.append(root)
    return [gpu]


def parse_gpu(gpu: Element) -> dict[str, Any]:
    readings = {key: first(gpu, paths) for key, paths in PATHS.items()}
    for kind in ("volatile", "aggregate"):
        for name, words in ECC.items():
            readings[f"ecc_{kind}_{name}"] = ecc(gpu, kind, *words)
    for key in ("memory_total", "memory_used"):
        found = readings.pop(f"{key}_mib")
        readings[f"{key}_bytes"] = value(int(found["v"] * MIB)) if is_known(found) else found
    for key in ("pcie_width", "pcie_width_max"):
        readings[key] = lanes(readings[key])
    return {
        "pci": normal_address(gpu.get("id") or gpu.findtext("pci/pci_bus_id") or ""),
        "uuid": first(gpu, ("uuid",), is_text=True),
        "name": first(gpu, ("product_name",), is_text=True),
        "readings": readings,
        "processes": processes(gpu),
    }


def first(gpu: Element, paths: tuple[str, ...], is_text: bool = False) -> Reading:
    """The first path that says something; a gap in one layout does not hide a value in the other."""
    best: Reading | None = None
    for path in paths:
        text = gpu.findtext(path)
        if text is None:
            continue
        reading = parse_value(text, is_text)
        if is_known(reading):
            return reading
        best = best or reading
    return best or absent()


def ecc(gpu: Element, kind: str, by_place: str, by_bits: str) -> Reading:
    """SRAM and DRAM together where the driver counts by place, else the total by bits."""
    block = gpu.find(f"ecc_errors/{kind}")
    if block is None:
        return absent()
    old = block.findtext(f"{by_bits}/total")
    if old is not None:
        return parse_value(old)
    places = [child for child in block if re.fullmatch(rf"(sram|dram)_{by_place}(_\w+)?", child.tag)]
    known = [parse_value(child.text or "") for child in places]
    numbers = [reading["v"] for reading in known if is_known(reading)]
    if numbers:
        return value(sum(numbers))
    return next((reading for reading in known if "absent" not in reading), absent())


def lanes(reading: Reading) -> Reading:
    found = re.fullmatch(r"(\d+)x", str(reading.get("v")))
    return value(int(found.group(1))) if found else reading


def processes(gpu: Element) -> Reading:
    """A process with unknown memory is a process all the same. No block: nothing is known about processes."""
    block = gpu.find("processes")
    if block is None:
        name = gpu.findtext("process_name")
        return absent() if name is None else value([process("0", name, None)])
    if not len(block) and (block.text or "").strip():
        return parse_value(block.text or "")
    return value(
        [
            process(entry.findtext("pid") or "0", entry.findtext("process_name"), entry.findtext("used_memory"))
            for entry in block.findall("process_info")
        ]
    )


def process(pid: str, name: str | None, used: str | None) -> dict[str, Any]:
    memory = parse_value(used or "N/A")
    known = isinstance(memory.get("v"), (int, float))
    return {
        "pid": int(pid) if pid.strip().isdigit() else 0,
        "name": plain(name, 200) if name else None,
        "gpu_memory_bytes": int(memory["v"] * MIB) if known else None,
    }
