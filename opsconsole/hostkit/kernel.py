"""The kernel log's lines that matter: XID, SXID, GPUs fallen off the bus, PCIe errors, killed for want of memory.

Only text is read here, from whatever source (see kernel_log). A line keeps what decides about it besides its number:
severity, unit and link of NVLink 5 errors, the XID that caused a 45, and whether a test tool injected it. Bus addresses
come out normal (`0000:9b:00.0`), from the old form without `PCI:` too.
"""

from __future__ import annotations

import re
from typing import Any, Dict

from .pci import normal_address
from .readings import plain

TEXT_MAX = 1000
BUS = r"(?:PCI:)?((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)"
XID = re.compile(r"NVRM: Xid \(" + BUS + r"(?:\s*GPU-[\w:-]+)?\): (\d+)\s*(?:,\s*(.*))?$")
SXID = re.compile(r"nvidia-nvswitch\d*: SXid \(" + BUS + r"\): (\d+)\s*(?:,\s*(.*))?$")
PID = re.compile(r"pid='?(\d+)'?")
NAME = re.compile(r"name=(?!<unknown>)([^,]+)")
CAUSE = re.compile(r"caused by previous Xid (\d+)")
NVLINK = re.compile(
    r"\b([A-Z][A-Z0-9_]+) (Fatal|Nonfatal|Non-fatal) (XC\d+) i(\d+) Link (\d+)(?: \(([0-9A-Fa-fx ]*)\))?", re.IGNORECASE
)
RECOVERY = re.compile(r"GPU recovery action changed from 0x[0-9a-fA-F]+ \(([^)]*)\) to 0x([0-9a-fA-F]+) \(([^)]*)\)")
FALLEN = re.compile(r"NVRM: (?:The NVIDIA )?GPU (?:at )?" + BUS)
OFF_THE_BUS = "fallen off the bus"
AER = re.compile(r"\b(?:AER:|PCIe Bus Error:|pcieport .*: (?:DPC|AER):)")
OOM = re.compile(r"Out of memory: Kill|Killed process \d+|oom-kill:|Memory cgroup out of memory")
HANG = re.compile(r"blocked for more than \d+ seconds")

Line = Dict[str, Any]


def parse_line(text: str) -> Line | None:
    """{text, kind, xid}; None for a line that tells nothing about GPUs, their bus or memory."""
    line = plain(text, TEXT_MAX)
    for kind, pattern in (("xid", XID), ("sxid", SXID)):
        found = pattern.search(line)
        if found:
            return {"text": line, "kind": kind, "xid": event(found, kind)}
    if OFF_THE_BUS in line:
        return fallen(line)
    for kind, pattern in (("aer", AER), ("oom", OOM), ("hang", HANG)):
        if pattern.search(line):
            return {"text": line, "kind": kind, "xid": None}
    return None


def event(found: re.Match[str], kind: str) -> Line:
    """`code` alone never says how bad it is; the rest of the line may."""
    pci, code, rest = found.group(1), int(found.group(2)), found.group(3) or ""
    pid, name, cause, link = PID.search(rest), NAME.search(rest), CAUSE.search(rest), NVLINK.search(rest)
    recovery = RECOVERY.search(rest)
    return {
        "code": code,
        "pci": normal_address(pci),
        "pid": int(pid.group(1)) if pid else None,
        "process": name.group(1).strip() if name else None,
        "sxid": kind == "sxid",
        "caused_by": int(cause.group(1)) if cause else None,
        "injected": bool(link and link.group(4) != "0"),
        "nvlink": nvlink(link) if link else None,
        "recovery_action": int(recovery.group(2), 16) if recovery and code == 154 else None,
    }


def nvlink(found: re.Match[str]) -> Line:
    unit, severity, engine, _, link, words = found.groups()
    return {
        "unit": unit,
        "fatal": severity.lower() == "fatal",
        "engine": engine,
        "link": int(link),
        "status": (words or "").split(),
    }


def fallen(line: str) -> Line:
    """No number in the text, the same thing as XID 79."""
    bus = re.search(BUS, line)
    xid = None
    if bus:
        xid = {"code": 79, "pci": normal_address(bus.group(1)), "pid": None, "process": None, "sxid": False}
        xid.update(caused_by=None, injected=False, nvlink=None, recovery_action=None)
    return {"text": line, "kind": "xid" if xid else "fallen", "xid": xid}


class Reader:
    """Joins what the driver spreads over several records. Feed lines in order."""

    def __init__(self) -> None:
        self._open: list[str] = []

    def feed(self, text: str) -> Line | None:
        """A finished line that matters, or None."""
        if self._open:
            joined = self._continue(text)
            if joined is not None:
                return joined
        if FALLEN.search(text) and OFF_THE_BUS not in text and text.rstrip().endswith(("00", ".0")):
            self._open = [text]
            return None
        return parse_line(text)

    def _continue(self, text: str) -> Line | None:
        if OFF_THE_BUS in text:
            whole = " ".join([self._open[0], *(part.replace("NVRM: ", "", 1) for part in [*self._open[1:], text])])
            self._open = []
            return parse_line(whole)
        if "PCI ID:" in text or "installed in this system" in text:
            self._open.append(text)
        elif len(self._open) > 3 or "NVRM" in text:
            self._open = []  # it was about something else
        return None


def read_lines(lines: list[tuple[float | None, str]]) -> list[Line]:
    """(monotonic seconds, text) pairs → those that matter, with their time since boot."""
    reader, found = Reader(), []
    for at, text in lines:
        line = reader.feed(text)
        if line is not None:
            found.append({"monotonic_s": at, **line})
    return found


def parse_kmsg(record: str) -> tuple[int, float, str] | None:
    """(sequence number, seconds since boot, text) of one /dev/kmsg record; continuation lines are dropped.

    The stamp is in microseconds since boot. It is no wall time, and a reboot starts it again.
    """
    head, mark, text = record.partition(";")
    parts = head.split(",")
    if not mark or len(parts) < 3 or not parts[1].isdigit() or not parts[2].isdigit():
        return None
    return int(parts[1]), int(parts[2]) / 1e6, unescape(text.split("\n", 1)[0])


def unescape(text: str) -> str:
    """The kernel writes control and non-ASCII bytes as \\xNN."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m.group(1), 16)), text)


def parse_short(line: str) -> tuple[float | None, str] | None:
    """(None, text) of a text line of journalctl or syslog in any form and language, or of the bare message.

    Such a stamp is wall time in the host's words: never read. Its place in this boot is not known.
    """
    text = line.rstrip("\n")
    bare = re.match(r"^(?:<\d+>)?\[\s*(\d+\.\d+)\]\s?(.*)$", text)
    if bare:
        return float(bare.group(1)), bare.group(2)
    _, mark, message = text.partition(" kernel: ")
    message = message if mark else text
    return (None, message) if message.strip() else None
