"""The doors of health on the command line: what they print, and how they refuse."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest

from opsconsole.cli import main
from opsconsole.clock import wall_now_ms
from opsconsole.faultbook import FAULTS, Faultbook
from tests.cli.told import told
from tests.core.clusters import Cluster
from tests.health.said import but, gpu, lost, probe, xid


def test_parse_smi_prints_readings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "smi.csv"
    file.write_text("temperature.gpu, power.draw [W]\n35, [N/A]\n")
    assert main(["health", "parse-smi", str(file)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "gpus": [
            {
                "temperature.gpu": {"state": "value", "value": 35, "why": None},
                "power.draw": {"state": "absent", "value": None, "why": "N/A"},
            }
        ],
        "warnings": [],
        "fatal": None,
    }


def test_parse_smi_reads_the_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"35, ERR!\n")))
    assert main(["health", "parse-smi", "-", "--fields", "temperature.gpu,power.draw"]) == 0
    (gpu,) = json.loads(capsys.readouterr().out)["gpus"]
    assert (gpu["temperature.gpu"]["value"], gpu["power.draw"]["state"]) == (35, "failed")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["parse-smi", "no-such-file"], "no-such-file: cannot be read"),
        (["test", "no-such-file"], "no-such-file: cannot be read"),
        (["parse-smi"], "parse-smi needs a FILE"),
        (["test"], "test needs a FILE"),
        (["rules", "file"], "rules takes no FILE"),
    ],
)
def test_what_cannot_be_read_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", *words]) == 2
    assert said in capsys.readouterr().err


def test_rules_are_shown_with_their_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "rules", "--json"]) == 0
    rules = {rule["rule"]: rule for rule in json.loads(capsys.readouterr().out)}
    assert rules["xid:79"]["source"] == "NVIDIA Xid catalogue" and rules["xid:95"]["ends_wait"] is True
    assert rules["xid:62"]["differ"] == [{"who": "gpud 4a8de33", "says": "reboot"}]


def test_rules_of_a_site_say_what_they_replace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "inventory.yaml"
    override = "health: {rules: {'xid:63': {severity: D, because: ours}}}"
    file.write_text(f"hosts: [{{name: a, gpus: 8}}]\nbudgets: [{{name: b}}]\n{override}\n")
    log = tmp_path / "log"
    log.write_text("[   12.000001] NVRM: Xid (PCI:0000:9b:00): 63, pid=1, Row Remapper: New row marked for remapping\n")
    assert main(["--inventory", str(file), "health", "rules", "--json"]) == 0
    rules = {rule["rule"]: rule for rule in json.loads(capsys.readouterr().out)}
    assert (rules["xid:63"]["severity"], rules["xid:63"]["overrides"]["severity"]) == ("D", "W")
    assert main(["--inventory", str(file), "health", "test", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "degraded"


def concluded(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> tuple[str, list[str]]:
    """(status, rules) of what a file holds."""
    file = folder / "given"
    file.write_text(text)
    assert main(["health", "test", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return found["status"], [one["rule"] for one in found["findings"]]


HOT = but(3, gpu(3, clock_event_reasons=["hw_thermal_slowdown"]))


@pytest.mark.parametrize(
    ("text", "status", "rules"),
    [
        ("[  12.3] NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n", "fail", ["xid:79"]),
        ("lip 3 07:56:59 h kernel: NVRM: Xid (PCI:0000:07:00): 38, pid=326\n", "unknown", ["xid:38"]),
        ("4,1,987654321,-;NVRM: Xid (PCI:0000:9b:00): 119, pid=1, Timeout\n", "fail", ["xid:119"]),
        (json.dumps(probe()), "ok", []),
        (json.dumps(but(3, lost(3))), "fail", ["gpu:lost"]),
        (json.dumps({"probe": probe(), "kernel": [xid(48)]}), "fail", ["xid:48"]),
        (
            json.dumps({"event": "probe", "probe": probe()}) + "\n" + json.dumps({"lines": [xid(94)]}),
            "degraded",
            ["xid:94"],
        ),
        (json.dumps({"lines": ["NVRM: Xid (PCI:0000:9b:00): 46, pid=1"]}), "fail", ["xid:46"]),
        (json.dumps(HOT), "warn", ["heat:hardware"]),
        (json.dumps([HOT, {**HOT, "uptime_s": 10_070}]), "degraded", ["heat:hardware"]),
        ("No devices were found\n", "fail", ["driver:no-devices"]),
        ("Failed to initialize NVML: Unknown Error\n", "unknown", ["driver:unavailable"]),
        ("index, temperature.gpu, row_remapper.x\n0, 33, 1\n1, [GPU is lost], [GPU is lost]\n", "fail", ["gpu:lost"]),
        (
            "index, memory.used [MiB], ecc.errors.uncorrected.volatile.total\n0, 4 MiB, 2\n",
            "degraded",
            ["ecc:uncorrected"],
        ),
        ("<gpu><temperature><gpu_temp>33 C</gpu_temp></temperature></gpu>", "ok", []),
        (
            "<gpu><remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows></gpu>",
            "fail",
            ["ecc:remap-failed"],
        ),
    ],
)
def test_what_follows_from_a_file(
    text: str, status: str, rules: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert concluded(tmp_path, capsys, text) == (status, rules)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello\n", "has no header"),
        ("", "is neither a kernel's log"),
        ("{", "line 1 is no JSON"),
        ('{"a": 1}', "value 1 has none of gpus"),
        ('["a"]', "value 1 is no object"),
    ],
)
def test_a_file_from_which_nothing_follows(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    assert main(["health", "test", str(file)]) == 2
    assert said in capsys.readouterr().err


def test_hosts_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the store has them: one with an XID, one that is well, one that was never heard of."""
    cluster = Cluster(hosts={"h1": 8, "h2": 8, "h3": 8})
    kernel = {"boot_id": "boot", "lines": [xid(79)]}
    command_line = told(tmp_path, cluster, {"h1": probe(), "h1/kernel": kernel, "h2": probe()})
    monkeypatch.setenv("OPSCONSOLE_INVENTORY", str(command_line.inventory))
    assert main(["health", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(host["host"], host["status"]) for host in found["hosts"]] == [
        ("h1", "fail"),
        ("h3", "unknown"),
        ("h2", "ok"),
    ]
    assert found["incidents"] == [
        {"place": None, "many": False, "faults": [{"host": "h1", "rule": "xid:79", "since_s": pytest.approx(5, abs=5)}]}
    ]
    assert main(["health", "h1"]) == 0
    text = capsys.readouterr().out
    assert "✖ fail" in text and "GPU 3" in text and "NVRM: Xid" in text and "NVIDIA Xid catalogue, 2025-10-29" in text
    assert main(["health"]) == 0
    assert "GPU 3: XID 79, GPU fell off the bus; 1 more" not in capsys.readouterr().out
    assert main(["health", "h9"]) == 2
    assert "no host is called 'h9'" in capsys.readouterr().err


def test_what_broke_is_kept_by_card_and_slot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a leader keeps it, once for each boot, and as people look at it."""
    command_line = told(tmp_path, Cluster(hosts={"h1": 8, "h2": 8}), {"h1": but(3, lost(3)), "h2": probe()})
    monkeypatch.setenv("OPSCONSOLE_INVENTORY", str(command_line.inventory))
    assert main(["health", "lemons"]) == 0
    assert "no card and no slot has broken" in capsys.readouterr().out
    picture = command_line.place.follower()
    picture.read_readings()
    kept = asyncio.run(Faultbook(picture).look(wall_now_ms()))
    assert kept is not None
    store = command_line.place.open_store()
    store.put(FAULTS, kept)
    store.close()
    assert asyncio.run(Faultbook(picture).look(wall_now_ms())) is None
    assert main(["health", "lemons", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["kind"], one["name"], one["score"], one["rules"]) for one in found] == [
        ("card", "GPU-0003", 2.0, ["gpu:lost"]),
        ("slot", "h1 GPU 3", 2.0, ["gpu:lost"]),
    ]
