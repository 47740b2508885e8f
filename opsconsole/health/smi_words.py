"""What nvidia-smi prints for people: the table, -L, nvlink, pmon and dmon, -q. Read for diagnosis, never by the probe.

Cells of the table are told apart by its bars, never by blanks: a process may be called anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from opsconsole.health.field import Field, Gpu, failed_field, field, put, snake, value_field

GPU_LINE = re.compile(r"^GPU\s+(\d+):\s+(.*?)\s+\(UUID:\s*([^)]*)\)")
MIG_LINE = re.compile(r"^\s+MIG\s+(\S+)\s+Device\s+(\d+):\s+\(UUID:\s*([^)]*)\)")
LINK_LINE = re.compile(r"^\s*Link\s+(\d+)\s*:\s*(.*?)\s*$")
IDENTITY = re.compile(
    r"^\|\s*(\d+)\s+(.+?)\s+(On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+|ERR!|N/A)\s+(\S+)\s*"
    r"\|\s*(.*?)\s*\|$"
)
WORD = r"(\[[^\]|]*\]|(?:GPU )?(?:Not|Unknown|Insufficient|GPU is|Requires|requires) \w+|\S+)"
STATE = re.compile(
    rf"^\|\s*{WORD}\s+{WORD}\s+{WORD}\s+([^|]+?)\s+/\s+([^|]+?)\s*\|\s*([^|]+?)\s*\|\s*{WORD}\s+([^|]+?)\s*\|$"
)
PROCESS = re.compile(
    r"^\|\s*(\d+)(?:\s+(\S+)\s+(\S+))?\s+(\d+)\s+(C\+G|M\+C|[CGM])\s+(.*?)\s+"
    r"(\d+\s?MiB|N/A|ERR!|\[?[A-Z][a-z]+ [A-Za-z]+\]?)\s*\|$"
)
PROCESS_NAMES = ("gpu_instance_id", "compute_instance_id", "pid", "type", "process_name", "used_gpu_memory")
SECTION = re.compile(r"^GPU\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+)\s*$")
ENTRY = re.compile(r"^(\s*)(.+?)\s*(?::\s(.*)|:)?$")


def read_table(lines: Iterable[str]) -> list[Gpu]:
    """GPUs by their numbers; one whose first line is not there comes without a number."""
    gpus: dict[str, Gpu] = {}
    current = ""
    for line in (line.strip() for line in lines):
        if found := IDENTITY.match(line):
            current = found.group(1)
            names = ("index", "name", "persistence_mode", "pci.bus_id", "display_active", "ecc.mode_or_errors")
            gpus.setdefault(current, {}).update(_fields(names, found.groups()))
        elif found := PROCESS.match(line):
            gpu = gpus.setdefault(found.group(1), {"index": field("index", found.group(1))})
            entry = _fields(PROCESS_NAMES, found.groups()[1:])
            gpu.setdefault("processes", value_field([]))["value"].append(entry)
        elif found := STATE.match(line):
            key = current or f"line {len(gpus)}"
            gpus.setdefault(key, {}).update(_state(found.groups()))
            current = ""
    return list(gpus.values())


def _fields(names: Iterable[str], cells: Iterable[str | None]) -> Gpu:
    return {name: field(name, cell) for name, cell in zip(names, cells, strict=False) if cell is not None}


def _state(cells: tuple[str, ...]) -> Gpu:
    """Memory that the GPU shares with its host is one word where the others have two numbers."""
    used, mark, total = cells[5].partition(" / ")
    names = ("fan.speed", "temperature.gpu", "pstate", "power.draw", "power.limit")
    memory = (used, total if mark else used)
    return {
        **_fields(names, cells),
        **_fields(("memory.used", "memory.total"), memory),
        **_fields(("utilization.gpu", "compute_mode"), cells[6:]),
    }


def read_list(lines: Iterable[str]) -> tuple[list[Gpu], list[str]]:
    """-L and `nvlink`: (GPUs, other lines). An instance or a link belongs to the GPU above it, where one is listed.

    A link's state is what is printed of it: only the inventory knows whether one that is down should be up.
    """
    found: list[Gpu] = []
    rest: list[str] = []
    for line in lines:
        if gpu := GPU_LINE.match(line):
            found.append(_fields(("index", "name", "uuid"), gpu.groups()))
        elif instance := MIG_LINE.match(line):
            found = found or [{"uuid": failed_field("the GPU of this instance is not listed")}]
            entry = _fields(("profile", "device", "uuid"), instance.groups())
            found[-1].setdefault("mig_devices", value_field([]))["value"].append(entry)
        elif (link := LINK_LINE.match(line)) and found:
            what, _, state = link.group(2).rpartition(": ")
            name = f"link.{link.group(1)}" + (f".{snake(what)}" if what else "")
            found[-1][name] = field(name, state.strip("<>") if state.startswith("<") else state)
        else:
            rest.append(line)
    return found, rest


def read_columns(lines: Iterable[str]) -> list[Gpu]:
    """pmon and dmon, by the names in the header: drivers add columns. Of several samples the last counts."""
    names: list[str] = []
    gpus: dict[str, Gpu] = {}
    for line in lines:
        if line.startswith("#"):
            words = line.lstrip("# ").split()
            names = words if words and words[0] in ("gpu", "Date") else names
            continue
        cells = line.split(None, len(names) - 1) if names else []
        if len(cells) != len(names) or "gpu" not in names:
            continue
        row = dict(zip(names, cells, strict=True))
        index = row.pop("gpu")
        gpu = gpus.setdefault(index, {"index": field("index", index)})
        if "pid" not in row:
            gpu.update({name: field(name, cell) for name, cell in row.items()})
            continue
        listed: Field = gpu.setdefault("processes", value_field([]))
        if row["pid"] != "-":
            row["process_name"] = row.pop("command", row.pop("name", "-"))
            listed["value"].append({name: field(name, cell.strip()) for name, cell in row.items()})
    return list(gpus.values())


def read_query(lines: Iterable[str]) -> list[Gpu]:
    """-q: `Name : value` below headings, by indentation."""
    gpus: list[Gpu] = []
    path: list[tuple[int, str]] = []
    for line in lines:
        if section := SECTION.match(line):
            gpus.append({"id": field("uuid", section.group(1))})
            path = []
            continue
        found = ENTRY.match(line.rstrip())
        if not gpus or found is None or not line[:1].isspace():
            continue
        depth, name, text = len(found.group(1)), snake(found.group(2)), found.group(3)
        path = [(at, above) for at, above in path if at < depth]
        if name == "process_id" and text is not None:
            processes: Field = gpus[-1].setdefault("processes", value_field([]))
            processes["value"].append({"pid": field("pid", text)})
        elif any(above == "process_id" for _, above in path) and text is not None:
            gpus[-1]["processes"]["value"][-1][name] = field(name, text)
        elif name == "processes" and (text or "").strip() == "None":
            gpus[-1].setdefault("processes", value_field([]))
        elif text is not None:
            put(gpus[-1], ".".join([*(above for _, above in path), name]), field(name, text))
        path.append((depth, name))
    return gpus
