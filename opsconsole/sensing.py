"""What hosts say, as observations: only what changed, and never a guess from silence."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import (
    HostSeen,
    HostStale,
    HostUnreachable,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    Observation,
)

STALE_INTERVALS = 5
MIB = 1 << 20
ALIVE = ("starting", "running", "stopping", "exited", "unknown")
KERNEL_LINES = 50


@dataclass
class HostReading:
    """The newest that a host has said. `probe_at` is `time.monotonic()` seconds; None: nothing yet."""

    boot_id: str = ""
    probe: dict[str, Any] | None = None
    probe_at: float | None = None
    wall_ms: int = 0
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by token, ours only
    told: dict[tuple[str, str], None] = field(default_factory=dict)  # facts of runs, while the link lasts
    kernel: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KERNEL_LINES))
    seen: HostSeen | None = None  # the last one sent, while it is true
    stale: bool = False


@dataclass
class Sensing:
    """Feed it with what links report; it calls `emit` with observations. `free_memory_mib` is rule 26's."""

    store_id: str
    gpus: Callable[[str], int]  # GPUs that the inventory expects of a host
    emit: Callable[[Iterable[Observation]], None]
    free_memory_mib: int = 1024
    interval_s: float = 2.0
    readings: dict[str, HostReading] = field(default_factory=dict)

    def of(self, host: str) -> HostReading:
        return self.readings.setdefault(host, HostReading())

    def connected(self, host: str, hello: dict[str, Any]) -> None:
        """The host answers. Its runs are told at once; it counts as seen with its first probe."""
        reading = self.of(host)
        reading.boot_id, reading.seen, reading.stale = str(hello.get("boot_id", "")), None, False
        reading.probe_at = None
        reading.runs.clear()
        reading.told.clear()
        facts: list[Observation] = []
        for run in hello.get("runs", []):
            facts += self.run(host, run)
        self.emit(facts)

    def disconnected(self, host: str, why: str) -> None:
        self.of(host).seen = None
        self.emit([HostUnreachable(HostName(host), why)])

    def line(self, host: str, fields: dict[str, Any]) -> None:
        """One unasked line of the agent."""
        event = fields.get("event")
        if event == "probe" and isinstance(fields.get("probe"), dict):
            self.probe(host, fields["probe"])
        elif event == "run" and isinstance(fields.get("run"), dict):
            facts = self.run(host, fields["run"])
            self.emit([*facts, *self._seen(host)])
        elif event == "kernel":
            self.of(host).kernel.extend(fields.get("lines", []))

    def probe(self, host: str, probe: dict[str, Any]) -> None:
        reading = self.of(host)
        reading.probe, reading.probe_at, reading.stale = probe, time.monotonic(), False
        reading.wall_ms = time.time_ns() // 1_000_000
        reading.boot_id = str(probe.get("boot_id") or reading.boot_id)
        self.emit(self._seen(host))

    def tick(self) -> None:
        """Readings that have become too old are said to be (rule 26)."""
        limit = STALE_INTERVALS * self.interval_s
        for host, reading in self.readings.items():
            if (
                reading.seen is not None
                and reading.probe_at is not None
                and time.monotonic() - reading.probe_at > limit
            ):
                reading.seen, reading.stale = None, True
                self.emit([HostStale(HostName(host))])

    # -- translating -----------------------------------------------------------------------------------------------

    def run(self, host: str, run: dict[str, Any]) -> list[Observation]:
        """A RUN of the protocol as facts: everything up to its phase, since any of it may be news."""
        if run.get("store") != self.store_id:
            return []
        token, reading = RunId(str(run["token"])), self.of(host)
        before = reading.runs.get(token, {}).get("phase")
        reading.runs[token] = run
        if before == run.get("phase"):
            return []
        facts = [fact for fact in run_facts(HostName(host), token, run) if _kind(fact) not in reading.told]
        reading.told |= dict.fromkeys(map(_kind, facts))
        return facts

    def _seen(self, host: str) -> list[Observation]:
        """What rule 26 needs to know of the host, when it is news."""
        reading = self.of(host)
        if reading.probe is None or reading.probe_at is None:
            return []
        seen = host_seen(HostName(host), reading, self.gpus(host), self.free_memory_mib * MIB)
        if seen == reading.seen:
            return []
        reading.seen = seen
        return [seen]


def run_facts(host: HostName, token: RunId, run: dict[str, Any]) -> Iterable[Observation]:
    """`unknown` with processes left says nothing: they may live. Without any, the run is gone and nobody knows how."""
    phase = run.get("phase")
    if phase == "never_started":
        yield MemberNeverStarted(token, host, str(run.get("error") or "it did not start"))
        return
    if phase in ("running", "stopping", "exited", "released", "unknown"):
        yield MemberStarted(token, host, int(float(run.get("ran_s") or 0) * 1000))
    gone_unknown = phase == "unknown" and run.get("pids") == 0
    if phase in ("exited", "released") or gone_unknown:
        ending = run.get("exit") or {}
        yield MemberExited(token, host, ending.get("code"), ending.get("signal"), bool(run.get("signalled")))
    if phase == "released" or gone_unknown:
        yield MemberReleased(token, host)


def _kind(fact: Observation) -> tuple[str, str]:
    """A run's fact is told once over a link, whatever its figures say by then."""
    return type(fact).__name__, getattr(fact, "run", "")


def value(reading: Any) -> Any:
    """The value of a READING, None in its three other states."""
    return reading.get("v") if isinstance(reading, dict) else None


def host_seen(host: HostName, reading: HostReading, expected: int, free_bytes: int) -> HostSeen:
    """Unknown is not zero: a slot whose processes or memory cannot be read is unfit, not free."""
    gpus = (reading.probe or {}).get("gpus", [])
    ids = [""] * expected
    foreign, unfit = 0, 0
    known = dict.fromkeys(range(expected), False)
    for gpu in gpus:
        slot = int(gpu.get("slot", -1))
        if slot not in known:
            continue
        known[slot] = True
        ids[slot] = str(value(gpu.get("uuid")) or "")
        processes = value(gpu.get("processes"))
        if processes is None or not ids[slot]:
            unfit |= 1 << slot
            continue
        ours = any(p.get("run") in reading.runs for p in processes)
        if any(p.get("run") not in reading.runs and not p.get("system") for p in processes):
            foreign |= 1 << slot
        used = value(gpu.get("readings", {}).get("memory_used_bytes"))
        if not ours and (used is None or used >= free_bytes) and not foreign >> slot & 1:
            unfit |= 1 << slot
    for slot, there in known.items():
        unfit |= 0 if there else 1 << slot
    alive = any(run.get("phase") in ALIVE for run in reading.runs.values())
    readable = all(value(gpu.get("processes")) is not None for gpu in gpus)
    return HostSeen(host, reading.boot_id, tuple(ids), foreign, unfit, not alive and not foreign and readable)
