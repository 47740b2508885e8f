"""A host is looked at again when there is something to see, and one that is well not at every probe."""

from __future__ import annotations

from typing import Any

from opsconsole.health.rounds import QUIET_S, Rounds
from opsconsole.health.rules import Override, Severity
from opsconsole.health.verdict import Said, Status, Verdict
from tests.health.said import GPUS, but, gpu, lost, probe, xid


def of(rounds: Rounds, said: Any, now: float, *kernel: Any, calm: bool = True, fresh: bool = True) -> Verdict:
    return rounds.verdict("h", Said(GPUS, said, 0.0, kernel, fresh), calm, now)


def test_one_that_is_well_is_looked_at_from_time_to_time() -> None:
    rounds = Rounds()
    well = of(rounds, probe(), 0)
    pages = but(3, gpu(3, row_remap_pending=True))
    assert of(rounds, pages, QUIET_S / 2 - 1) is well
    assert of(rounds, pages, QUIET_S + 1).status is Status.WARN
    assert of(rounds, probe(), QUIET_S + 2).status is Status.OK, "one that is not well is looked at each time"


def test_what_fails_or_is_written_is_seen_at_once() -> None:
    rounds = Rounds()
    of(rounds, probe(), 0)
    assert of(rounds, but(3, lost(3)), 1, calm=False).status is Status.FAIL
    assert of(rounds, probe(), 2).status is Status.OK
    assert of(rounds, probe(), 3, xid(79)).status is Status.FAIL
    assert of(rounds, probe(), 4, fresh=False).status is Status.UNKNOWN


def test_what_lasts_is_remembered_from_look_to_look() -> None:
    rounds = Rounds()
    hot = but(3, gpu(3, clock_event_reasons=["hw_thermal_slowdown"]))
    assert [of(rounds, hot, now).status for now in range(0, 80, 20)] == [
        Status.WARN,
        Status.WARN,
        Status.WARN,
        Status.DEGRADED,
    ]


def test_a_site_has_its_word() -> None:
    assert of(Rounds({"xid:79": Override(Severity.INFO)}), probe(), 0, xid(79)).status is Status.OK
