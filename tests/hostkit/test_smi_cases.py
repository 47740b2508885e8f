"""Real answers to queries of nvidia-smi, real lines of kernel logs, and what a host makes of them.

All outputs, of whatever kind: tests/health/test_parse_smi.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from opsconsole.hostkit import kernel, smi_text
from opsconsole.hostkit.pci import missing_gpus

Case = dict[str, Any]
CASES: list[Case] = json.loads((Path(__file__).parents[1] / "health" / "data" / "nvidia_smi.json").read_text())["cases"]
A, P = {"absent": True}, {"denied": "Insufficient Permissions"}
UNKNOWN = {"failed": "Unknown Error"}


def fields_of(case: Case) -> list[str]:
    found = re.search(r"--query-[a-z-]+=(\S+)", case["cmd"])
    assert found, case["cmd"]
    return found.group(1).split(",")


def csv(case: Case) -> Case:
    """Rows as short as they can be: a value for itself, a gap as its reading."""
    table = smi_text.parse_csv(fields_of(case), case["input"], case["rc"])
    rows = [[reading.get("v", reading) for reading in row.values()] for row in table.rows]
    return {"rows": rows, "troubles": [t.kind for t in table.troubles], "rejected": table.rejected_field}


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


def parse(case: Case) -> Case:
    return log(case) if case["kind"].startswith("kmsg") else csv(case)


EXPECTED: dict[str, Case] = {
    "smi-00": {"at": 987654.321, "code": 119, "pci": "0000:9b:00.0", "pid": 4071838, "process": "python"},
    "smi-03": {"rows": [[A, A, A, 0, 11.17, 35]]},
    "smi-04": {"at": None, "code": 38, "pci": "0000:07:00.0", "pid": 326},
    "smi-09": {"code": 14, "pci": "0000:03:00.0", "pid": None},
    "smi-13": {"code": 149, "injected": True, "pci": "0018:01:00.0"},
    "smi-17": {"code": 79, "pci": "0000:b3:00.0"},
    "smi-18": {"rows": [["NVIDIA A100-SXM4-80GB", "535.161.08", 47, A, A, P, P, P]]},
    "smi-22": {"rows": [], "troubles": ["driver_not_loaded"]},
    "smi-23": {"rows": [], "troubles": ["no_devices"]},
    "smi-26": {"rows": [[P]]},
    "smi-27": {"rows": [], "rejected": "compute_cap"},
    "smi-28": {"rows": [[0, 0, 600]]},
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
    "smi-37": {
        "rows": [
            ["GeForce GTX 1080 Ti", 53, 3, 84, 123.0, 262.5, UNKNOWN, "P2", 1746, 5310, 300.0, 250.0],
            ["GeForce GTX 1080 Ti", 78, 6, 68, 242.05, 262.5, 60, "P2", 1987, 5310, 375.0, 250.0],
        ]
    },
    "smi-39": {"code": 45, "caused_by": 149, "pid": 1818990, "process": "python3"},
    "smi-40": {"rows": [["GeForce RTX 2080 Ti", 100, 37, 56, 228.82, 210.0, 56, 1560, 6800, UNKNOWN]]},
    "smi-43": {"rows": [[16380], [5]]},
    "smi-45": {"rows": [["GeForce GTX 770", A, A, 52, A, A, 52, "P0", A, A, A, A]]},
}


@pytest.mark.parametrize("case", [c for c in CASES if c["id"] in EXPECTED], ids=lambda c: f"{c['id']}-{c['kind']}")
def test_case(case: Case) -> None:
    found = parse(case)
    expected = EXPECTED[case["id"]]
    assert {path: found[path] for path in expected} == expected, case["right_behaviour"]


def test_a_gpu_that_the_bus_lists_and_the_driver_does_not_show_is_lost() -> None:
    """smi-25: no XID tells of it."""
    known: Case = {"0000:16:00.0": {}, "0000:38:00.0": {}}
    assert [gpu["pci"] for gpu in missing_gpus(known, {"0000:16:00.0"}, list(known))] == ["0000:38:00.0"]


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
