"""Readings through NVML. One GPU that is lost or needs a reset never takes the others down.

Calls marked for removal with CUDA 14 come second: the new one is tried first, the old one where the library has no
such function. An old library that lacks both is `failed`, not `absent`: a newer driver could tell.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from .pci import normal_address
from .readings import Reading, absent, all_of, denied, failed, unreadable_gpu, value

Values = Dict[str, Any]
Question = Tuple[Tuple[str, ...], Callable[[Any, Any], Values]]

NOT_SUPPORTED, NO_PERMISSION, INVALID_ARGUMENT, FUNCTION_NOT_FOUND, VERSION_MISMATCH = 3, 4, 2, 13, 25
RECOVERY_ACTION_FIELD = 230
MAX_NVLINKS = 18
EVENT_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
NVLINK_ERROR_FIELDS = {
    "nvlink_crc_flit_errors": 38,
    "nvlink_crc_data_errors": 45,
    "nvlink_replay_errors": 52,
    "nvlink_recovery_errors": 59,
}


def as_reading(nv: Any, error: Exception) -> Reading:
    """Which of the four an exception means."""
    if isinstance(error, nv.NVMLError):
        code = int(getattr(error, "value", 999))
        text = f"{error} (NVML {code})"
        if code == NOT_SUPPORTED:
            return absent()
        return denied(text) if code == NO_PERMISSION else failed(text)
    return failed(f"{type(error).__name__}: {error}")


def expected_errors(nv: Any) -> tuple[type[Exception], ...]:
    """What the binding raises besides NVMLError: another library version, names in no UTF-8, an absent symbol."""
    return (nv.NVMLError, nv.NVMLLibraryMismatchError, UnicodeDecodeError, AttributeError, OSError, ValueError)


def newest(nv: Any, *calls: Callable[[], Any]) -> Any:
    """The first call that this library knows. Raises what the last one raises."""
    for call in calls[:-1]:
        try:
            return call()
        except nv.NVMLError as error:
            if error.value not in (FUNCTION_NOT_FOUND, VERSION_MISMATCH, INVALID_ARGUMENT):
                raise
        except AttributeError:
            continue  # an old binding
    return calls[-1]()


def text(found: Any) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


# -- one question each: a dictionary of values, or the library's exception


def memory(nv: Any, gpu: Any) -> Values:
    info = newest(
        nv,
        lambda: nv.nvmlDeviceGetMemoryInfo(gpu, version=nv.nvmlMemory_v2),  # `used` without the driver's reserve
        lambda: nv.nvmlDeviceGetMemoryInfo(gpu),
    )
    return {"memory_total_bytes": int(info.total), "memory_used_bytes": int(info.used)}


def utilization(nv: Any, gpu: Any) -> Values:
    rates = nv.nvmlDeviceGetUtilizationRates(gpu)
    return {"utilization_percent": int(rates.gpu), "memory_utilization_percent": int(rates.memory)}


def temperature(nv: Any, gpu: Any) -> Values:
    found = newest(nv, lambda: nv.nvmlDeviceGetTemperatureV(gpu, 0), lambda: nv.nvmlDeviceGetTemperature(gpu, 0))
    return {"temperature_c": int(found)}


def temperature_margin(nv: Any, gpu: Any) -> Values:
    found = newest(
        nv,
        lambda: nv.nvmlDeviceGetMarginTemperature(gpu),
        lambda: nv.nvmlDeviceGetTemperatureThreshold(gpu, 1) - temperature(nv, gpu)["temperature_c"],
    )
    return {"temperature_margin_c": int(found)}


def event_reasons(nv: Any, gpu: Any) -> Values:
    mask = newest(
        nv,
        lambda: nv.nvmlDeviceGetCurrentClocksEventReasons(gpu),
        lambda: nv.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
    )
    return {"clock_event_reasons": [name for bit, name in EVENT_REASONS.items() if int(mask) & bit]}


def ecc_location(nv: Any, gpu: Any) -> Values:
    """By location: new cards answer per location, old ones only in the detailed call that goes with CUDA 14."""

    def by_location() -> tuple[int, int]:
        sram, dram = nv.NVML_MEMORY_LOCATION_SRAM, nv.NVML_MEMORY_LOCATION_DRAM
        return (
            nv.nvmlDeviceGetMemoryErrorCounter(gpu, 1, 1, sram),
            nv.nvmlDeviceGetMemoryErrorCounter(gpu, 1, 1, dram),
        )

    def detailed() -> tuple[int, int]:
        found = nv.nvmlDeviceGetDetailedEccErrors(gpu, 1, 1)
        return found.l1Cache + found.l2Cache + found.registerFile, found.deviceMemory

    sram_errors, dram_errors = newest(nv, by_location, detailed)
    return {"ecc_aggregate_uncorrected_sram": int(sram_errors), "ecc_aggregate_uncorrected_dram": int(dram_errors)}


def remapped_rows(nv: Any, gpu: Any) -> Values:
    corrected, uncorrected, pending, failure = nv.nvmlDeviceGetRemappedRows(gpu)
    return {
        "rows_remapped_corrected": int(corrected),
        "rows_remapped_uncorrected": int(uncorrected),
        "row_remap_pending": bool(pending),
        "row_remap_failed": bool(failure),
    }


def remap_spare(nv: Any, gpu: Any) -> Values:
    """Banks by how many spare rows they have left."""
    found = nv.nvmlDeviceGetRowRemapperHistogram(gpu)
    return {
        "remap_spare_banks": {name: int(getattr(found, name)) for name in ("max", "high", "partial", "low", "none")}
    }


def retired_pages(nv: Any, gpu: Any) -> Values:
    return {
        "retired_pages_single_bit": len(nv.nvmlDeviceGetRetiredPages(gpu, 0)),
        "retired_pages_double_bit": len(nv.nvmlDeviceGetRetiredPages(gpu, 1)),
        "retired_pages_pending": bool(nv.nvmlDeviceGetRetiredPagesPendingStatus(gpu)),
    }


def nvlinks(nv: Any, gpu: Any) -> Values:
    """Which links are up. A card without any says so at link 0; the first link that does not exist ends the count."""
    up: list[int] = []
    down: list[int] = []
    for link in range(MAX_NVLINKS):
        try:
            (up if nv.nvmlDeviceGetNvLinkState(gpu, link) else down).append(link)
        except nv.NVMLError as error:
            if link and error.value in (NOT_SUPPORTED, INVALID_ARGUMENT):
                break
            raise
    return {"nvlinks_up": len(up), "nvlinks_down": down}


def pcie(nv: Any, gpu: Any) -> Values:
    return {
        "pcie_generation": int(nv.nvmlDeviceGetCurrPcieLinkGeneration(gpu)),
        "pcie_generation_max": int(nv.nvmlDeviceGetMaxPcieLinkGeneration(gpu)),
        "pcie_width": int(nv.nvmlDeviceGetCurrPcieLinkWidth(gpu)),
        "pcie_width_max": int(nv.nvmlDeviceGetMaxPcieLinkWidth(gpu)),
    }


def mig(nv: Any, gpu: Any) -> Values:
    current = bool(nv.nvmlDeviceGetMigMode(gpu)[0])
    return {"mig_enabled": current, "mig_instances": mig_instances(nv, gpu) if current else []}


def mig_instances(nv: Any, gpu: Any) -> list[str]:
    """UUIDs; instance numbers may have holes."""
    found = []
    for index in range(int(nv.nvmlDeviceGetMaxMigDeviceCount(gpu))):
        try:
            found.append(text(nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index))))
        except nv.NVMLError as error:
            if error.value not in (6, INVALID_ARGUMENT):  # 6: no instance of this number
                raise
    return found


FAST: list[Question] = [
    (("memory_total_bytes", "memory_used_bytes"), memory),
    (("utilization_percent", "memory_utilization_percent"), utilization),
    (("temperature_c",), temperature),
    (("temperature_margin_c",), temperature_margin),
    (("power_w",), lambda nv, gpu: {"power_w": nv.nvmlDeviceGetPowerUsage(gpu) / 1000}),
    (("sm_clock_mhz",), lambda nv, gpu: {"sm_clock_mhz": int(nv.nvmlDeviceGetClockInfo(gpu, 1))}),
    (("clock_event_reasons",), event_reasons),
    (
        ("ecc_volatile_uncorrected",),
        lambda nv, gpu: {"ecc_volatile_uncorrected": int(nv.nvmlDeviceGetTotalEccErrors(gpu, 1, 0))},
    ),
]
SLOW: list[Question] = [
    (("power_limit_w",), lambda nv, gpu: {"power_limit_w": nv.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000}),
    (("sm_clock_max_mhz",), lambda nv, gpu: {"sm_clock_max_mhz": int(nv.nvmlDeviceGetMaxClockInfo(gpu, 1))}),
    (("memory_clock_mhz",), lambda nv, gpu: {"memory_clock_mhz": int(nv.nvmlDeviceGetClockInfo(gpu, 2))}),
    (("performance_state",), lambda nv, gpu: {"performance_state": f"P{nv.nvmlDeviceGetPerformanceState(gpu)}"}),
    (
        ("ecc_volatile_corrected",),
        lambda nv, gpu: {"ecc_volatile_corrected": int(nv.nvmlDeviceGetTotalEccErrors(gpu, 0, 0))},
    ),
    (
        ("ecc_aggregate_corrected",),
        lambda nv, gpu: {"ecc_aggregate_corrected": int(nv.nvmlDeviceGetTotalEccErrors(gpu, 0, 1))},
    ),
    (
        ("ecc_aggregate_uncorrected",),
        lambda nv, gpu: {"ecc_aggregate_uncorrected": int(nv.nvmlDeviceGetTotalEccErrors(gpu, 1, 1))},
    ),
    (("ecc_aggregate_uncorrected_sram", "ecc_aggregate_uncorrected_dram"), ecc_location),
    (
        ("rows_remapped_corrected", "rows_remapped_uncorrected", "row_remap_pending", "row_remap_failed"),
        remapped_rows,
    ),
    (("remap_spare_banks",), remap_spare),
    (("retired_pages_single_bit", "retired_pages_double_bit", "retired_pages_pending"), retired_pages),
    (("nvlinks_up", "nvlinks_down"), nvlinks),
    (("pcie_generation", "pcie_generation_max", "pcie_width", "pcie_width_max"), pcie),
    (("pcie_replays",), lambda nv, gpu: {"pcie_replays": int(nv.nvmlDeviceGetPcieReplayCounter(gpu))}),
    (("mig_enabled", "mig_instances"), mig),
    (("serial",), lambda nv, gpu: {"serial": text(nv.nvmlDeviceGetSerial(gpu))}),
    (("vbios",), lambda nv, gpu: {"vbios": text(nv.nvmlDeviceGetVbiosVersion(gpu))}),
    (("persistence_mode",), lambda nv, gpu: {"persistence_mode": bool(nv.nvmlDeviceGetPersistenceMode(gpu))}),
]


def ask(nv: Any, gpu: Any, questions: list[Question], mark: Callable[[str], None]) -> dict[str, Reading]:
    """Each question alone: what one call does never touches another's answer."""
    found: dict[str, Reading] = {}
    for keys, call in questions:
        mark(keys[0])
        try:
            answers = call(nv, gpu)
        except expected_errors(nv) as error:
            found.update(all_of(keys, as_reading(nv, error)))
        else:
            found.update({key: value(answers[key]) for key in keys})
    return found


