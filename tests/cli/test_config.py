"""`opsconsole config`, and own keys that are wrong."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from opsconsole.cli import main
from opsconsole.settings import ABOUT
from opsconsole.ui.actions import ACTIONS
from opsconsole.ui.themes import THEMES
from tests.live.commands import OPSCONSOLE

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    for name in (*ABOUT, "inventory"):
        monkeypatch.delenv(f"OPSCONSOLE_{name.upper()}", raising=False)
    (tmp_path / "opsconsole").mkdir()

    def run(*words: str) -> tuple[int, str, str]:
        status = main(words)
        return status, *capsys.readouterr()

    return run


def test_paths_say_what_is_there(said: Said, tmp_path: Path) -> None:
    (tmp_path / "opsconsole/config.toml").touch()
    status, out, _ = said("config", "path")
    assert status == 0 and f"user    {tmp_path}/opsconsole/config.toml\n" in out
    assert f"keys    {tmp_path}/opsconsole/keys.toml  (not there)\n" in out
    listed = json.loads(said("config", "path", "--json")[1])
    assert [(row["what"], row["there"]) for row in listed] == [
        ("user", True),
        ("system", False),
        ("keys", False),
        ("state", False),
    ]


def test_what_counts_is_printed_as_a_file_that_would_set_the_same(said: Said, tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text(
        "hosts: [{name: a, gpus: 1}]\nbudgets: [{name: x}]\nconsole:\n  theme: light\n"
    )
    status, out, _ = said("--no-mouse", "config", "print", "--marks", "ascii")
    assert status == 0 and "# inventory.yaml:4" in out and "# --no-mouse" in out
    printed = tomllib.loads(out)
    assert printed["theme"] == "light" and printed["mouse"] is False and printed["marks"] == "ascii"
    (tmp_path / "opsconsole/config.toml").write_text(out)
    assert said("config", "validate")[0] == 0
    listed = json.loads(said("config", "print", "--json")[1])
    assert listed["theme"] == {"value": "light", "from": "inventory.yaml:4"} and {*listed} == {*ABOUT}


def test_validate_says_everything_and_leaves_with_two(said: Said, tmp_path: Path) -> None:
    (tmp_path / "opsconsole/config.toml").write_text('thme = "dark"\n')
    status, out, err = said("config", "validate")
    assert (status, out) == (2, "") and "config.toml:1: thme: is not known; did you mean 'theme'?" in err
    status, out, _ = said("config", "validate", "--json")
    (problem,) = json.loads(out)["problems"]
    assert status == 2 and (problem["line"], problem["field"]) == (1, "thme")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('zoom = "Z"\ndrain = "C"\n', "keys.toml:2: drain: key C is claimed by drain and by cordon; give one of them"),
        ('drian = "X"\n', "keys.toml:1: drian: is no action; did you mean 'drain'?"),
        ('drain = "Hyper-X"\n', "keys.toml:1: drain: 'Hyper-X' is no key; write for example D, Ctrl-R, F5 or Esc"),
    ],
)
def test_keys_that_are_wrong_are_refused(said: Said, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "opsconsole/keys.toml").write_text(text)
    status, _, err = said("config", "validate")
    assert status == 2 and says in err


def test_the_console_refuses_to_start_with_keys_that_clash(said: Said, tmp_path: Path) -> None:
    """On a terminal, before anything is drawn."""
    (tmp_path / "inventory.yaml").write_text("hosts: [{name: a, gpus: 1}]\nbudgets: [{name: x}]\n")
    (tmp_path / "opsconsole/keys.toml").write_text('drain = "C"\n')
    master, slave = pty.openpty()
    done = subprocess.run(OPSCONSOLE, stdin=slave, stdout=slave, stderr=slave, timeout=60)
    drawn = os.read(master, 65_536).decode()
    os.close(master)
    os.close(slave)
    assert done.returncode == 2
    assert drawn.splitlines() == [
        f"{tmp_path}/opsconsole/keys.toml:1: drain: key C is claimed by drain and by cordon; "
        "give one of them another key"
    ]


def test_choices_are_what_there_is() -> None:
    assert ABOUT["theme"].choices == tuple(THEMES)
    assert {*ABOUT["screen"].choices} <= {action.name for action in ACTIONS if action.group == "screens"}
