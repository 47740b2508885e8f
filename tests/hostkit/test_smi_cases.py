"""Real outputs of nvidia-smi and the kernel log: which parser each kind goes to, and what must come out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opsconsole.hostkit import kernel, smi_text, smi_xml
from opsconsole.hostkit.pci import missing_gpus, normal_address

Case = dict[str, Any]
CASES: list[Case] = json.loads((Path(__file__).parent / "data" / "nvidia_smi.json").read_text())["cases"]
A, P = {"absent": True}, {"denied": "Insufficient Permissions"}
UNKNOWN = {"failed": "Unknown Error"}


def fields_of(case: Case) -> list[str]:
    found = re.search(r"--query-[a-z-]+=(\S+)", case["cmd"])
    assert found, case["cmd"]
    return found.group(1).split(",")


def csv(case: Case) -> Case:
    """Rows as short as they can be: a value for itself, a gap as its reading."""
    header = "noheader" not in case["cmd"]
    table = smi_text.parse_csv(fields_of(case), case["input"], case["rc"], header=header)
    rows = [[reading.get("v", reading) for reading in row.values()] for row in table.rows]
    return {"rows": rows, "troubles": [t.kind for t in table.troubles], "rejected": table.rejected_field}


def plain(case: Case) -> Case:
    return {"troubles": [(t.kind, t.pci, t.code) for t in smi_text.parse_plain(case["input"], case["rc"])]}


def init_failure(case: Case) -> Case:
    return csv(case) if "--query" in case["cmd"] else {**plain(case), "gpus": smi_text.parse_list(case["input"])}


def log(case: Case) -> Case:
    lines = [line for line in case["input"].splitlines() if line]
    if case["cmd"].startswith("cat /dev/kmsg"):
        parsed: list[Any] = [kernel.parse_kmsg(line) for line in lines]
        pairs = [(record[1], record[2]) for record in parsed if record]
    else:
        short = [kernel.parse_short(line) for line in lines]
        pairs = [pair for pair in short if pair]
    (line,) = kernel.read_lines(pairs)
    return {"at": line["monotonic_s"], **line["xid"]}


def xml(case: Case) -> Case:
    (gpu,) = smi_xml.parse_xml(case["input"])
    return gpu


def listing(case: Case) -> Case:
    return {"gpus": [(g["uuid"], [m["uuid"] for m in g["mig"]]) for g in smi_text.parse_list(case["input"])]}


def count(case: Case) -> Case:
    bus, shown = case["input"].split("--\n")
    listed = [normal_address(line.split()[0]) for line in bus.splitlines()]
    known: Case = {pci: {} for pci in listed}
    lost = missing_gpus(known, set(listed[:1]), listed)
    return {"bus": len(listed), "shown": len(smi_text.parse_list(shown)), "lost": [gpu["pci"] for gpu in lost]}


PARSERS: dict[str, Callable[[Case], Case]] = {
    "kmsg-time": log,
    "kmsg-locale": log,
    "kmsg": log,
    "kmsg-injected": log,
    "kmsg-multiline": log,
    "kmsg-nvlink5": log,
    "kmsg-followup": log,
    "extra-warning": lambda c: xml(c) if "-x" in c["cmd"] else plain(c),
    "table-uma": plain,
    "table-err": plain,
    "process-name": plain,
    "csv-sentinel": csv,
    "csv-sentinel-uma": csv,
    "csv-sentinel-mig": csv,
    "csv-header-renamed": csv,
    "csv-unknown-field": csv,
    "csv-column-index": csv,
    "csv-multi-gpu": csv,
    "no-devices": csv,
    "init-failure": init_failure,
    "handle-failure": plain,
    "xml-renamed": xml,
    "xml-bytes": xml,
    "xml-sentinel": xml,
    "xml-malformed": xml,
    "xml-restructured": xml,
    "list-mig": listing,
    "nvlink": lambda c: {"links": smi_text.parse_nvlink(c["input"])},
    "count-mismatch": count,
    "pmon-columns": lambda c: {"rows": smi_text.parse_pmon(c["input"])},
    "mig-permission": lambda c: {"instances": smi_text.parse_mig_instances(c["input"], c["rc"])},
}

NO_TABLE: Case = {"troubles": []}
EXPECTED: dict[str, Case] = {
    "smi-00": {"at": 987654.321, "code": 119, "pci": "0000:9b:00.0", "pid": 4071838, "process": "python"},
    "smi-01": {"troubles": [("warning", "0000:b3:00.0", 14)]},
    "smi-02": NO_TABLE,
    "smi-03": {"rows": [[A, A, A, 0, 11.17, 35]]},
    "smi-04": {"at": None, "code": 38, "pci": "0000:07:00.0", "pid": 326},
    "smi-05": {"readings.power_w": {"v": 17.89}},
    "smi-06": NO_TABLE,
    "smi-07": {"processes": {"v": [{"pid": 0, "name": "C:\\\ufffd\ufffd", "gpu_memory_bytes": None}]}},
    "smi-08": {"pci": "0000:b3:00.0", "name": {"v": "Tesla V100"}},
    "smi-09": {"code": 14, "pci": "0000:03:00.0", "pid": None},
    "smi-10": {"troubles": [("no_library", None, 12)], "gpus": []},
    "smi-11": NO_TABLE,
    "smi-12": {"rows": [["Not Active"]]},
    "smi-13": {"code": 149, "injected": True, "pci": "0018:01:00.0"},
    "smi-14": {"gpus": [("GPU-aaaa", ["MIG-GPU-aaaa/1/0", "MIG-GPU-aaaa/2/0"])]},
    "smi-15": {"troubles": [("nvml_unavailable", None, None)], "gpus": []},
    "smi-16": {"troubles": [("gpu_lost", "0000:02:00.0", 15)]},
    "smi-17": {"code": 79, "pci": "0000:b3:00.0"},
    "smi-18": {"rows": [["NVIDIA A100-SXM4-80GB", "535.161.08", 47, A, A, P, P, P]]},
    "smi-19": {"links": {"GPU-aaaa": {"v": {0: False, 1: False}}}},
    "smi-20": {"troubles": [("mismatch", None, 18)], "gpus": []},
    "smi-21": {"processes": {"v": [{"pid": 11844, "name": None, "gpu_memory_bytes": None}]}},
    "smi-22": {"rows": [], "troubles": ["driver_not_loaded"]},
    "smi-23": {"rows": [], "troubles": ["no_devices"]},
    "smi-24": {"troubles": [("tool_mismatch", None, 255)], "gpus": []},
    "smi-25": {"bus": 2, "shown": 1, "lost": ["0000:38:00.0"]},
    "smi-26": {"rows": [[P]]},
    "smi-27": {"rows": [], "rejected": "compute_cap"},
    "smi-28": {"rows": [[0, 0, 600]]},
    "smi-29": {"rows": []},
    "smi-30": {"gpus": [("GPU-aaaa", ["MIG-bbbb", "MIG-cccc"])]},
    "smi-31": {"rows": [], "rejected": "clocks_throttle_reasons.unknown"},
    "smi-32": {
        "code": 145,
        "injected": False,
        "nvlink": {
            "unit": "RLW_RXPIPE",
            "fatal": False,
            "engine": "XC0",
            "link": 13,
            "status": ["0x0409a0c2", "0x00000008", "0x00000001", "0x00000000", "0x00100000", "0x00000004"],
        },
    },
    "smi-33": {"rows": [[2004, 2004, 0, 44, A, 0, 0]]},
    "smi-34": {"processes": A},
    "smi-35": NO_TABLE,
    "smi-36": {"troubles": [("gpu_unreachable", "0000:a1:00.0", None)]},
    "smi-37": {
        "rows": [
            ["GeForce GTX 1080 Ti", 53, 3, 84, 123.0, 262.5, UNKNOWN, "P2", 1746, 5310, 300.0, 250.0],
            ["GeForce GTX 1080 Ti", 78, 6, 68, 242.05, 262.5, 60, "P2", 1987, 5310, 375.0, 250.0],
        ]
    },
    "smi-38": {"instances": {"denied": "Failed to display compute instances: Insufficient Permissions"}},
    "smi-39": {"code": 45, "caused_by": 149, "pid": 1818990, "process": "python3"},
    "smi-40": {"rows": [["GeForce RTX 2080 Ti", 100, 37, 56, 228.82, 210.0, 56, 1560, 6800, UNKNOWN]]},
    "smi-41": {"troubles": [("gpu_unreachable", "0000:ba:00.0", None)]},
    "smi-42": {"readings.ecc_volatile_uncorrected": A},
    "smi-43": {"rows": [[16380], [5]]},
    "smi-44": {"links": {}},
    "smi-45": {"rows": [["GeForce GTX 770", A, A, 52, A, A, 52, "P0", A, A, A, A]]},
}


def look_up(found: Case, path: str) -> Any:
    for part in path.split("."):
        found = found[part]
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_case(case: Case) -> None:
    found = PARSERS[case["kind"]](case)
    expected = EXPECTED[case["id"]]
    assert {path: look_up(found, path) for path in expected} == expected, case["right_behaviour"]


def test_every_case_is_expected() -> None:
    assert {case["id"] for case in CASES} == set(EXPECTED)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("[N/A]", A),
        ("N/A", A),
        ("[Not Supported]", A),
        ("Not Supported", A),
        ("[Insufficient Permissions]", P),
        ("[Unknown Error]", UNKNOWN),
        ("ERR!", {"failed": "ERR!"}),
        ("[GPU is lost]", {"failed": "GPU is lost"}),
        ("[GPU requires reset]", {"failed": "GPU requires reset"}),
        ("", {"failed": "empty"}),
        ("123.00 W", {"v": 123.0}),
        ("-5", {"v": -5}),
        ("16380 MiB", {"v": 16380}),
        ("P8", {"v": "P8"}),
        ("Enabled", {"v": "Enabled"}),
        ("\x1b[31mred", {"v": "[31mred"}),
    ],
)
def test_one_field(text: str, reading: Case) -> None:
    assert smi_text.parse_value(text) == reading


def test_a_serial_keeps_its_zeros() -> None:
    table = smi_text.parse_csv(["serial", "name"], "0123, Card, with a comma\n")
    assert table.rows == [{"serial": {"v": "0123"}, "name": {"v": "Card, with a comma"}}]


def test_old_ecc_layout() -> None:
    text = "<gpu><ecc_errors><volatile><double_bit><total>3</total></double_bit></volatile></ecc_errors></gpu>"
    assert smi_xml.parse_xml(text)[0]["readings"]["ecc_volatile_uncorrected"] == {"v": 3}


def test_ecc_by_place_is_summed() -> None:
    places = "<sram_uncorrectable>1</sram_uncorrectable><dram_uncorrectable>2</dram_uncorrectable>"
    found = smi_xml.parse_xml(f"<gpu><ecc_errors><volatile>{places}</volatile></ecc_errors></gpu>")
    assert found[0]["readings"]["ecc_volatile_uncorrected"] == {"v": 3}


def test_no_xml_is_said() -> None:
    with pytest.raises(ValueError, match="no proper XML"):
        smi_xml.parse_xml(b"NVIDIA-SMI has failed")