def field_readings(nv: Any, gpu: Any, fields: dict[str, int]) -> dict[str, Reading]:
    """Several fields in one call; each brings its own result. A field this driver does not know is absent."""
    try:
        answers = nv.nvmlDeviceGetFieldValues(gpu, list(fields.values()))
    except expected_errors(nv) as error:
        return all_of(fields, as_reading(nv, error))
    return {key: field_value(nv, answer) for key, answer in zip(fields, answers)}


def field_value(nv: Any, answer: Any) -> Reading:
    code = int(answer.nvmlReturn)
    if code in (NOT_SUPPORTED, INVALID_ARGUMENT):
        return absent()
    if code:
        return as_reading(nv, nv.NVMLError(code))
    kinds = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
    return value(getattr(answer.value, kinds.get(int(answer.valueType), "ullVal")))


def processes(nv: Any, gpu: Any) -> Reading:
    """[{pid, gpu_memory_bytes}] of compute and graphics. "May not list them" never becomes "there are none"."""
    found: dict[int, int | None] = {}
    for kind in ("Compute", "Graphics", "MPSCompute"):
        try:
            listed = newest(nv, *process_calls(nv, gpu, kind))
        except expected_errors(nv) as error:
            reading = as_reading(nv, error)
            if "absent" in reading or (kind == "MPSCompute" and "failed" in reading):
                continue
            return reading
        for entry in listed:
            used = entry.usedGpuMemory
            found[int(entry.pid)] = None if used is None else max(int(used), found.get(int(entry.pid)) or 0)
    return value([{"pid": pid, "gpu_memory_bytes": used} for pid, used in sorted(found.items())])


