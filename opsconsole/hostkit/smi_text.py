"""What nvidia-smi prints, read with suspicion. Pure text in, readings out; the human table is never scraped.

Columns are those that were asked for, by position: drivers rename headers. Any field may be a sentinel, any line a
warning or an error (they come on stdout), and no message is ever taken for a row.
"""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Sequence

from .pci import normal_address
from .readings import Reading, absent, denied, failed, plain, value

Row = Dict[str, Reading]

ABSENT_WORDS = ("n/a", "not supported", "not available", "none", "-", "not applicable")
DENIED_WORDS = ("insufficient permissions", "no permission", "permission denied")
NUMBER = re.compile(r"^(-?\d+(?:\.\d+)?)(?:\s*(%|[A-Za-z/]+))?$")
UNITS = frozenset(["%", "W", "MHz", "MiB", "KiB", "GiB", "C", "MB/s", "KB/s", "us", "ms", "RPM", "mW"])
# Text also where it looks like a number: a serial loses its zeros, a pid column its dashes.
TEXT_FIELDS = frozenset(
    [
        "name",
        "gpu_name",
        "uuid",
        "gpu_uuid",
        "serial",
        "gpu_serial",
        "pci.bus_id",
        "gpu_bus_id",
        "pstate",
        "driver_version",
        "vbios_version",
        "process_name",
        "compute_cap",
        "command",
        "type",
    ]
)
BAD_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')
BUS = r"((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)"
HANDLE = re.compile(r"Unable to determine the device handle for (?:GPU|gpu)\s?\d*?\s?:?\s*" + BUS + r"\s*:\s*(.*)")
WARNING = re.compile(r"^\s*WARNING:\s*(.*)", re.IGNORECASE)
GPU_LINE = re.compile(r"^GPU\s+(\d+):\s+(.*?)\s+\(UUID:\s*([^)\s]+)\)")
MIG_LINE = re.compile(r"^\s+MIG\s+(\S+)\s+Device\s+(\d+):\s+\(UUID:\s*([^)\s]+)\)")
LINK_LINE = re.compile(r"^\s*Link\s+(\d+):\s*(.*?)\s*$")

# Exit codes are NVML's numbers. (kind, what it means, what to do)
BY_CODE = {
    2: ("rejected", "a field or argument is not known to this driver"),
    6: ("no_devices", "the driver works and shows no GPU at all"),
    9: ("driver_not_loaded", "the NVIDIA driver is not loaded"),
    12: ("no_library", "there is no NVML library: no driver is installed"),
    14: ("inforom_corrupted", "the infoROM of a GPU is corrupted"),
    15: ("gpu_lost", "a GPU is lost; reboot the host"),
    18: ("mismatch", "driver and library versions differ; reload the driver or reboot when the host is empty"),
    255: ("tool_mismatch", "nvidia-smi does not fit the library; that says nothing about the GPUs"),
}
BY_TEXT = (
    ("driver/library version mismatch", 18),
    ("mismatch in versions between nvidia-smi and nvml", 255),
    ("couldn't communicate with the nvidia driver", 9),
    ("couldn't find libnvidia-ml", 12),
    ("no devices were found", 6),
    ("is not a valid field to query", 2),
)


class Trouble(NamedTuple):
    """Why an answer holds less than was asked for. `pci` where it is about one GPU; its state is then in `kind`."""

    kind: str
    text: str
    code: int | None = None
    pci: str | None = None


class Table(NamedTuple):
    """Rows in the order of the answer, one per GPU; what else was said beside them."""

    rows: list[Row]
    troubles: list[Trouble]
    rejected_field: str | None


def parse_value(text: str, is_text: bool = False) -> Reading:
    """One field: a number without its unit, a word, or which of the gaps it is."""
    word = text.strip()
    inner = word[1:-1].strip() if word.startswith("[") and word.endswith("]") else word
    low = inner.lower()
    if low in ABSENT_WORDS:
        return absent()
    if low in DENIED_WORDS:
        return denied(inner)
    if inner is not word or low in ("err!", "unknown error", "error") or not word:
        return failed(inner or "empty")
    found = None if is_text else NUMBER.match(word)
    if found and (found.group(2) is None or found.group(2) in UNITS):
        number = found.group(1)
        return value(float(number) if "." in number else int(number))
    return value(plain(word))


def trouble_of(line: str) -> Trouble | None:
    """A line that is a message, or None when it may be a row."""
    warning, handle = WARNING.match(line), HANDLE.search(line)
    if warning:
        return Trouble("warning", plain(warning.group(1)), 14 if "inforom" in line.lower() else None, bus_in(line))
    if handle:
        lost = "lost" in handle.group(2).lower()
        return Trouble("gpu_lost" if lost else "gpu_unreachable", plain(line), 15 if lost else None, bus_in(line))
    low = line.lower()
    for words, code in BY_TEXT:
        if words in low:
            return Trouble(BY_CODE[code][0], plain(line), code)
    if low.startswith("failed to initialize nvml"):
        # Often only this session (a container without its devices): the host's GPUs may be sound.
        return Trouble("nvml_unavailable", plain(line))
    return None


