"""`opsconsole check` says everything that it knows of a file, for people and for scripts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from opsconsole.cli import main
from tests.live.commands import CommandLine
from tests.store.filling import filled
from tests.terminal import on_terminal

INVENTORY = """\
hosts:
  - {name: gpu1, gpus: 8, identity: missing_key}
budgets: [{name: a}]
ssh: {config: ssh_config}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    (tmp_path / "ssh_config").write_text("Host *\n  StrictHostKeyChecking no\n")
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY)
    return path


def test_warnings_are_said_and_refuse_nothing(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(inventory)]) == 0
    said = capsys.readouterr()
    assert "main: 1 host, 8 GPUs, 1 budget." in said.out
    key, keyword = said.err.splitlines()
    assert f"{inventory}:2: hosts[0].identity: there is no file" in key
    assert "ssh_config:2: StrictHostKeyChecking: host keys are always verified; log in once" in keyword


def test_warnings_stand_in_the_json(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(inventory), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["ok"] and not said.err
    assert [(w["line"], w["field"], w["warning"]) for w in found["warnings"]] == [
        (2, "hosts[0].identity", True),
        (2, "StrictHostKeyChecking", True),
    ]


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert main(["check", str(path)]) == 2
        assert f"{path}: is not a plain file; what another command writes" in capsys.readouterr().err


def test_errors_are_json_too(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inventory.write_text(INVENTORY.replace("gpus: 8", "gpus: eight"))
    assert main(["check", str(inventory), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"] and found["problems"][0]["line"] == 2


def damage(path: Path) -> None:
    """A page in the middle is overwritten."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xa5" * 4096)


def test_a_damaged_store_is_found_and_nobody_leads_by_it(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inventory.write_text(INVENTORY + f"state_dir: {inventory.parent}/state\n")
    store, _ = filled(inventory.parent / "state" / "main.db", 300)
    store.release(1)
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    assert main(["check", str(inventory)]) == 0
    damage(inventory.parent / "state" / "main.db")
    for words in (["check", str(inventory)], ["serve", "--yes", "--inventory", str(inventory)]):
        capsys.readouterr()
        assert main(words) == 1
        said = capsys.readouterr().err
        assert "main.db is damaged" in said and "A damaged store" in said and "Traceback" not in said


def test_hosts_have_a_line_each_and_one_advice_for_all_that_need_it(tmp_path: Path) -> None:
    """At 80 columns, with ports that nobody listens on."""
    inventory = tmp_path / "inventory.yaml"
    hosts = '{name: "gpu[01-03]", address: "127.0.0.[3-5]", port: 1, gpus: 8}'
    inventory.write_text(f"hosts: [{hosts}]\nbudgets: [{{name: a}}]\nstate_dir: {tmp_path}/state\n")
    with on_terminal(CommandLine(inventory), "check", "--connect") as terminal:
        assert terminal.ended() == 1
    said = re.sub(r"\x1b\[[0-9;]*m|.*\r", "", terminal.said)
    assert [f"gpu0{n}  ✖ not ready: reachable: refused: 127.0.0.{n + 2} port 1" in said for n in (1, 2, 3)] == [
        True
    ] * 3
    assert said.endswith(
        "gpu01, gpu02, gpu03:\n    Check that sshd runs there and that the port in the inventory is right.\n"
    )