def process_calls(nv: Any, gpu: Any, kind: str) -> list[Callable[[], Any]]:
    names = [f"nvmlDeviceGet{kind}RunningProcesses{version}" for version in ("", "_v3", "_v2")]
    return [lambda name=name: getattr(nv, name)(gpu) for name in names]  # type: ignore[misc]


def text_reading(nv: Any, call: Callable[[], Any]) -> Reading:
    try:
        return value(text(call()))
    except expected_errors(nv) as error:
        return as_reading(nv, error)


class Nvml:
    """An open driver. `mark` is told which call comes next, so that a hanging one can be named."""

    def __init__(self, nv: Any, mark: Callable[[str], None] = lambda name: None) -> None:
        self.nv = nv
        self.mark = mark
        mark("nvmlInit")
        nv.nvmlInit()
        self._slow: dict[str, tuple[float, dict[str, Reading]]] = {}

    def driver(self) -> Reading:
        self.mark("driver version")
        return text_reading(self.nv, self.nv.nvmlSystemGetDriverVersion)

    def read_all(self, listed: list[str] | None, now: float, slow_every_s: float = 10.0) -> list[dict[str, Any]]:
        """Every GPU that the bus or the driver lists. Slow-moving readings are up to `slow_every_s` old (`age_s`)."""
        handles = self._handles(listed)
        return [self._read_one(pci, handle, now, slow_every_s) for pci, handle in sorted(handles.items())]

    def _handles(self, listed: list[str] | None) -> dict[str, Any]:
        """By PCI address, because indexes shift when a GPU is lost. The value may be the exception instead."""
        nv, found = self.nv, {}
        for pci in listed or []:
            self.mark(f"handle of {pci}")
            try:
                found[pci] = nv.nvmlDeviceGetHandleByPciBusId(pci)
            except expected_errors(nv) as error:
                found[pci] = error
        for index in range(int(nv.nvmlDeviceGetCount())):
            try:
                handle = nv.nvmlDeviceGetHandleByIndex(index)
                found.setdefault(normal_address(text(nv.nvmlDeviceGetPciInfo(handle).busId)), handle)
            except expected_errors(nv) as error:
                if listed is None:
                    found[f"index-{index}"] = error  # no bus to compare with: all we have is a number
        return found

    def _read_one(self, pci: str, handle: Any, now: float, slow_every_s: float) -> dict[str, Any]:
        nv = self.nv
        if isinstance(handle, Exception):
            return unreadable_gpu(pci, as_reading(nv, handle))

        def mark(name: str) -> None:
            self.mark(f"{name} of {pci}")

        return {
            "pci": pci,
            "uuid": text_reading(nv, lambda: nv.nvmlDeviceGetUUID(handle)),
            "name": text_reading(nv, lambda: nv.nvmlDeviceGetName(handle)),
            "readings": {
                **ask(nv, handle, FAST, mark),
                **field_readings(nv, handle, {"recovery_action": RECOVERY_ACTION_FIELD}),
                **self._slow_ones(pci, handle, now, slow_every_s, mark),
            },
            "processes": processes(nv, handle),
        }

    def _slow_ones(
        self, pci: str, handle: Any, now: float, every_s: float, mark: Callable[[str], None]
    ) -> dict[str, Reading]:
        known = self._slow.get(pci)
        if known is None or now - known[0] >= every_s:
            found = ask(self.nv, handle, SLOW, mark)
            found.update(field_readings(self.nv, handle, NVLINK_ERROR_FIELDS))
            self._slow[pci] = (now, found)
            return found
        age = round(now - known[0], 1)
        return {key: {**reading, "age_s": age} for key, reading in known[1].items()}
