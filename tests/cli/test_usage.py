"""Wrong words: one message, with what was probably meant."""

from __future__ import annotations

import pytest

from opsconsole.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc"], "'chekc' is no command; did you mean 'check'?"),
        (["queue", "--jsn"], "opsconsole queue does not take --jsn"),
        (["drain"], "missing: HOST, --reason"),
        (["drain", "h", "--reason", " "], "--reason: say why; it is kept with the action"),
        (["drain", "h", "--reason", "x", "--mode", "finsh"], "'finsh' is no value of --mode; did you mean 'finish'?"),
        (
            ["cordon", "h", "--reason", "x", "--for", "0s"],
            "--for 0s is over at once\n  say for how long, for example 2h",
        ),
        (["drain", "h", "--reason", "x", "--mode", "finish", "--deadline", "0"], "--deadline 0 is over at once"),
        (["submit", "--budget", "a", "--gpus", "1", "--min-runtime", "-5m", "--", "x"], "--min-runtime=VALUE"),
        (["submit", "--budget", "a", "--gpus", "1", "--name", "x\udcff", "--", "t"], "'x\\udcff' is not UTF-8"),
        (["drain", "h", "--reason", "\udcc3(", "--yes"], "is not UTF-8"),
        (["submit", "--budget", "a", "--gpus", "1", "python", "t.py"], "opsconsole submit … -- python t.py\n"),
        (["submit", "--budget", "a", "--gpus", "1", "t", "--resume"], "opsconsole submit … -- t --resume\n"),
        (["submit", "--budget", "a", "--gpus", "1", "t", "--name", "x"], "stands behind `--`"),
    ],
)
def test_it_says_what_was_meant(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    heard = capsys.readouterr()
    assert said in heard.err and heard.err.startswith("opsconsole: ")
    assert not heard.out and len(heard.err.splitlines()) == 2, "no usage of everything"
