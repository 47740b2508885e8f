"""A stand-in for the pynvml module: sound GPUs whose calls can be made to fail, one by one or as a whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml as real

NVMLError = real.NVMLError


class StubNvml:
    """`broken`: (pci or "*", call) → what it raises instead of answering. Unknown calls are "not supported"."""

    NVMLError = real.NVMLError
    NVMLLibraryMismatchError = real.NVMLLibraryMismatchError
    NVML_MEMORY_LOCATION_SRAM = real.NVML_MEMORY_LOCATION_SRAM
    NVML_MEMORY_LOCATION_DRAM = real.NVML_MEMORY_LOCATION_DRAM
    nvmlMemory_v2 = real.nvmlMemory_v2

    def __init__(self, *pcis: str) -> None:
        self.pcis = list(pcis)
        self.broken: dict[tuple[str, str], Exception] = {}
        self.calls: list[str] = []

    def fail(self, call: str, error: Exception | int, pci: str = "*") -> None:
        self.broken[(pci, call)] = real.NVMLError(error) if isinstance(error, int) else error

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            pci = arguments[0] if arguments and isinstance(arguments[0], str) else "*"
            self.calls.append(name)
            for key in ((pci, name), ("*", name), (pci, "*")):
                if key in self.broken:
                    raise self.broken[key]
            if name not in ANSWERS:
                raise real.NVMLError(real.NVML_ERROR_NOT_SUPPORTED)
            return ANSWERS[name](self, *arguments)

        return call


def field_values(stub: StubNvml, gpu: str, ids: list[int]) -> list[Any]:
    return [
        SimpleNamespace(nvmlReturn=0 if one == 230 else 3, valueType=1, value=SimpleNamespace(uiVal=4)) for one in ids
    ]


def link_state(stub: StubNvml, gpu: str, link: int) -> int:
    if link >= 4:
        raise real.NVMLError(real.NVML_ERROR_INVALID_ARGUMENT)
    return int(link != 2)


ANSWERS: dict[str, Any] = {
    "nvmlInit": lambda stub: None,
    "nvmlSystemGetDriverVersion": lambda stub: b"580.95.05",
    "nvmlDeviceGetCount": lambda stub: len(stub.pcis),
    "nvmlDeviceGetHandleByIndex": lambda stub, index: stub.pcis[index],
    "nvmlDeviceGetHandleByPciBusId": lambda stub, pci: pci,
    "nvmlDeviceGetPciInfo": lambda stub, gpu: SimpleNamespace(busId=f"0000{gpu.upper()}"),
    "nvmlDeviceGetUUID": lambda stub, gpu: f"GPU-{gpu}",
    "nvmlDeviceGetName": lambda stub, gpu: "NVIDIA H100",
    "nvmlDeviceGetMemoryInfo": lambda stub, gpu: SimpleNamespace(total=80 << 30, used=1 << 30),
    "nvmlDeviceGetUtilizationRates": lambda stub, gpu: SimpleNamespace(gpu=97, memory=40),
    "nvmlDeviceGetTemperatureV": lambda stub, gpu, sensor: 61,
    "nvmlDeviceGetTemperature": lambda stub, gpu, sensor: 60,
    "nvmlDeviceGetTemperatureThreshold": lambda stub, gpu, which: 90,
    "nvmlDeviceGetPowerUsage": lambda stub, gpu: 612500,
    "nvmlDeviceGetEnforcedPowerLimit": lambda stub, gpu: 700000,
    "nvmlDeviceGetClockInfo": lambda stub, gpu, kind: 1980,
    "nvmlDeviceGetCurrentClocksEventReasons": lambda stub, gpu: 0x44,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda stub, gpu: 0x1,
    "nvmlDeviceGetTotalEccErrors": lambda stub, gpu, kind, counter: 10 * kind + counter,
    "nvmlDeviceGetRemappedRows": lambda stub, gpu: (1, 2, 1, 0),
    "nvmlDeviceGetNvLinkState": link_state,
    "nvmlDeviceGetFieldValues": field_values,
    "nvmlDeviceGetComputeRunningProcesses": lambda stub, gpu: [SimpleNamespace(pid=1, usedGpuMemory=None)],
    "nvmlDeviceGetComputeRunningProcesses_v2": lambda stub, gpu: [SimpleNamespace(pid=2, usedGpuMemory=5)],
    "nvmlDeviceGetGraphicsRunningProcesses": lambda stub, gpu: [],
}
