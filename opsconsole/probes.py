"""A probe as its host sent it. Of hundreds per second people see a few whole; of the others a figure or two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

_whole = msgspec.json.Decoder(dict[str, Any]).decode


class Figures(msgspec.Struct):
    memory_used_bytes: Any = None
    utilization_percent: Any = None


class GpuSaid(msgspec.Struct):
    """What the machine looks at, each a READING of the protocol: what rule 26 asks, and how busy it is. All else of a
    probe is for people."""

    slot: Any = None
    uuid: Any = None
    processes: Any = None
    readings: Figures = msgspec.field(default_factory=Figures)


class ProbeSaid(msgspec.Struct):
    boot_id: Any = None
    uptime_s: Any = None
    gpus: list[GpuSaid] = []


probe_said = msgspec.json.Decoder(ProbeSaid).decode


class Probe(Mapping[str, Any]):
    """The fields of a probe, decoded when somebody looks into them."""

    def __init__(self, body: bytes, said: ProbeSaid | None = None) -> None:
        """`said`: the part that is decoded already."""
        self.body = body
        if said is not None:
            self.busy = _busy(said)

    @cached_property
    def _said(self) -> dict[str, Any]:
        return _whole(self.body)

    def __getitem__(self, key: str) -> Any:
        return self._said[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)

    def __bool__(self) -> bool:
        """There is one, whatever it says."""
        return True

    def forget(self) -> None:
        """What was decoded is some times as large: of a thousand hosts it would fill the memory."""
        self.__dict__.pop("_said", None)

    @cached_property
    def calm(self) -> bool:
        """Not one reading failed or was denied, and there is a driver: so its text says, undecoded."""
        body = self.body
        return b'"driver":{"v"' in body and b'"failed":' not in body and b'"denied":' not in body

    @cached_property
    def busy(self) -> list[tuple[Any, Any]]:
        return _busy(probe_said(self.body))


def _busy(said: ProbeSaid) -> list[tuple[Any, Any]]:
    return [(gpu.slot, gpu.readings.utilization_percent) for gpu in said.gpus]


def is_calm(probe: Mapping[str, Any] | None) -> bool:
    """Known, without a look into it, to say of no failure. False: look."""
    return isinstance(probe, Probe) and probe.calm


def utilisation(probe: Mapping[str, Any] | None) -> list[tuple[Any, Any]]:
    """Slot and READING of each GPU that it tells of."""
    if isinstance(probe, Probe):
        return probe.busy
    return [
        (gpu.get("slot"), gpu.get("readings", {}).get("utilization_percent")) for gpu in (probe or {}).get("gpus", [])
    ]
