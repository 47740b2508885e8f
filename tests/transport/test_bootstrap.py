"""The boot script under every POSIX shell of this machine, without SSH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opsconsole.transport.bootstrap import BOOT_MARK, Kit, boot_script, parse_boot
from tests.transport.standin import standin_kit

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "zsh": ["zsh", "--emulate", "sh"],
    "busybox": ["busybox", "sh"],
    "ksh": ["ksh"],
    "mksh": ["mksh"],
}
KIT = standin_kit()


def start(argv: list[str], directory: Path, kit: Kit, **env: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HOME": str(directory), **env},
    )
    assert process.stdin is not None
    process.stdin.write(boot_script(kit, "n0nce", str(directory / "state"), None))
    process.stdin.flush()
    return process


def boot_line(process: subprocess.Popen[bytes]) -> dict[str, object]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(BOOT_MARK):
            fields: dict[str, object] = json.loads(line.removeprefix(BOOT_MARK))
            return fields
    raise AssertionError("no BOOT line")


@pytest.mark.parametrize("name", SHELLS)
def test_every_shell_places_the_kit_and_becomes_the_agent(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here")
    process = start(SHELLS[name], tmp_path, KIT)
    boot = parse_boot(boot_line(process), "n0nce")
    assert boot is not None and boot.python is not None and not boot.have
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(KIT.data + b'{"id": 1, "op": "echo", "text": "hi"}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline()) == {"placed": True}
    assert json.loads(process.stdout.readline())["echo"] == "hi"
    process.communicate(timeout=10)
    assert process.returncode == 0


def test_wrong_bytes_are_not_put_in_place(tmp_path: Path) -> None:
    process = start(["sh"], tmp_path, Kit(KIT.data, "0" * 64))
    boot_line(process)
    out, _ = process.communicate(KIT.data, timeout=10)
    assert json.loads(out)["placed"] is False and process.returncode == 4
    assert os.listdir(tmp_path / "state" / "kit") == []


def test_a_connection_that_ends_in_mid_transfer_leaves_no_half_kit(tmp_path: Path) -> None:
    process = start(["sh"], tmp_path, KIT)
    boot_line(process)
    process.communicate(KIT.data[:50], timeout=10)
    assert os.listdir(tmp_path / "state" / "kit") == []


def test_odd_home_directories_stay_json(tmp_path: Path) -> None:
    process = start(["sh"], tmp_path, KIT, HOME='/ho"me\\with\nodd\t' + "ä")
    assert boot_line(process)["home"] == '/ho"me\\with odd ä'
    process.kill()
    process.communicate()


def test_the_umask_of_the_account_is_kept_for_runs_and_the_state_is_private(tmp_path: Path) -> None:
    process = start(["sh", "-c", "umask 022; exec sh"], tmp_path, KIT)
    boot_line(process)
    out, _ = process.communicate(KIT.data + b'{"id": 1, "op": "umask"}\n', timeout=10)
    assert json.loads(out.splitlines()[1])["umask"] == 0o022
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_another_nonce_is_not_our_answer() -> None:
    assert parse_boot({"nonce": "other", "have": True}, "n0nce") is None
