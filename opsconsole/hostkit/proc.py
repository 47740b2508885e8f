"""Who is who on this host: the boot, the machine, and processes as (boot id, pid, start time).

A pid alone names nobody: it is reused. `stat` files are read, never `cmdline` or `environ`, wherever a hung process
must not hang the reader (those two wait for the process's memory lock).
"""

from __future__ import annotations

import os
import time
from typing import Dict, Iterator, NamedTuple

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")


class Identity(NamedTuple):
    """A process of this boot. `start` is in clock ticks since boot, from /proc/PID/stat."""

    pid: int
    start: int


class Stat(NamedTuple):
    """What /proc/PID/stat says. `state` is one letter; D waits for a device and cannot be killed."""

    pid: int
    name: str
    state: str
    ppid: int
    pgrp: int
    session: int
    start: int

    @property
    def identity(self) -> Identity:
        return Identity(self.pid, self.start)


Scan = Dict[int, Stat]


def read_text(path: str) -> str:
    """The file's text without surrounding blanks; "" when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def boot_id() -> str:
    """Another one after every boot. OPSCONSOLE_BOOT_ID_FILE names a stand-in, for tests and the demo."""
    return read_text(os.environ.get("OPSCONSOLE_BOOT_ID_FILE") or BOOT_ID_FILE) or "unreadable"


def machine_id() -> str:
    """One per installed machine; the node name where the image left it empty."""
    override = os.environ.get("OPSCONSOLE_MACHINE_ID_FILE")
    for path in (override,) if override else MACHINE_ID_FILES:
        found = read_text(path)
        if len(found) >= 8 and found != "uninitialized":
            return found
    return "node-" + os.uname().nodename


def boottime_s() -> float | None:
    """Seconds since boot, suspends included; None where the clock cannot be read, which protects (rule 11)."""
    if os.environ.get("OPSCONSOLE_BOOTTIME_UNREADABLE"):
        return None  # for tests
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return None


def parse_stat(data: bytes) -> Stat | None:
    """One /proc/PID/stat line. The name may hold blanks and parentheses, so the last one ends it."""
    opening, closing = data.find(b"("), data.rfind(b")")
    rest = data[closing + 2 :].split()
    if opening < 0 or closing < 0 or len(rest) < 20:
        return None
    name = data[opening + 1 : closing].decode("utf-8", "replace")
    state = rest[0].decode("ascii", "replace")
    return Stat(int(data[:opening]), name, state, int(rest[1]), int(rest[2]), int(rest[3]), int(rest[19]))


def read_stat(pid: int) -> Stat | None:
    """None when there is no such process (any more)."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return parse_stat(os.read(fd, 4096))
    except OSError:
        return None
    finally:
        os.close(fd)


def is_alive(identity: Identity) -> bool:
    """The very same process still exists and is no zombie."""
    stat = read_stat(identity.pid)
    return stat is not None and stat.start == identity.start and stat.state not in "ZX"


def scan() -> Scan:
    """Every process, zombies included. Costs about 10 µs each."""
    found: Scan = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = read_stat(int(entry))
            if stat is not None:
                found[stat.pid] = stat
    return found


def descendants(processes: Scan, roots: set[int]) -> set[int]:
    """All children of `roots`, and theirs; the roots themselves are not among them."""
    children: dict[int, set[int]] = {}
    for stat in processes.values():
        children.setdefault(stat.ppid, set()).add(stat.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        fresh = children.get(waiting.pop(), set()) - found - roots
        found |= fresh
        waiting.extend(fresh)
    return found


def environment_value(pid: int, name: str) -> str | None:
    """A variable of another process; None when unset, gone, or not ours to read. May hang beside a hung process."""
    prefix = os.fsencode(name) + b"="
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return None
    return next((os.fsdecode(entry[len(prefix) :]) for entry in entries if entry.startswith(prefix)), None)


def with_environment(processes: Scan, name: str, value: str) -> Iterator[int]:
    """Pids whose environment sets `name` to `value`, however often they forked or changed session."""
    for pid in processes:
        if environment_value(pid, name) == value:
            yield pid
