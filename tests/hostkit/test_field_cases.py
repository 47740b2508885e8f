"""Faults that other schedulers had (field_reports.json), on a host: whom a signal reaches, and what GPUs are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostkit.hosts import Host, wait_until

# The main process tells, a while after its SIGTERM, which of its children have heard one too.
FAMILY = """
hears() { trap "echo $1 >> heard" TERM; echo ready >> ready; while :; do sleep 0.05; done; }
hears group &
setsid sh -c "trap 'echo tree >> heard' TERM; echo ready >> ready; while :; do sleep 0.05; done" &
trap 'sleep 1; touch heard; sort heard > at_end; exit 0' TERM
echo ready >> ready
while :; do sleep 0.05; done
"""


@pytest.mark.parametrize(("target", "heard"), [("main", ""), ("group", "group\n"), ("tree", "group\ntree\n")])
def test_whom_sigterm_reaches_is_a_setting_and_all_are_gone_at_the_end(host: Host, target: str, heard: str) -> None:
    """G2-23: a launcher that passes signals on itself, a group, a tree that has changed its session."""
    client = host.connect()
    client.start("a~1", ["sh", "-c", FAMILY], cwd=str(host.root), stop_target=target, stop_grace_s=1)
    wait_until(lambda: (host.root / "ready").exists() and (host.root / "ready").read_text().count("ready") == 3)
    client.stop("a~1", stop_grace_s=3)
    assert client.wait_phase("a~1", "released")["signalled"]
    assert (host.root / "at_end").read_text() == heard
    assert not host.processes_like("heard")


def test_gpus_keep_their_slots_in_whatever_order_the_driver_lists_them(host: Host) -> None:
    """G3-24: after a reboot the other way round. A run's GPUs are named by UUID, a slot by its bus address."""
    cards = [{"pci": f"00000000:{bus}0:00.0", "uuid": f"GPU-{name}"} for bus, name in ((1, "a"), (2, "b"), (3, "c"))]
    host.gpus(cards)
    client = host.connect()
    before = [(gpu["slot"], gpu["pci"], gpu["uuid"]["v"]) for gpu in client.next_probe()["gpus"]]
    client.start("a~1", ["sleep", "1000"], gpus=["GPU-b"])
    host.power_off()
    host.boot_file.write_text("boot-2\n")
    host.gpus(cards[::-1])
    client = host.connect()
    after = [(gpu["slot"], gpu["pci"], gpu["uuid"]["v"]) for gpu in client.next_probe()["gpus"]]
    assert sorted(after) == sorted(before)
    assert client.run("a~1")["gpus"] == ["GPU-b"] and client.run("a~1")["processes_gone"]


def test_output_without_an_end_of_line_fills_no_memory(host: Host) -> None:
    """G4-14: 80 MB in one line, and nothing on the other stream; the run goes on and its log keeps its bound."""
    most, said = 1_000_000, 80_000_000
    client = host.connect()
    client.start("a~1", ["sh", "-c", f"head -c {said} /dev/zero | tr '\\0' x; sleep 1000"], log_bytes_max=most)
    wait_until(lambda: client.log("a~1", said)["size"] == said, 60)
    status = Path(f"/proc/{host.run_state('a~1')['supervisor']['pid']}/status").read_text()
    peak_kib = int(status.partition("VmHWM:")[2].split()[0])
    assert peak_kib < 48 * 1024 and client.run("a~1")["phase"] == "running"
    assert sum(path.stat().st_size for path in host.run_dir("a~1").glob("log*")) <= most
