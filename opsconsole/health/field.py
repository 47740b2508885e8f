"""One field of an nvidia-smi output: a value, or which gap and why. Names are nvidia-smi's own, units stand apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from opsconsole.hostkit.readings import plain
from opsconsole.hostkit.smi_text import TEXT_FIELDS, number_of, parse_value

Field = dict[str, Any]  # state, value, why; `unit` where one was printed
Gpu = dict[str, Field]

MOST_COLUMNS = 200
CUT = "the output ends here"
# First parts of the names that --help-query-… lists, from the oldest drivers on.
_TOPICS = """
accounting active addressing_mode attached_gpus avg_memory_usage bar1 c2c clocks clocks_event_reasons
clocks_event_reasons_counters clocks_throttle_reasons compute_cap compute_mode count current_driver_model dbe_address
display_active display_attached display_mode dram driver_model driver_version ecc encoder enforced fabric fan gom gpu
gpu_bdf gpu_bus_id gpu_instance_id gpu_name gpu_recovery_action gpu_serial gpu_utilization gpu_uuid gpu_virtualization
gsp hostname index infoROM inforom kmd_version max_memory_usage mem_utilization memory mig module name pci pcie
pending_driver_model persistence_mode pid platform power process_name product protected_memory pstate remapped_rows
reset_status retired_pages serial sram temperature time timestamp type used_gpu_memory used_memory utilization uuid
vbios_version vgpu virtualization_mode
"""
TOPICS = frozenset(_TOPICS.split())
NAME = re.compile(r"([A-Za-z][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_]*)*)(?:\s*\[[^\]]*\]?)?")
NUMERIC = re.compile(
    r"(temperature|memory|utilization|fan|clocks(\.\w+)?|bar1|protected_memory|encoder\.stats)\..+"
    r"|power\.(draw|limit|default_limit|min_limit|max_limit).*|enforced\.power\.limit|ecc\.errors\..+"
    r"|pcie\.link\..+|retired_pages\..+\.count|remapped_rows\.(un)?correctable|used(_gpu)?_memory|count|index"
)


def value_field(found: Any) -> Field:
    return {"state": "value", "value": found, "why": None}


def failed_field(why: str) -> Field:
    return {"state": "failed", "value": None, "why": plain(why)}


def field(name: str, text: str) -> Field:
    """What stands under this name. A word where only a number can be is a failure, whatever it says."""
    reading = parse_value(text, name in TEXT_FIELDS)
    if "v" not in reading:
        state = next(word for word in ("absent", "denied", "failed") if word in reading)
        why = text.strip().strip("[]") if reading[state] is True else reading[state]
        return {"state": state, "value": None, "why": plain(why)}
    found = reading["v"]
    if isinstance(found, str) and NUMERIC.fullmatch(name):
        return failed_field(f"no number: {found}")
    number = None if isinstance(found, str) else number_of(text)
    return {**value_field(found), **({"unit": number[1]} if number and number[1] else {})}


def names_of(cells: Sequence[str]) -> list[str] | None:
    """The names of a header, without units, each once; None where this is none."""
    if len(cells) > MOST_COLUMNS:
        return None
    found: list[str] = []
    for cell in cells:
        match = NAME.fullmatch(cell.strip())
        if match is None:
            return None
        name = f"{match.group(1)}{match.group(2)}"
        found.append(f"{name}#{1 + found.count(name)}" if name in found else name)
    known = sum(name.partition("#")[0].partition(".")[0] in TOPICS for name in found)
    return found if 2 * known >= len(found) else None


def snake(text: str) -> str:
    """`Used GPU Memory` → `used_gpu_memory`."""
    return "_".join(re.findall(r"[a-z0-9]+", text.lower()))


def put(fields: Gpu, name: str, one: Field) -> None:
    """Under its name; what comes again under one with a number, of which there is an end."""
    whole, number = name, 2
    while whole in fields and number <= MOST_COLUMNS:
        whole, number = f"{name}#{number}", number + 1
    fields[whole] = one
