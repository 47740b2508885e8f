"""The storm's door: it passes, tells the same story for a seed, and fails where a promise or liveness is broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from scheduler_core import engine, planner, reservations
from scheduler_core.decisions import ReservationEnded, Reserved
from scheduler_core.placement import Room
from scheduler_core.state import WorkloadRecord
from tests.storm.__main__ import main
from tests.storm.story import tell

HOURS = 4.0
Plant = Callable[[pytest.MonkeyPatch], None]


def test_no_seed_breaks_anything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "12", "--hours", "3", "--jobs", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seeds"] == 12 and told["simulated_hours"] > 36 and told["violations"] == []
    assert {"crash", "takeover", "cut", "reboot", "lose_command", "repeat_report"} <= told["faults"].keys()
    assert told["events"]["WorkloadSubmitted"] > 500 and told["invariant_checks"] > 10_000


def test_the_same_seed_tells_the_same_story() -> None:
    assert tell(HOURS, 7) == tell(HOURS, 7) != tell(HOURS, 8)


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--seeds", "0"])
    assert left.value.code == 2 and "--seeds: 0 is less than 1" in capsys.readouterr().err


# -- it can fail ------------------------------------------------------------------------------------------------------


def closes_reserved_gpus_to_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reservations.Reservations, "closed_to", lambda *_: reservations.NOTHING)


def forgets_an_instant(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner._Pass, "keep_reservations", lambda _: None)


def makes_promises_anew(patch: pytest.MonkeyPatch) -> None:
    """Each pass drops what was promised, and promises again at the balances of the moment."""
    real = reservations.Reservations.__init__

    def empty(self: reservations.Reservations, state: object) -> None:
        real(self, state)  # type: ignore[arg-type]
        self.all.clear()

    patch.setattr(reservations.Reservations, "__init__", empty)


def takes_a_promise_away(patch: pytest.MonkeyPatch) -> None:
    def end(self: planner._Pass, record: WorkloadRecord, made: Reserved) -> None:
        self.decisions.append(ReservationEnded(made.workload, "planted"))
        self.room.reservations.drop(made.workload)

    patch.setattr(planner._Pass, "_begin", end)


def ends_no_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine, "drained", lambda _: ())


def starts_nothing_large(patch: pytest.MonkeyPatch) -> None:
    real = Room.find
    patch.setattr(Room, "find", lambda self, workload: None if workload.hosts else real(self, workload))


def raises(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner._Pass, "reserve", lambda self: self.decisions[99_999])


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (closes_reserved_gpus_to_nobody, "is protected on (its )?GPUs"),
        (forgets_an_instant, "nothing is in its way, and it waits"),
        (makes_promises_anew, "was promised .*, and now|reserved twice"),
        (takes_a_promise_away, "the promise to .* is taken away: planted"),
        (ends_no_drain, "faults have stopped: .*the drain .* does not end"),
        (starts_nothing_large, "waits, and could start"),
        (raises, "IndexError: list index out of range"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_defect_is_found(plant: Plant, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    stories = (tell(HOURS, seed) for seed in range(4, 64))  # from one that finds most of them
    assert any(re.search(found, story.broken) for story in stories)


def test_a_violation_is_told_with_its_seed_and_the_last_decisions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends_no_drain(monkeypatch)
    words = ["--first", "2", "--seeds", "2", "--hours", "4", "--jobs", "1"]
    assert main(words) == 1
    first = capsys.readouterr().out
    assert re.search(r"seed \d: faults have stopped: .*\n +[0-9.]+ h  [A-Z]\w+\(", first)
    assert "again: python -m tests.storm --first" in first and "violations" in first.splitlines()[-1]
    assert main(words) == 1
    again = capsys.readouterr().out
    assert [line for line in again.splitlines() if "seeds/s" not in line] == [
        line for line in first.splitlines() if "seeds/s" not in line
    ]
