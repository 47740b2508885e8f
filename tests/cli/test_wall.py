"""Steps of the wall clock, as screens show them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from opsconsole.cli.wall import ScreenClock
from tests.ui.conftest import utc  # noqa: F401 - a fixture for every test

NOON = 1_764_504_000_000  # 12:00:00 in UTC


@dataclass
class Clocks:
    """Time passes for both; somebody sets one of them."""

    boot: int = 5_000
    wall: int = NOON

    def pass_by(self, ms: int) -> None:
        self.boot, self.wall = self.boot + ms, self.wall + ms


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def shown(clocks: Clocks) -> ScreenClock:
    return ScreenClock(lambda: clocks.boot, lambda: clocks.wall)


def test_a_step_back_is_told_and_times_go_on(clocks: Clocks, shown: ScreenClock) -> None:
    clocks.pass_by(10_000)
    assert shown.now() == NOON + 10_000 and shown.alarm == ""
    clocks.wall -= 3_600_000
    clocks.pass_by(1_000)
    assert shown.now() == NOON + 11_000
    assert shown.alarm == (
        "the clock of this machine was set back by 1h at 12:00:11: times on this screen go on as if it had not been"
    )
    said = shown.alarm
    clocks.pass_by(3_000_000)
    assert shown.now() == NOON + 3_011_000 and shown.alarm == said, "for as long as they are apart"


def test_a_clock_that_was_set_back_and_comes_again_is_followed_again(clocks: Clocks, shown: ScreenClock) -> None:
    clocks.wall -= 60_000
    shown.now()
    clocks.wall += 60_000
    clocks.pass_by(1_000)
    assert shown.now() == NOON + 1_000 and shown.alarm == ""


def test_a_step_forward_is_followed_and_told_for_a_while(clocks: Clocks, shown: ScreenClock) -> None:
    clocks.wall += 7_200_000
    assert shown.now() == NOON + 7_200_000
    assert shown.alarm == "the clock of this machine was set forward by 2h at 14:00:00"
    clocks.pass_by(601_000)
    shown.now()
    assert shown.alarm == ""


def test_a_time_service_that_slews_is_no_step_and_moves_nothing_back(clocks: Clocks, shown: ScreenClock) -> None:
    before = shown.now()
    for _ in range(100):
        clocks.pass_by(1_000)
        clocks.wall -= 50
        now = shown.now()
        assert now >= before and shown.alarm == ""
        before = now
    clocks.wall -= 1_500
    assert shown.now() == before, "it stands still until the clock is there"
