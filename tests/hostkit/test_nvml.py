"""NVML: four states, new calls before old ones, and one bad GPU that never takes the others down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pynvml
import pytest

from opsconsole.hostkit import pci, probe
from opsconsole.hostkit.nvml import Nvml
from opsconsole.hostkit.readings import CORE_KEYS
from opsconsole.hostkit.state import StateDir, open_state
from tests.hostkit.stub_nvml import StubNvml

ONE, TWO = "0000:10:00.0", "0000:20:00.0"
CODES = sorted(getattr(pynvml, name) for name in dir(pynvml) if name.startswith("NVML_ERROR_"))


def read(stub: StubNvml, listed: list[str] | None = None, now: float = 0.0) -> list[dict[str, Any]]:
    return Nvml(stub).read_all(listed if listed is not None else stub.pcis, now)


def test_a_sound_gpu() -> None:
    (gpu,) = read(StubNvml(ONE))
    readings = gpu["readings"]
    assert gpu["uuid"] == {"v": f"GPU-{ONE}"} and gpu["pci"] == ONE
    assert readings["memory_total_bytes"] == {"v": 80 << 30} and readings["power_w"] == {"v": 612.5}
    assert readings["clock_event_reasons"] == {"v": ["sw_power_cap", "hw_thermal_slowdown"]}
    assert readings["recovery_action"] == {"v": 4} and readings["temperature_c"] == {"v": 61}
    assert readings["nvlinks_up"] == {"v": 3} and readings["nvlinks_down"] == {"v": [2]}
    assert readings["row_remap_pending"] == {"v": True} and readings["ecc_aggregate_uncorrected"] == {"v": 11}
    assert readings["retired_pages_pending"] == {"absent": True}
    assert gpu["processes"] == {"v": [{"pid": 1, "gpu_memory_bytes": None}]}


@pytest.mark.parametrize("code", CODES)
def test_each_error_is_one_of_four_and_touches_nothing_else(code: int) -> None:
    stub = StubNvml(ONE)
    stub.fail("nvmlDeviceGetPowerUsage", code)
    readings = read(stub)[0]["readings"]
    expected = {3: "absent", 4: "denied"}.get(code, "failed")
    assert list(readings["power_w"]) == [expected]
    assert readings["utilization_percent"] == {"v": 97}


@pytest.mark.parametrize(
    "error", [pynvml.NVMLLibraryMismatchError("x"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x")]
)
def test_the_bindings_other_exceptions_are_failures(error: Exception) -> None:
    stub = StubNvml(ONE)
    stub.fail("nvmlDeviceGetName", error)
    (gpu,) = read(stub)
    assert list(gpu["name"]) == ["failed"] and gpu["readings"]["power_w"] == {"v": 612.5}


def test_old_calls_where_the_library_has_no_new_ones() -> None:
    stub = StubNvml(ONE)
    for name in ("TemperatureV", "CurrentClocksEventReasons", "MarginTemperature", "ComputeRunningProcesses"):
        stub.fail(f"nvmlDeviceGet{name}", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    stub.fail("nvmlDeviceGetComputeRunningProcesses_v3", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    (gpu,) = read(stub)
    assert gpu["readings"]["temperature_c"] == {"v": 60}
    assert gpu["readings"]["temperature_margin_c"] == {"v": 30}
    assert gpu["readings"]["clock_event_reasons"] == {"v": ["gpu_idle"]}
    assert gpu["processes"] == {"v": [{"pid": 2, "gpu_memory_bytes": 5}]}


def test_neither_call_is_a_failure_not_an_absence() -> None:
    stub = StubNvml(ONE)
    for name in ("TemperatureV", "Temperature"):
        stub.fail(f"nvmlDeviceGet{name}", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    assert list(read(stub)[0]["readings"]["temperature_c"]) == ["failed"]


@pytest.mark.parametrize("code", [15, 16, 999])
def test_a_lost_gpu_fails_alone(code: int) -> None:
    stub = StubNvml(ONE, TWO)
    stub.fail("nvmlDeviceGetHandleByPciBusId", code, pci=ONE)
    stub.fail("nvmlDeviceGetHandleByIndex", code)
    lost, sound = read(stub)
    assert all(list(lost["readings"][key]) == ["failed"] for key in CORE_KEYS)
    assert list(lost["processes"]) == ["failed"]
    assert sound["readings"]["power_w"] == {"v": 612.5}


def test_a_gpu_that_fails_in_every_call_is_not_cold_and_idle() -> None:
    stub = StubNvml(ONE)
    stub.fail("*", 15, pci=ONE)
    stub.broken[(ONE, "nvmlDeviceGetHandleByPciBusId")] = pynvml.NVMLError(15)
    (gpu,) = read(stub)
    assert not any("v" in reading for reading in gpu["readings"].values())


def test_may_not_list_processes_is_not_none() -> None:
    stub = StubNvml(ONE)
    stub.fail("nvmlDeviceGetComputeRunningProcesses", pynvml.NVML_ERROR_NO_PERMISSION)
    assert list(read(stub)[0]["processes"]) == ["denied"]


def test_slow_readings_are_kept_and_say_their_age() -> None:
    stub = StubNvml(ONE)
    nvml = Nvml(stub)
    nvml.read_all([ONE], 0.0)
    stub.calls.clear()
    readings = nvml.read_all([ONE], 4.0)[0]["readings"]
    assert readings["power_limit_w"] == {"v": 700.0, "age_s": 4.0} and "age_s" not in readings["power_w"]
    assert "nvmlDeviceGetEnforcedPowerLimit" not in stub.calls
    assert "age_s" not in nvml.read_all([ONE], 10.0)[0]["readings"]["power_limit_w"]


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return open_state(str(tmp_path / "state"))


def whole(state: StateDir, stub: StubNvml, listed: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.delenv("OPSCONSOLE_FAKE_NVML", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setitem(sys.modules, "pynvml", stub)
    monkeypatch.setattr(probe, "pci_gpus", lambda: listed)
    return probe.Reader(state).read()


def test_the_driver_shows_fewer_than_the_bus(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = StubNvml(ONE)
    stub.fail("nvmlDeviceGetHandleByPciBusId", 28, pci=TWO)
    found = whole(state, stub, [ONE, TWO], monkeypatch)
    assert [gpu["pci"] for gpu in found["gpus"]] == [ONE, TWO]
    assert list(found["gpus"][1]["readings"]["temperature_c"]) == ["failed"]


def test_a_gpu_gone_from_the_bus_keeps_its_slot_and_uuid(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3-24."""
    whole(state, StubNvml(ONE, TWO), [ONE, TWO], monkeypatch)
    gpus = whole(state, StubNvml(TWO), [TWO], monkeypatch)["gpus"]
    assert [(gpu["slot"], gpu["pci"]) for gpu in gpus] == [(0, ONE), (1, TWO)]
    assert gpus[0]["uuid"] == {"v": f"GPU-{ONE}", "last_known": True}
    assert gpus[0]["readings"]["power_w"] == {"failed": "gone from the PCI bus"}


