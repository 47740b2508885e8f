"""The kernel log: which lines matter, what is kept of them, and that none comes twice in one boot."""

from __future__ import annotations

from typing import Any

import pytest

from opsconsole.hostkit import kernel
from opsconsole.hostkit.kernel_log import dmesg_records, journal_records
from tests.hostkit.hosts import Host

XID = "NVRM: Xid (PCI:0000:10:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
GPU = {"pci": "00000000:10:00.0", "uuid": "GPU-a"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (XID, "xid"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "sxid"),
        ("pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0", "aer"),
        ("Out of memory: Killed process 4711 (python) total-vm:1kB", "oom"),
        ("INFO: task python:99 blocked for more than 120 seconds.", "hang"),
        ("usb 1-1: new device", None),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module", None),
    ],
)
def test_which_lines_matter(text: str, kind: str | None) -> None:
    line = kernel.parse_line(text)
    assert (line and line["kind"]) == kind


def test_an_unknown_process_is_null() -> None:
    line = kernel.parse_line(XID)
    assert line and line["xid"]["pid"] is None and line["xid"]["process"] is None


def test_the_recovery_action_is_read_from_154() -> None:
    line = kernel.parse_line(
        "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    )
    assert line and line["xid"]["recovery_action"] == 2


def test_one_record_with_line_breaks_is_one_line() -> None:
    text = "NVRM: The NVIDIA GPU 0000:b3:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed\\x0aNVRM: fallen off the bus"
    record = f"3,77,5000000,-;{text}\n"
    parsed = kernel.parse_kmsg(record)
    assert parsed and parsed[:2] == (77, 5.0)
    line = kernel.Reader().feed(parsed[2])
    assert line and line["xid"]["code"] == 79 and line["xid"]["pci"] == "0000:b3:00.0"


def test_other_lines_between_do_not_end_the_record() -> None:
    lines = ["NVRM: The NVIDIA GPU 0000:b3:00.0", "usb 1-1: reset", "NVRM: fallen off the bus and is not responding"]
    assert [line["xid"]["code"] for line in kernel.read_lines([(1.0, text) for text in lines])] == [79]


def test_an_xid_after_an_open_record_is_kept() -> None:
    lines = ["NVRM: The NVIDIA GPU 0000:b3:00.0", "NVRM: Xid (PCI:0000:b3:00): 62, halt"]
    assert [line["xid"]["code"] for line in kernel.read_lines([(1.0, text) for text in lines])] == [62]


def test_continuation_lines_and_garbage_are_no_records() -> None:
    assert kernel.parse_kmsg(" SUBSYSTEM=pci") is None
    assert kernel.parse_kmsg("x,y,z;text") is None
    assert kernel.parse_kmsg("6,1,2") is None


def test_long_and_coloured_text_is_bounded() -> None:
    line = kernel.parse_line(XID + "\x1b[31m" + "y" * 9000)
    assert line and len(line["text"]) <= kernel.TEXT_MAX and "\x1b" not in line["text"]


def test_journal_lines_of_one_microsecond_are_told_apart() -> None:
    output = b'{"__MONOTONIC_TIMESTAMP": "5", "MESSAGE": "a"}\n{"__MONOTONIC_TIMESTAMP": "5", "MESSAGE": [98]}\nnoise\n'
    assert journal_records(output) == [(5000, 5e-06, "a"), (5001, 5e-06, "b")]


def test_raw_dmesg() -> None:
    assert dmesg_records(b"<4>[   12.500000] NVRM: x\n") == [(12500000000, 12.5, "NVRM: x")]


def xid_texts(events: list[dict[str, Any]]) -> list[str]:
    return [line["text"] for event in events if event["event"] == "kernel" for line in event["lines"]]


def test_lines_come_once_per_boot(host: Host) -> None:
    host.gpus([GPU], kernel=[{"monotonic_s": 1.0, "text": "boring"}, {"monotonic_s": 2.5, "text": XID}])
    client = host.connect()
    event = client.wait_event(lambda e: e["event"] == "kernel")
    assert event["lines"][0]["monotonic_s"] == 2.5 and event["lines"][0]["xid"]["code"] == 79
    client.close()
    other = host.connect()
    other.next_probe()
    later = XID.replace("79", "48")
    host.gpus([GPU], kernel=[{"text": "boring"}, {"text": XID}, {"monotonic_s": 9, "text": later}])
    other.wait_event(lambda e: e["event"] == "kernel")
    assert xid_texts(other.events) == [later]


def test_a_client_may_ask_again_from_an_older_cursor(host: Host) -> None:
    host.gpus([GPU], kernel=[{"text": XID}])
    client = host.connect()
    client.wait_event(lambda e: e["event"] == "kernel")
    assert client.hello(kernel_cursor="")["ok"]
    client.events.clear()
    client.wait_event(lambda e: e["event"] == "kernel")
    assert xid_texts(client.events) == [XID]


def test_a_new_boot_starts_again(host: Host) -> None:
    host.gpus([GPU], kernel=[{"text": XID}])
    client = host.connect()
    client.wait_event(lambda e: e["event"] == "kernel")
    client.close()
    host.boot_file.write_text("boot-2\n")
    host.connect().wait_event(lambda e: e["event"] == "kernel")
