"""What nvidia-smi prints, read with suspicion: one field, one line that is a message, one answer to a query.

Columns are those that were asked for, by position: drivers rename headers. Any field may be a sentinel, any line a
warning or an error (they come on stdout), and no message is ever taken for a row.
"""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Sequence

from .pci import normal_address
from .readings import Reading, absent, denied, failed, plain, value

Row = Dict[str, Reading]

ABSENT = re.compile(
    r"-|n/?a|not (supported|available|applicable)|unsupported|requested functionality has been deprecated", re.I
)
DENIED = re.compile(r"(insufficient|no|missing) permissions?|(permission|access) denied|not permitted", re.I)
FAILED = re.compile(
    r"err!?|error|(unknown|internal) error|unknown|uninitiali[sz]ed|(function )?not found|nan|-?inf|time[d]?[ -]?out|"
    r"(the )?(gpu|device) (is |was )?lost|lost|(gpu |device )?(requires?|needs?) (a )?reset|(gpu )?reset required|"
    r"fallen off the bus|corrupted infoROM|in use by another client|driver not loaded",
    re.I,
)
# NVML's "no value" in the widths in which programs print it, the last two as MiB of 64 bits.
NO_NUMBER = frozenset([2**64 - 1, 2**63 - 1, 2**32 - 1, 2**44 - 1, 2**44])
NUMBER = re.compile(r"^([+-]?(?:0|[1-9]\d{0,24})(?:[.,]\d{1,24})?)(?:\s*(%|°?[A-Za-z]+(?:/s)?))?$")
_UNITS = """
% W mW kW MHz GHz KiB MiB GiB MB GB B C °C KB/s MB/s GB/s GT/s us ms s RPM x mJ J V mV
"""
UNITS = frozenset(_UNITS.split())
# Text also where it looks like a number: a serial loses its zeros, a pid column its dashes.
_TEXT_FIELDS = """
name gpu_name product_name uuid gpu_uuid serial gpu_serial pci.bus_id gpu_bus_id gpu_bdf pci.device_id
pci.sub_device_id pstate driver_version cuda_version vbios_version inforom.img inforom.oem inforom.ecc inforom.pwr
ecc_object oem_object pwr_object process_name compute_cap command type timestamp
"""
TEXT_FIELDS = frozenset(_TEXT_FIELDS.split())
# The only ones that may hold commas; our own queries ask for one of them, last.
FREE_TEXT = ("process_name", "name", "gpu_name")
BAD_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')
BUS = r"((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)"
HANDLE = re.compile(r"Unable to determine the device handle for (?:GPU|gpu)\s?\d*?\s?:?\s*" + BUS + r"\s*:\s*(.*)")
WARNING = re.compile(r"^\s*WARNING:\s*(.*)", re.IGNORECASE)

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
    ("driver not loaded", 9),
    ("couldn't find libnvidia-ml", 12),
    ("nvml shared library not found", 12),
    ("no devices were found", 6),
    ("no devices found", 6),
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


def sentinel(text: str) -> Reading | None:
    """Which gap a field is, or None where it holds something. What stands in brackets is never a value."""
    word = text.strip()
    inner = word[1:-1].strip() if word.startswith("[") and word.endswith("]") else word
    inner = inner.rstrip(".")
    if ABSENT.fullmatch(inner) or (inner != word and inner.lower() == "none"):
        return absent()
    if DENIED.fullmatch(inner) or (word.startswith("[") and "permission" in inner.lower()):
        return denied(inner)
    if not inner or word.startswith("[") or FAILED.fullmatch(inner):
        return failed(inner or "empty")
    return None


def parse_value(text: str, is_text: bool = False) -> Reading:
    """One field: a number without its unit, a word, or which of the gaps it is."""
    gap = sentinel(text)
    if gap is not None:
        return gap
    number = None if is_text else number_of(text)
    if number is None:
        return value(plain(text))
    return failed(f"no number: {number[0]}") if number[0] in NO_NUMBER else value(number[0])


def number_of(text: str) -> tuple[int | float, str] | None:
    """(number, unit or ""), with a decimal comma too: a tool of a localised system may have written it."""
    found = NUMBER.match(text.strip())
    if not found or (found.group(2) or "%") not in UNITS:
        return None
    digits = found.group(1).replace(",", ".")
    return float(digits) if "." in digits else int(digits), found.group(2) or ""


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
    if low.lstrip().startswith("failed to initialize nvml"):
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


def parse_csv(fields: Sequence[str], text: str, rc: int | None = 0) -> Table:
    """An answer to --query-…=FIELDS --format=csv,noheader."""
    rows: list[Row] = []
    troubles: list[Trouble] = []
    bad = BAD_FIELD.search(text)
    for line in text.splitlines():
        if not line.strip():
            continue
        trouble = trouble_of(line)
        if trouble is not None:
            troubles.append(trouble)
        elif rc in (0, None, 14, 15):  # after these the rows of the other GPUs are still there
            row = parse_row(fields, line)
            if row is None:
                troubles.append(Trouble("unparsed", plain(line)))
            else:
                rows.append(row)
    whole = exit_trouble(rc, text, troubles)
    return Table(rows, troubles + ([whole] if whole else []), bad.group(1) if bad else None)


def parse_row(fields: Sequence[str], line: str) -> Row | None:
    """None for a line with fewer or more columns than were asked for."""
    cells = fitted(fields, cells_of(line))
    if cells is None:
        return None
    return {field: parse_value(cell, field in TEXT_FIELDS) for field, cell in zip(fields, cells)}


def cells_of(line: str) -> list[str]:
    """Between commas with a blank behind them, as nvidia-smi writes; where none has one, between any commas."""
    blank = line.rstrip("\r\n") + " "
    cells = re.split(r",\s", blank) if re.search(r",\s+\S|,\s$", blank) else blank.split(",")
    return [cell.strip() for cell in cells]


def fitted(fields: Sequence[str], cells: list[str]) -> list[str] | None:
    """As many cells as fields: commas in a name are put back. None where they do not fit."""
    over = len(cells) - len(fields)
    if over <= 0:
        return cells if not over else None
    at = next((fields.index(field) for field in FREE_TEXT if field in fields), None)
    if at is None:
        return None
    return [*cells[:at], ", ".join(cells[at : at + over + 1]), *cells[at + over + 1 :]]
