"""The doors of health on the command line: what they print, and how they refuse."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from opsconsole.cli import main


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
    [(["parse-smi", "no-such-file"], "no-such-file: cannot be read"), (["parse-smi"], "parse-smi needs a FILE")],
)
def test_what_cannot_be_read_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", *words]) == 2
    assert said in capsys.readouterr().err
