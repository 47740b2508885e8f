"""Completion in the shells that people have, with what the cluster has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.told import Told, told
from tests.core.clusters import Cluster
from tests.live.commands import OPSCONSOLE

BASH = "COMP_WORDS=({words}); COMP_CWORD={last}; _opsconsole; printf '%s\\n' \"${{COMPREPLY[@]}}\""
ZSH = "words=({words}); CURRENT={count}; compadd() {{ print -l -- ${{found}} }}; _files() {{ ls }}; _opsconsole"
FISH = "complete -C '{line}'"


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    c = Cluster({"olmo": 1, "olmo/eval": 1, "olmo/train": 2}, {"gpu01": 8, "gpu02": 8, "cpu01": 8})
    c.running("loop-1a", "olmo/eval", gpus=1, name="loop")
    c.running("gone-1a", "olmo/eval", gpus=1)
    c.finish("gone-1a")
    return told(tmp_path, c)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dra", ["drain"]),
        ("drain gpu", ["gpu01", "gpu02"]),
        ("drain gpu01 --mo", ["--mode"]),
        ("drain gpu01 --mode f", ["finish"]),
        ("drain gpu01 --reason x", []),
        ("cancel ", ["loop-1a"]),
        ("logs ", ["loop-1a", "gone-1a"]),
        ("submit --budget olmo/", ["olmo/eval", "olmo/train"]),
        ("explain o", ["olmo", "olmo/eval", "olmo/train"]),
        ("breaker ", ["reset"]),
        ("health gpu", ["gpu01", "gpu02"]),
        ("declare ", ["empty", "dead"]),
        ("declare --reason x dead c", ["cpu01"]),
    ],
)
def test_what_may_stand_next(cluster: Told, typed: str, offered: list[str]) -> None:
    assert cluster.run("complete", "--", *typed.split(" ")).splitlines() == offered


def test_files_are_left_to_the_shell(cluster: Told) -> None:
    for typed in (
        ("plan", ""),
        ("check", "x"),
        ("health", "test", "x"),
        ("queue", "--inventory", "x"),
        ("submit", "--", "x"),
    ):
        assert cluster.run("complete", "--", *typed) == "\x1ffiles\n"


def test_without_a_cluster_nothing_is_said(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [*OPSCONSOLE, "complete", "--", "drain", ""], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("shell", "template"), [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
@pytest.mark.parametrize(("line", "offered"), [("opsconsole drain gpu", "gpu01 gpu02"), ("opsconsole dr", "drain")])
def test_in_real_shells(cluster: Told, tmp_path: Path, shell: str, template: str, line: str, offered: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    command = tmp_path / "bin" / "opsconsole"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {" ".join(OPSCONSOLE)} "$@"\n')
    command.chmod(0o755)
    words = line.split()
    typed = template.format(words=" ".join(words), last=len(words) - 1, count=len(words), line=line)
    script = tmp_path / f"lines.{shell}"
    defined = "compdef() { :; }\n" if shell == "zsh" else ""
    script.write_text(defined + cluster.run("completion", shell) + typed + "\n")
    environment = cluster.environment()
    environment |= {"PATH": f"{command.parent}:{environment['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run([shell, str(script)], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (offered.split(), "")