def test_a_new_gpu_takes_the_next_slot(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(state, StubNvml(TWO), [TWO], monkeypatch)
    gpus = whole(state, StubNvml(ONE, TWO), [ONE, TWO], monkeypatch)["gpus"]
    assert [(gpu["slot"], gpu["pci"]) for gpu in gpus] == [(0, TWO), (1, ONE)]


@pytest.mark.parametrize("code", [9, 12, 18, 999])
def test_a_driver_that_does_not_answer_fails_every_gpu(
    state: StateDir, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    stub = StubNvml(ONE)
    stub.fail("nvmlInit", code)
    found = whole(state, stub, [ONE, TWO], monkeypatch)
    assert found["source"] == "none" and list(found["driver"]) == ["failed"] and found["errors"]
    assert [list(gpu["processes"]) for gpu in found["gpus"]] == [["failed"], ["failed"]]


def test_a_host_without_gpus_has_no_driver_and_no_fault(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = StubNvml()
    stub.fail("nvmlInit", 12)
    found = whole(state, stub, [], monkeypatch)
    assert found["driver"] == {"absent": True} and found["gpus"] == []


def test_nvidia_smi_takes_over(state: StateDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An old driver: it rejects one field after the other, and warns below its rows."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "query = next(a for a in sys.argv if a.startswith('--query')).split('=')[1].split(',')\n"
        "known = {'uuid': 'GPU-x', 'pci.bus_id': '00000000:10:00.0', 'name': 'Old, card', 'memory.total': '1024',\n"
        "         'memory.used': '[N/A]', 'driver_version': '470.1', 'temperature.gpu': '[Unknown Error]'}\n"
        "apps = {'gpu_uuid': 'GPU-x', 'pid': '1', 'used_memory': '[N/A]', 'process_name': 'a, b'}\n"
        "table = apps if 'gpu_uuid' in query else known\n"
        "for field in query:\n"
        "    if field not in table:\n"
        "        print(f'Field \"{field}\" is not a valid field to query.'); sys.exit(2)\n"
        "print(', '.join(table[f] for f in query))\n"
        "if table is known: print('WARNING: infoROM is corrupted at gpu 0000:10:00.0'); sys.exit(14)\n"
    )
    tool.chmod(0o755)
    stub = StubNvml()
    stub.fail("nvmlInit", 12)
    monkeypatch.setitem(sys.modules, "pynvml", stub)
    monkeypatch.setenv("PATH", str(tool.parent))
    monkeypatch.delenv("OPSCONSOLE_FAKE_NVML", raising=False)
    monkeypatch.setattr(probe, "pci_gpus", lambda: [ONE])
    found = probe.Reader(state).read()
    (gpu,) = found["gpus"]
    assert found["source"] == "nvidia-smi" and found["driver"] == {"v": "470.1"}
    assert gpu["name"] == {"v": "Old, card"} and gpu["readings"]["memory_total_bytes"] == {"v": 1 << 30}
    assert gpu["readings"]["memory_used_bytes"] == {"absent": True}
    assert gpu["readings"]["temperature_c"] == {"failed": "Unknown Error"}
    assert gpu["readings"]["power_w"] == {"absent": True}
    assert gpu["processes"]["v"][0]["pid"] == 1 and gpu["processes"]["v"][0]["gpu_memory_bytes"] is None
    assert any("infoROM" in text for text in found["errors"])


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("00000000:9B:00.0", ONE.replace("10", "9b")),
        ("0000:9b:00", "0000:9b:00.0"),
        ("9b:00.1", "0000:9b:00.1"),
        ("00018:01:00.0", "0018:01:00.0"),
        ("?", "?"),
    ],
)
def test_bus_addresses_have_one_form(text: str, normal: str) -> None:
    assert pci.normal_address(text) == normal


def test_audio_and_switches_are_no_gpus(tmp_path: Path) -> None:
    for name, vendor, kind in (
        ("0000:10:00.0", "0x10de", "0x030200"),
        ("0000:10:00.1", "0x10de", "0x040300"),
        ("0000:11:00.0", "0x10de", "0x068000"),
        ("0000:12:00.0", "0x1002", "0x030000"),
        ("0000:0f:00.0", "0x10de", "0x030000"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor + "\n")
        (tmp_path / name / "class").write_text(kind + "\n")
    assert pci.pci_gpus(str(tmp_path)) == ["0000:0f:00.0", "0000:10:00.0"]
    assert pci.pci_gpus(str(tmp_path / "none")) is None
