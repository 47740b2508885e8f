"""Readings of the host itself, from /proc: they never wait for the driver, so they arrive also when it hangs."""

from __future__ import annotations

import os
from typing import Callable

from . import proc
from .readings import Reading, failed, value
from .state import StateDir


def attempt(call: Callable[[], object]) -> Reading:
    try:
        return value(call())
    except (OSError, ValueError, KeyError, IndexError) as error:
        return failed(str(error))


def host_readings(state: StateDir, processes: proc.Scan | None) -> dict[str, Reading]:
    """`processes`: the latest scan, None while none is known. Ages are the probe's."""
    readings = {
        "load_1m": attempt(lambda: os.getloadavg()[0]),
        "load_15m": attempt(lambda: os.getloadavg()[2]),
        "cpus": attempt(lambda: len(os.sched_getaffinity(0))),
        "uptime_s": attempt(uptime_s),
        **memory(),
        **disk(state.base),
    }
    if processes is not None:
        stuck = sorted(stat.pid for stat in processes.values() if stat.state == "D")
        readings["d_state_pids"] = value(stuck[:50])
        readings["d_state_processes"] = value(len(stuck))
    return readings


def uptime_s() -> float:
    return float(proc.read_text("/proc/uptime").split()[0])


def memory() -> dict[str, Reading]:
    def kib() -> dict[str, int]:
        lines = (line.split() for line in proc.read_text("/proc/meminfo").splitlines())
        return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1}

    table = attempt(kib)
    if "v" not in table:
        return {"memory_total_bytes": table, "memory_available_bytes": dict(table)}
    found = table["v"]
    return {
        "memory_total_bytes": attempt(lambda: found["MemTotal"] << 10),
        "memory_available_bytes": attempt(lambda: found["MemAvailable"] << 10),
        "swap_used_bytes": attempt(lambda: (found["SwapTotal"] - found["SwapFree"]) << 10),
    }


def disk(path: str) -> dict[str, Reading]:
    """Of the file system that holds the state directory; what an unprivileged user may still use."""
    try:
        info = os.statvfs(path)
    except OSError as error:
        return {"state_disk_free_bytes": failed(str(error)), "state_disk_total_bytes": failed(str(error))}
    return {
        "state_disk_free_bytes": value(info.f_bavail * info.f_frsize),
        "state_disk_total_bytes": value(info.f_blocks * info.f_frsize),
        "state_disk_free_inodes": value(info.f_favail) if info.f_files else {"absent": True},
        "state_disk_read_only": value(bool(info.f_flag & os.ST_RDONLY)),
    }
