"""The newest that each host has said: foreign data, kept as it came and looked at with care."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgspec

from opsconsole.probes import GpuSaid, Probe, ProbeSaid, probe_said
from scheduler_core.observations import HostSeen, Observation

DRIFT = 2e-4  # two clocks differ by less in a second, disciplined or not
KERNEL_LINES = 50
KERNEL = "/kernel"  # behind the name of a host, which has no slash: where the store keeps its kernel's lines
LONGEST_TEXT = 500


@dataclass
class Delay:
    """How long lines of one link wait on their way, in seconds: our clock less the host's, above the least so far."""

    least_s: float = math.inf
    at: float = 0.0

    def of(self, uptime_s: Any, now: float) -> float:
        """0 where the host does not tell when it wrote the line."""
        if not is_number(uptime_s):
            return 0.0
        apart_s: float = now - uptime_s
        self.least_s, self.at = min(apart_s, self.least_s + DRIFT * (now - self.at)), now
        return apart_s - self.least_s


_whole = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass
class HostReading:
    """The newest that a host has said. `probe_at`: `time.monotonic()` when the host read it; None: nothing yet."""

    boot_id: str = ""
    body: bytes = b""  # the probe as it was sent; empty: none yet
    probe_at: float | None = None
    wall_ms: int = 0
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by token, whoever started them
    told: dict[tuple[str, str], None] = field(default_factory=dict)  # facts of runs, while the link lasts
    kernel: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KERNEL_LINES))
    kernel_boot: str = ""  # the boot that these lines are of
    kernel_at: int = 0  # wall time (ms) of their row in the store, as it was read last
    kernel_heard: int = 0  # grows with each change of these lines
    delay: Delay = field(default_factory=Delay)
    seen: HostSeen | None = None  # the last one sent, while it is true
    stale: bool = False
    machine: str = ""  # its id, empty while it is not known
    refused: str = ""  # why what answers does not count as this host
    untold: list[Observation] | None = None  # of its runs, while nobody knows whether it is the machine that has them
    _probe: Probe | None = None

    @property
    def gpus(self) -> list[GpuSaid]:
        """What the newest probe says of them."""
        return probe_said(self.body).gpus if self.body else []

    def take(self, body: bytes, said: ProbeSaid) -> None:
        """A newer probe, of which this is decoded."""
        self.body, self._probe = body, Probe(body, said)

    @property
    def probe(self) -> Probe | None:
        """The newest whole one, the same object as long as there is no newer."""
        if self._probe is None or self._probe.body is not self.body:
            self._probe = Probe(self.body) if self.body else None
        return self._probe

    def heard_kernel(self, lines: Any, boot_id: str) -> None:
        """More lines of the kernel's log. Those of an earlier boot are of no interest any more."""
        more = dicts(lines)
        if boot_id != self.kernel_boot:
            self.kernel.clear()
            self.kernel_boot = boot_id
        elif not more:
            return
        self.kernel.extend(more)
        self.kernel_heard += 1

    def kernel_row(self) -> bytes:
        """For the store."""
        return msgspec.json.encode({"boot_id": self.kernel_boot, "lines": list(self.kernel)})

    def take_kernel(self, wall_ms: int, row: bytes) -> None:
        said = _whole(row)
        self.kernel.clear()
        self.heard_kernel(said.get("lines"), text_of(said.get("boot_id")))
        self.kernel_at = wall_ms


def is_number(said: Any) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said)


def text_of(said: Any) -> str:
    """Foreign text as data: no control characters, of bounded length."""
    text = str(said or "")[:LONGEST_TEXT]
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def dicts(items: Any) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def value(reading: Any) -> Any:
    """The value of a READING, None in its three other states."""
    return reading.get("v") if isinstance(reading, dict) else None