def bus_in(line: str) -> str | None:
    found = re.search(BUS, line)
    return normal_address(found.group(1)) if found else None


def exit_trouble(rc: int | None, text: str, known: Sequence[Trouble]) -> Trouble | None:
    """What the exit code says, unless a line has said so already."""
    if not rc or any(trouble.code == rc for trouble in known):
        return None
    kind, meaning = BY_CODE.get(rc, ("failed", f"nvidia-smi ended with {rc}"))
    words = plain(text.strip().split("\n", 1)[0])
    return Trouble(kind, f"{meaning}: {words}" if words and not known else meaning, rc)


def parse_csv(fields: Sequence[str], text: str, rc: int | None = 0, header: bool = False) -> Table:
    """An answer to --query-…=FIELDS --format=csv. The last field may hold commas (ask for names last)."""
    rows: list[Row] = []
    troubles: list[Trouble] = []
    bad = BAD_FIELD.search(text)
    for line in text.splitlines():
        if not line.strip():
            continue
        trouble = trouble_of(line)
        if trouble is not None:
            troubles.append(trouble)
        elif header:
            header = False
        elif rc in (0, None, 14, 15):  # after these the rows of the other GPUs are still there
            row = parse_row(fields, line)
            if row is None:
                troubles.append(Trouble("unparsed", plain(line)))
            else:
                rows.append(row)
    whole = exit_trouble(rc, text, troubles)
    return Table(rows, troubles + ([whole] if whole else []), bad.group(1) if bad else None)


def parse_row(fields: Sequence[str], line: str) -> Row | None:
    """None for a line with fewer columns than were asked for."""
    cells = line.split(",", len(fields) - 1)
    if len(cells) < len(fields):
        return None
    return {field: parse_value(cell, field in TEXT_FIELDS) for field, cell in zip(fields, cells)}


def parse_plain(text: str, rc: int | None = 0) -> list[Trouble]:
    """Of the human output only its messages are read, never its table."""
    found = [trouble for trouble in map(trouble_of, text.splitlines()) if trouble is not None]
    whole = exit_trouble(rc, "", found)
    return found + ([whole] if whole else [])


def parse_list(text: str) -> list[dict[str, Any]]:
    """`nvidia-smi -L`: GPUs with their MIG instances; the parent of an instance is the GPU line above it."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        gpu, instance = GPU_LINE.match(line), MIG_LINE.match(line)
        if gpu:
            found.append({"index": int(gpu.group(1)), "name": gpu.group(2), "uuid": gpu.group(3), "mig": []})
        elif instance and found:
            profile, device, uuid = instance.groups()
            found[-1]["mig"].append({"profile": profile, "device": int(device), "uuid": uuid})
    return found


def parse_mig_instances(text: str, rc: int | None = 0) -> Reading:
    """`nvidia-smi mig -lci`: a refusal is an unknown layout, never "no instances"."""
    low = text.lower()
    if "insufficient permissions" in low:
        return denied(text.strip())
    if "no mig-enabled devices" in low or "no compute instances" in low or "not found" in low:
        return value(0)
    if rc or "failed" in low:
        return failed(text.strip())
    return value(len(re.findall(r"^\|\s+\d+\s+\d+\s+", text, re.MULTILINE)))


def parse_nvlink(text: str) -> dict[str, Reading]:
    """`nvidia-smi nvlink -s`: UUID → {link: True up, False down}. Nothing printed: this model has no NVLink.

    Links that are down by design (a card without a bridge) look like broken ones; only the inventory can tell.
    """
    found: dict[str, Reading] = {}
    uuid = ""
    for line in text.splitlines():
        gpu, link = GPU_LINE.match(line), LINK_LINE.match(line)
        if gpu:
            uuid = gpu.group(3)
            found[uuid] = value({})
        elif link and uuid:
            found[uuid]["v"][int(link.group(1))] = "inactive" not in link.group(2).lower()
    return found


def parse_pmon(text: str) -> list[Row]:
    """`nvidia-smi pmon`: by the names in its header; a row of dashes is a GPU without processes."""
    names: list[str] = []
    rows: list[Row] = []
    for line in text.splitlines():
        words = line.lstrip("# ").split()
        if line.startswith("#"):
            names = names or words
            continue
        cells = line.split(None, len(names) - 1) if names else []
        if len(cells) == len(names) > 1 and cells[1] != "-":
            rows.append({n: parse_value(c, n in TEXT_FIELDS) for n, c in zip(names, cells)})
    return rows
