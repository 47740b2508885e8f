"""A leader with default settings and the hosts of an inventory: how long until all have spoken, and what they cost."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from opsconsole.cli.wiring import Place
from opsconsole.runtime import Runtime

LONGEST_S = 60.0
SETTLE_S = 5.0  # past the first ticks


@dataclass(frozen=True)
class Spent:
    """Seconds of the wall and of this process's CPU, from one instant to another."""

    wall_s: float
    cpu_s: float

    @classmethod
    def now(cls) -> Spent:
        return cls(time.perf_counter(), time.process_time())

    @classmethod
    def since(cls, began: Spent) -> Spent:
        now = cls.now()
        return cls(now.wall_s - began.wall_s, now.cpu_s - began.cpu_s)

    @property
    def percent(self) -> float:
        """Of one core."""
        return 100 * self.cpu_s / self.wall_s


def place_of(inventory: Path) -> Place:
    return Place.of(argparse.Namespace(inventory=str(inventory), cluster=None))


async def lead(place: Place, stream_s: float) -> tuple[Spent, Spent]:
    """Until every host has given a reading, and while they go on."""
    hosts = len(place.cluster.hosts)
    began, runtime = Spent.now(), place.leader()
    leading = asyncio.create_task(runtime.lead("bench"))
    try:
        await _until_all_have_spoken(runtime, hosts)
        connected = Spent.since(began)
        await asyncio.sleep(SETTLE_S)
        began = Spent.now()
        await asyncio.sleep(stream_s)
        return connected, Spent.since(began)
    finally:
        leading.cancel()
        await asyncio.wait([leading])


async def _until_all_have_spoken(runtime: Runtime, hosts: int) -> None:
    async with asyncio.timeout(LONGEST_S):
        while sum(reading.probe_at is not None for reading in runtime.readings.values()) < hosts:
            await asyncio.sleep(0.01)


def memory_mb(pid: int | str = "self", field: str = "VmRSS") -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024
