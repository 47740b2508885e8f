"""Any output of nvidia-smi: cases of public issue threads, and laws that hold for outputs that nobody has seen."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsconsole.health.field import Field
from opsconsole.health.smi import Output, read_output

Case = dict[str, Any]
CASES: list[Case] = json.loads((Path(__file__).parent / "data" / "nvidia_smi.json").read_text())["cases"]
NA, NOT_SUPPORTED, DENIED = "absent: N/A", "absent: Not Supported", "denied: Insufficient Permissions"


def read(text: str | bytes, asked: str = "") -> Output:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return read_output(data, asked.split(",") if asked else None)


def short(one: Field) -> Any:
    """A value for itself, a gap in words."""
    if one["state"] != "value":
        assert one["value"] is None and one["why"]
        return f"{one['state']}: {one['why']}"
    assert one["why"] is None
    found = one["value"]
    return [{k: short(v) for k, v in entry.items()} for entry in found] if isinstance(found, list) else found


def gpus(output: Output) -> list[dict[str, Any]]:
    return [{name: short(one) for name, one in gpu.items()} for gpu in output.gpus]


def columns(*cells: Any) -> dict[str, Any]:
    return {f"column_{n}": cell for n, cell in enumerate(cells, start=1)}


def table(fan: Any, temperature: Any, power: Any, limit: Any, memory: tuple[Any, Any], pstate: str = "P8") -> Any:
    found = {"fan.speed": fan, "temperature.gpu": temperature, "pstate": pstate, "power.draw": power}
    found |= {"power.limit": limit, "memory.used": memory[0], "memory.total": memory[1]}
    return found | {"utilization.gpu": 0, "compute_mode": "Default"}


def process(pid: int, kind: str, name: str, memory: int) -> Any:
    entry = {"pid": pid, "type": kind, "process_name": name, "used_gpu_memory": memory}
    return {"index": 0, "processes": [entry]}


def mig(profile: str, device: int, uuid: str) -> Any:
    return {"profile": profile, "device": device, "uuid": uuid}


# Of each case: its GPUs, then words that its warnings must hold, then words of why all is lost ("" : it is not).
LOST: Any = [{"pci.bus_id": "0000:02:00.0", "name": "failed: Unable", "uuid": "failed: Unable"}]
EXPECTED: dict[str, tuple[list[dict[str, Any]], list[str], str]] = {
    "smi-00": ([], ["119"], ""),
    "smi-01": ([process(1676, "G", "/usr/lib/xorg/Xorg", 293)], ["for people", "0000:B3:00.0"], ""),
    "smi-02": ([table(NA, 36, 3, NA, (NOT_SUPPORTED, NOT_SUPPORTED))], ["for people"], ""),
    "smi-03": ([columns(NA, NA, NA, 0, 11.17, 35)], [], ""),
    "smi-04": ([], ["Xid (PCI:0000:07:00): 38"], ""),
    "smi-05": ([{"gpu_power_readings.power_draw": 17.89, "module_power_readings.power_draw": NA}], [], ""),
    "smi-06": ([table("failed: ERR!", 38, NA, NA, (1, 8192))], ["for people"], ""),
    "smi-07": ([{"process_name": "C:\\\ufffd\ufffd"}], [], ""),
    "smi-08": ([{"id": "00000000:B3:00.0", "product_name": "Tesla V100"}], [], ""),
    "smi-09": ([], ["Xid (0000:03:00): 14"], ""),
    "smi-10": ([], [], "couldn't find libnvidia-ml"),
    "smi-11": ([table(NA, 29, "failed: ERR!", 250, (593, 16160), "P0")], ["for people"], ""),
    "smi-12": ([{"clocks_event_reasons.hw_thermal_slowdown": "Not Active"}], [], ""),
    "smi-13": ([], ["149, NETIR_LINK_EVT Fatal XC0 i1"], ""),
    "smi-14": (
        [
            {
                "index": 0,
                "name": "A100-SXM4-40GB",
                "uuid": "GPU-aaaa",
                "mig_devices": [mig("3g.20gb", 0, "MIG-GPU-aaaa/1/0"), mig("3g.20gb", 1, "MIG-GPU-aaaa/2/0")],
            }
        ],
        [],
        "",
    ),
    "smi-15": ([], [], "Failed to initialize NVML: Unknown Error"),
    "smi-16": (LOST, [], "GPU is lost"),
    "smi-17": ([], ["fallen off the bus"], ""),
    "smi-18": ([columns("NVIDIA A100-SXM4-80GB", "535.161.08", 47, NA, NA, DENIED, DENIED, DENIED)], [], ""),
    "smi-19": (
        [
            {
                "index": 0,
                "name": "NVIDIA A100 80GB PCIe",
                "uuid": "GPU-aaaa",
                "link.0": "inactive",
                "link.1": "inactive",
            }
        ],
        [],
        "",
    ),
    "smi-20": ([], [], "version mismatch; NVML library version: 535.161"),
    "smi-21": ([{"processes": [{"pid": 11844, "used_memory": NA}]}], [], ""),
    "smi-22": ([], [], "couldn't communicate"),
    "smi-23": ([], [], "No devices were found"),
    "smi-24": ([], [], "Mismatch in versions"),
    "smi-25": (
        [{"index": 0, "name": "NVIDIA L40S", "uuid": "GPU-aaaa"}],
        ["lists 2 GPUs (0000:16:00.0, 0000:38:00.0), the driver shows 1"],
        "",
    ),
    "smi-26": ([columns(DENIED)], [], ""),
    "smi-27": ([], [], "compute_cap"),
    "smi-28": ([columns(0, 0, 600)], [], ""),
    "smi-29": ([{"index": 0, "processes": []}], [], ""),
    "smi-30": (
        [
            {
                "index": 0,
                "name": "NVIDIA A100-PCIE-40GB",
                "uuid": "GPU-aaaa",
                "mig_devices": [mig("3g.20gb", 0, "MIG-bbbb"), mig("1g.5gb", 2, "MIG-cccc")],
            }
        ],
        [],
        "",
    ),
    "smi-31": ([], [], "clocks_throttle_reasons.unknown"),
    "smi-32": ([], ["145, RLW_RXPIPE Nonfatal"], ""),
    "smi-33": ([columns(2004, 2004, 0, 44, NA, 0, 0)], [], ""),
    "smi-34": ([], ["without any field"], ""),
    "smi-35": ([process(2345, "C", "python train.py --shared-file a b", 501)], ["for people"], ""),
    "smi-36": ([{**LOST[0], "pci.bus_id": "0000:a1:00.0"}], [], "Unknown Error"),
    "smi-37": (
        [
            columns("GeForce GTX 1080 Ti", 53, 3, 84, 123, 262.5, "failed: Unknown Error", "P2", 1746, 5310, 300, 250),
            columns("GeForce GTX 1080 Ti", 78, 6, 68, 242.05, 262.5, 60, "P2", 1987, 5310, 375, 250),
        ],
        [],
        "",
    ),
    "smi-38": ([], [], "Insufficient Permissions"),
    "smi-39": ([], ["caused by previous Xid 149"], ""),
    "smi-40": (
        [columns("GeForce RTX 2080 Ti", 100, 37, 56, 228.82, 210, 56, 1560, 6800, "failed: Unknown Error")],
        [],
        "",
    ),
    "smi-41": ([{**LOST[0], "pci.bus_id": "0000:ba:00.0"}], [], "0000:BA:00.0"),
    "smi-42": (
        [{"ecc_errors.volatile.sram_uncorrectable": NA, "ecc_errors.volatile.dram_uncorrectable": NA}],
        [],
        "",
    ),
    "smi-43": ([columns(16380), columns(5)], [], ""),
    "smi-44": ([], ["nothing was printed"], ""),
    "smi-45": (
        [columns("GeForce GTX 770", *[NOT_SUPPORTED] * 2, 52, *[NOT_SUPPORTED] * 2, 52, "P0", *[NOT_SUPPORTED] * 4)],
        [],
        "",
    ),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_case(case: Case) -> None:
    found = read(case["input"])
    expected, warnings, fatal = EXPECTED[case["id"]]
    shown = [
        {k: "failed: Unable" if str(v).startswith("failed: Unable") else v for k, v in g.items()} for g in gpus(found)
    ]
    assert shown == expected, case["right_behaviour"]
    assert len(found.warnings) == len(warnings) or fatal
    assert all(any(word in said for said in found.warnings) for word in warnings)
    assert (fatal in found.fatal) if found.fatal else not fatal, case["right_behaviour"]


def test_every_case_is_expected() -> None:
    assert {case["id"] for case in CASES} == set(EXPECTED)


HEADER = "index, name, temperature.gpu, utilization.gpu [%], memory.used [MiB], power.draw [W], fan.speed [%], pstate"
ROWS = [
    ["0", "NVIDIA H100 80GB HBM3", "61", "99 %", "70000 MiB", "650.12 W", "[N/A]", "P0"],
    ["1", "NVIDIA H100 80GB HBM3", "33", "0 %", "4 MiB", "71.00 W", "[N/A]", "P0"],
]
SENTINELS = [
    "N/A",
    "[N/A]",
    "[Not Supported]",
    "Not Supported",
    "ERR!",
    "Unknown Error",
    "[Unknown Error]",
    "[Insufficient Permissions]",
    "Insufficient Permissions",
    "[GPU is lost]",
    "GPU is lost",
    "[GPU requires reset]",
    "Requires reset",
    "[Not Found]",
    "[Requested functionality has been deprecated]",
    "18446744073709551615",
    "[Something that no driver has printed yet]",
]


def csv(rows: list[list[str]], header: str = HEADER) -> str:
    return "\n".join([*([header] if header else []), *(", ".join(row) for row in rows)]) + "\n"


def xml(rows: list[list[str]]) -> str:
    tags = [name.partition(" ")[0].replace(".", "_") for name in HEADER.split(", ")]
    blocks = [
        f'<gpu id="{row[0]}"><a>{"".join(f"<{t}>{c}</{t}>" for t, c in zip(tags, row, strict=True))}</a></gpu>'
        for row in rows
    ]
    return f"<nvidia_smi_log><attached_gpus>2</attached_gpus>{''.join(blocks)}</nvidia_smi_log>"


def query(rows: list[list[str]]) -> str:
    names = [name.partition(" ")[0].replace(".", " ") for name in HEADER.split(", ")]
    said = ["==============NVSMI LOG=============="]
    for row in rows:
        said += [f"GPU 00000000:0{row[0][:1]}:00.0", "    Block"]
        said += [f"        {name:20} : {cell}" for name, cell in zip(names, row, strict=True)]
    return "\n".join(said)


WRITERS = {"csv": csv, "bare csv": lambda rows: csv(rows, ""), "xml": xml, "-q": query}


@pytest.mark.parametrize("writer", WRITERS)
@given(
    gpu=st.integers(0, 1),
    column=st.integers(1, 7),
    sentinel=st.sampled_from(SENTINELS),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_a_gap_changes_its_own_field_alone(writer: str, gpu: int, column: int, sentinel: str, end: str) -> None:
    rows = [list(row) for row in ROWS]
    rows[gpu][column] = sentinel
    write = WRITERS[writer]
    sound, found = (read(write(r).replace("\n", end)) for r in (ROWS, rows))
    assert not found.warnings and found.fatal is None
    changed = [
        (n, name)
        for n, (before, after) in enumerate(zip(sound.gpus, found.gpus, strict=True))
        for name in before
        if before[name] != after[name]
    ]
    assert [gpu.keys() for gpu in sound.gpus] == [gpu.keys() for gpu in found.gpus]
    assert len(changed) <= 1 and all(n == gpu for n, _ in changed)
    if sentinel not in ROWS[gpu][column]:
        (where,) = changed
        text = sentinel.isdigit() and column in (1, 7)  # of a name every digit counts
        assert found.gpus[gpu][where[1]]["state"] != "value" or text


@given(st.binary(max_size=300))
def test_no_bytes_break_it(data: bytes) -> None:
    found = read(data).as_json()
    assert json.dumps(found) and set(found) <= {"gpus", "warnings", "fatal", "events"}


@given(st.lists(st.sampled_from([*csv(ROWS).splitlines(), *xml(ROWS).splitlines(), *query(ROWS).splitlines(), ""])))
def test_outputs_that_were_mixed_up_break_nothing(lines: list[str]) -> None:
    assert json.dumps(read("\n".join(lines)).as_json())


@pytest.mark.parametrize(
    "text",
    [
        "index,\n" * 20_000,
        "<gpu>" + "<a>" * 20_000,
        "<gpu " * 20_000,
        "1" * 100_000,
        "|  0  " + "a " * 50_000 + "|",
        "GPU 00000000:07:00.0\n" + "    A : 1\n" * 5_000,
        '<!DOCTYPE x [<!ENTITY a "&b;&b;"><!ENTITY b "c">]><gpu><x>&a;</x></gpu>',
    ],
)
def test_what_nobody_would_print_takes_no_time(text: str) -> None:
    begun = time.process_time()
    read(text)
    assert time.process_time() - begun < 5


def test_a_header_that_ends_in_a_comma_takes_no_row_with_it() -> None:
    assert len(read("index,\n0, 33\n1, 34\n").gpus) == 2


@pytest.mark.parametrize("write", [csv, xml, query])
@given(at=st.integers(1, 600))
@settings(max_examples=150, deadline=None)
def test_what_was_cut_off_is_never_made_up(write: Any, at: int) -> None:
    """Each field says what the whole output says of it, or that it is not known; or it is the one that was cut."""
    text = write(ROWS)
    whole = gpus(read(text))
    for before, after in zip(whole, gpus(read(text[:at])), strict=False):
        changed = [
            name for name in after if before.get(name) != after[name] and not str(after[name]).startswith("failed")
        ]
        assert len(changed) <= 1, after


INITIAL = {
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.86\n",
    "Failed to initialize NVML: Unknown Error\n",
    "Failed to initialize NVML: Insufficient Permissions\n",
    "Failed to initialize NVML: GPU access blocked by the operating system\n",
    "No devices were found\n",
    "NVIDIA-SMI has failed because you do not have permission to communicate with the NVIDIA driver\n",
    "bash: line 1: nvidia-smi: command not found\n",
    'Field "compute_cap" is not a valid field to query.\n',
    "Failed to display GPU instances: Insufficient Permissions\n",
    "Segmentation fault (core dumped)\n",
}


@pytest.mark.parametrize("text", sorted(INITIAL))
@pytest.mark.parametrize("before", ["", HEADER + "\n", "\n\n"])
def test_a_failure_is_no_gpu(text: str, before: str) -> None:
    found = read(before + text)
    assert found.gpus == [] and found.fatal and text.splitlines()[0].rstrip(".") in found.fatal


@pytest.mark.parametrize("at", range(4))
def test_a_warning_anywhere_takes_no_row_away(at: int) -> None:
    lines = csv(ROWS).splitlines()
    lines.insert(at, "WARNING: infoROM is corrupted at gpu 0000:B3:00.0")
    found = read("\n".join(lines) + "\n")
    assert gpus(found) == gpus(read(csv(ROWS)))
    assert found.warnings == ["infoROM is corrupted at gpu 0000:B3:00.0"] and found.fatal is None


@pytest.mark.parametrize(
    ("text", "shown", "fatal"),
    [
        (
            "NVIDIA-SMI has failed because you are not:\n\ta) running as an administrator or\n\tb) there is no TCC\n",
            0,
            True,
        ),
        (
            "Unable to determine the device handle for GPU 0000:02:00.0: interrupts.\ndetails and steps that help\n",
            1,
            True,
        ),
        ("NVIDIA: no NVIDIA devices found\n", 0, True),
        ("No MIG-enabled devices found.\n", 0, False),
        (
            "ERROR: ld.so: object 'x.so' cannot be preloaded: ignored.\n0, 33 %, NVIDIA A100\n1, 34 %, NVIDIA A100\n",
            2,
            False,
        ),
        (
            "Warning: persistence mode is disabled on device 00000000:00:1E.0. See the man page.\nindex, name\n0, A\n",
            1,
            False,
        ),
        ("NVIDIA GeForce GTX 1080 Ti\nNVIDIA RTX 6000 Ada Generation\n", 2, False),
        ("index, temperature.gpu\n0, 33\n1, 34\n0, 35\n1, 36\n", 2, False),  # -l: the last sample counts
        ("  MIG 1g.5gb      Device  2: (UUID: MIG-cccc)\n", 1, False),
        ("GPU 0: A100 (UUID: Unknown Error)\nGPU 1: A100 (UUID: GPU-x)\n", 2, False),
        (
            "GPU 0: A100 (UUID: GPU-x)\nNVML: Unable to retrieve NVLink information as all links are inActive\n",
            1,
            False,
        ),
        ("16:00.0 3D controller: NVIDIA Corporation GA102GL [L40S] (rev ff)\n--\nNo devices were found\n", 0, True),
        (
            "4,1,9876543210,-;NVRM: Xid (PCI:0000:9b:00): 119, pid=4\n SUBSYSTEM=pci\n DEVICE=+pci:0000:9b:00.0\n",
            0,
            False,
        ),
        (
            "[Mon Nov 30 07:56:59 2026] NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=1\n[Mon Nov 30 07:56:59 2026] x\n",
            0,
            False,
        ),
        ("\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n", 0, True),
    ],
)
def test_how_many_gpus_there_are(text: str, shown: int, fatal: bool) -> None:
    found = read(text)
    assert (len(found.gpus), found.fatal is not None) == (shown, fatal), found


def test_one_gpu_that_cannot_be_reached_stands_beside_the_others() -> None:
    lost = "Unable to determine the device handle for GPU0: 0000:02:00.0: GPU is lost.  Reboot the system\n"
    found = read(csv(ROWS) + lost)
    assert gpus(found)[:2] == gpus(read(csv(ROWS))) and found.fatal is None
    assert short(found.gpus[2]["pci.bus_id"]) == "0000:02:00.0" and found.gpus[2]["uuid"]["state"] == "failed"


def test_a_lost_gpu_with_a_row_of_its_own_is_one() -> None:
    rows = [ROWS[0], ["[Unknown Error]"] * len(ROWS[0]), ROWS[1]]
    lines = csv(rows).splitlines()
    lines.insert(2, "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error")
    found = gpus(read("\n".join(lines)))
    assert len(found) == 3 and found[0]["index"] == 0 and found[2]["index"] == 1
    assert found[1]["pci.bus_id"] == "0000:02:00.0" and found[1]["index"] == "failed: Unknown Error"


TORN = "index, name, temperature.gpu, power.draw [W]\n0, NVIDIA A100-SXM4\n-80GB, 33, 3.00 W\n1, A, 34, 5.00 W\n"
SAME = [{"index": 0, "name": "A", "temperature.gpu": 33}, {"index": 1, "name": "A", "temperature.gpu": 34}]


@pytest.mark.parametrize(
    "text",
    [
        "index, name, temperature.gpu\n0, A, 33\n1, A, 34",
        "index, name, temperature.gpu\n0, A, 33\nindex, name, temperature.gpu\n1, A, 34\n",
        "index, name,\ntemperature.gpu\n0, A,\n33\n1, A, 34\n",
        "index, name, temper\nature.gpu\n0, A, 3\n3\n1, A, 34\n",
        "index, name, temperature.gpu\r\n0, A, 33\r\n\r\n1, A, 34\r\n",
        "\ufeffindex, name, temperature.gpu\n0, A, 33\n1, A, 34\n",
        "\x1b[1mindex, name, temperature.gpu\x1b[0m\n0, A, 33 C\n1, A, 34 C\n",
        "index,name,temperature.gpu\n0,A,33\n1,A,34\n",
    ],
)
def test_the_same_in_other_clothes(text: str) -> None:
    assert gpus(read(text)) == SAME
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert gpus(read(text.encode(encoding))) == SAME


def test_a_torn_row_is_joined() -> None:
    assert [gpu["name"] for gpu in gpus(read(TORN))] == ["NVIDIA A100-SXM4-80GB", "A"]
    assert [gpu["power.draw"] for gpu in gpus(read(TORN))] == [3, 5]


def test_a_row_that_is_cut_tells_what_came_before() -> None:
    found = gpus(read("index, name, temperature.gpu, power.draw [W]\n0, A, 33, 3.00 W\n1, A, 3"))
    assert found[1] == {
        "index": 1,
        "name": "A",
        "temperature.gpu": "failed: the output ends here",
        "power.draw": "failed: the output ends here",
    }


def test_a_row_that_does_not_fit_is_a_gpu_of_which_nothing_is_known() -> None:
    (_, broken) = read("index, temperature.gpu, pstate\n0, 33, P0\n1, 2, 3, 4, 5\n").gpus
    assert {one["state"] for one in broken.values()} == {"failed"}


def test_a_number_is_no_word() -> None:
    assert (
        short(read("index, temperature.gpu\n0, Blocked\n").gpus[0]["temperature.gpu"]) == "failed: no number: Blocked"
    )


def test_a_comma_of_another_language_is_a_decimals() -> None:
    assert gpus(read("power.draw [W], temperature.gpu\n17,89 W, 35\n")) == [
        {"power.draw": 17.89, "temperature.gpu": 35}
    ]


def test_the_names_that_were_asked_for_count_not_those_of_the_header() -> None:
    text = "clocks_event_reasons.active, name\n0x0000000000000004, A, B\n"
    assert gpus(read(text, "clocks_throttle_reasons.active,name")) == [
        {"clocks_throttle_reasons.active": "0x0000000000000004", "name": "A, B"}
    ]


def test_processes_are_listed_under_their_gpu() -> None:
    found = gpus(
        read(
            "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-1, 33, python a, b.py, 3 MiB\n"
            "GPU-1, 34, [Not Found], [N/A]\nGPU-2, 35, x, [Insufficient Permissions]\n"
        )
    )
    assert [(gpu["gpu_uuid"], [entry["pid"] for entry in gpu["processes"]]) for gpu in found] == [
        ("GPU-1", [33, 34]),
        ("GPU-2", [35]),
    ]
    assert found[0]["processes"][0]["process_name"] == "python a, b.py"
    assert found[1]["processes"][0]["used_gpu_memory"] == DENIED


def test_one_broken_block_takes_no_other_down() -> None:
    text = xml(ROWS).replace("<pstate>P0</pstate>", "<pstate>P0</psta", 1)
    found = read(text)
    assert gpus(found)[1] == gpus(read(xml(ROWS)))[1]
    assert short(found.gpus[0]["a.temperature_gpu"]) == 61 and len(found.warnings) == 1


def test_signs_that_the_driver_forgot_to_escape() -> None:
    found = gpus(
        read(
            "<processes><process_info><pid>7</pid><process_name>a & <unknown></process_name></process_info></processes>"
        )
    )
    assert found == [{"processes": [{"pid": 7, "process_name": "a & <unknown>"}]}]


@pytest.mark.parametrize("text", ["N/A", "Insufficient Permissions"])
def test_processes_that_may_not_be_listed_are_not_none(text: str) -> None:
    assert read(f"<gpu><processes>{text}</processes></gpu>").gpus[0]["processes"]["state"] != "value"


def test_a_whole_table() -> None:
    text = """\
Mon Nov 30 12:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
| N/A   33C    P0             71W /  700W |       4MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                 ERR! |
|ERR!  ERR! ERR!            ERR! /  ERR!  |    GPU is lost         |    ERR!      Default |
|                                         |                        |                 ERR! |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|    0   N/A  N/A           12345      C   python -m train --name a b               4MiB |
+-----------------------------------------------------------------------------------------+
"""
    first, second = gpus(read(text))
    assert (first["pci.bus_id"], first["temperature.gpu"], first["memory.total"]) == ("00000000:19:00.0", 33, 81559)
    assert first["processes"][0]["process_name"] == "python -m train --name a b"
    assert second["index"] == 1 and second["memory.used"] == "failed: GPU is lost"
    assert {second[name] for name in ("fan.speed", "temperature.gpu", "power.draw", "utilization.gpu")} == {
        "failed: ERR!"
    }
