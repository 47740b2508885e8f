"""Standard streams as people have them: full disks, readers that leave, locales without our marks."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from opsconsole.cli.streams import prepare
from tests.cli.told import Told, told
from tests.core.clusters import Cluster
from tests.live.commands import OPSCONSOLE


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    return told(tmp_path, Cluster())


@pytest.mark.parametrize("words", [("queue",), ("hosts", "--json"), ("snapshot",), ("completion", "bash")])
def test_a_full_disk_is_said(cluster: Told, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*OPSCONSOLE, *words], env=cluster.environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1 and "defect" not in done.stderr
    assert "opsconsole: cannot write the output: No space left on device\n" in done.stderr


@pytest.mark.parametrize("words", [("hosts",), ("hosts", "--json"), ("snapshot",)])
def test_a_reader_that_leaves_ends_it_in_silence(cluster: Told, words: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [*OPSCONSOLE, *words], env=cluster.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0 and "opsconsole:" not in said and "Error" not in said


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_without_our_marks_gets_near_words(cluster: Told, encoding: str) -> None:
    environment = {**cluster.environment(), "PYTHONIOENCODING": encoding}
    done = subprocess.run([*OPSCONSOLE, "hosts"], env=environment, capture_output=True)
    assert done.returncode == 0 and b"? no reading" in done.stdout
    refused = subprocess.run([*OPSCONSOLE, "explain", "n\u00e9\u2192"], env=environment, capture_output=True)
    assert refused.returncode == 2 and b"defect" not in refused.stderr


def test_near_words() -> None:
    prepare()
    text = "● live ✖ lost → … é 漢"
    assert text.encode("ascii", "opsconsole.plain").decode() == "* live x lost -> ... e ?"


def test_closed_streams_are_no_defect(cluster: Told) -> None:
    line = f"{OPSCONSOLE[0]} -m opsconsole queue >&- 2>&-"
    assert subprocess.run(["sh", "-c", line], env=cluster.environment()).returncode == 0


def test_a_console_whose_screen_goes_elsewhere_is_refused(cluster: Told) -> None:
    """It draws on the standard error."""
    leader, follower = pty.openpty()
    done = subprocess.run(
        [*OPSCONSOLE], env=cluster.environment(), stdin=follower, stdout=follower, stderr=subprocess.PIPE, text=True
    )
    os.close(leader)
    os.close(follower)
    assert done.returncode == 2 and done.stderr.startswith("opsconsole: the console needs a terminal\n")
