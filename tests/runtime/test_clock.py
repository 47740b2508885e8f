"""Cluster time alone: steps of the wall clock, suspended machines, restarts and reboots of the head node (G2-24)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opsconsole.clock import LONGEST_OFF_MS, BootClock, WallWatch, boot_id, boot_now_ms, wall_now_ms
from opsconsole.store.store import Store
from scheduler_core.units import DAY, HOUR, MINUTE
from tests.core.clusters import T0, Cluster


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "s.db")
    yield store
    store.close()


class HeadNode:
    """A machine whose clocks the test sets: `up_ms` since its boot, and what people call the time."""

    def __init__(self, store: Store) -> None:
        self.store, self.boot, self.up_ms, self.wall_ms = store, "boot1", 5 * MINUTE, T0

    def pass_by(self, ms: int, wall_ms: int | None = None) -> None:
        """Time passes; the wall clock is stepped where it is told to pass otherwise."""
        self.up_ms += ms
        self.wall_ms += ms if wall_ms is None else wall_ms

    def reboot(self, up_ms: int, wall_ms: int) -> None:
        self.boot, self.up_ms, self.wall_ms = f"{self.boot}'", up_ms, wall_ms

    def wall_watch(self) -> WallWatch:
        return WallWatch(lambda: self.up_ms, lambda: self.wall_ms)

    def clock(self, last_ms: int = 0) -> BootClock:
        """As a process makes it when it starts."""
        return BootClock(self.store, last_ms, self.boot, lambda: self.up_ms, lambda: self.wall_ms)


STEPS = [-HOUR, HOUR, -7 * DAY, 7 * DAY]


def test_a_new_cluster_begins_at_wall_time(store: Store) -> None:
    assert HeadNode(store).clock().now() == T0


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_the_wall_clock_is_not_seen(store: Store, step: int) -> None:
    node = HeadNode(store)
    clock = node.clock()
    node.pass_by(MINUTE)
    node.pass_by(1, step)
    node.pass_by(MINUTE)
    assert clock.now() == T0 + 2 * MINUTE + 1


@pytest.mark.parametrize("step", STEPS)
def test_a_step_in_the_middle_of_a_min_runtime_neither_ends_nor_lengthens_it(store: Store, step: int) -> None:
    node = HeadNode(store)
    clock = node.clock()
    c = Cluster(now=clock.now())
    c.running("w", min_runtime=30 * MINUTE)
    run, begun = c.engine.state.runs[c.run("w")], c.now
    node.pass_by(begun - clock.now())
    node.pass_by(20 * MINUTE, step)
    c.later(clock.now() - c.now)
    assert run.protected(c.now) and run.protected_until() == begun + 30 * MINUTE
    assert c.engine.state.ledgers.used(run.budget, c.now, c.policy.lookback_ms) == run.gpus * 1000 * (
        c.now - run.placed_at
    )
    node.pass_by(10 * MINUTE)
    c.later(clock.now() - c.now)
    assert not run.protected(c.now)


def test_time_that_the_machine_slept_has_passed(store: Store) -> None:
    """CLOCK_BOOTTIME counts it, and so do the hosts, which did not sleep."""
    node = HeadNode(store)
    clock = node.clock()
    node.pass_by(8 * HOUR, 0)
    assert clock.now() == T0 + 8 * HOUR


@pytest.mark.parametrize("step", STEPS)
def test_a_restart_of_the_process_goes_on_where_time_was(store: Store, step: int) -> None:
    node = HeadNode(store)
    clock = node.clock()
    clock.keep()
    node.pass_by(HOUR, step)
    assert node.clock(last_ms=T0 + MINUTE).now() == clock.now() == T0 + HOUR


def test_a_boot_clock_that_goes_back_does_not_take_time_along(store: Store) -> None:
    node = HeadNode(store)
    clock = node.clock()
    node.pass_by(HOUR)
    assert clock.now() == T0 + HOUR
    node.pass_by(-MINUTE)
    assert clock.now() == T0 + HOUR
    node.pass_by(MINUTE + 1)
    assert clock.now() == T0 + HOUR + 1


UP = 3 * MINUTE
LAST = T0 + HOUR


@pytest.mark.parametrize(
    ("wall", "now"),
    [
        (LAST + UP, LAST + UP),  # exactly the least
        (LAST + 2 * HOUR, LAST + 2 * HOUR),  # it was off for a while
        (LAST + UP - 1, LAST + UP),  # behind what has certainly passed
        (LAST - 7 * DAY, LAST + UP),
        (0, LAST + UP),  # no battery
        (LAST + UP + LONGEST_OFF_MS, LAST + UP + LONGEST_OFF_MS),
        (LAST + UP + LONGEST_OFF_MS + 1, LAST + UP),  # not believed
    ],
)
def test_after_a_reboot_at_least_the_uptime_has_passed_and_a_plausible_wall_clock_says_more(
    store: Store, wall: int, now: int
) -> None:
    node = HeadNode(store)
    node.clock().keep()
    node.reboot(UP, wall)
    clock = node.clock(LAST)
    assert clock.now() == now
    clock.keep()
    node.pass_by(MINUTE, -DAY)
    assert node.clock(LAST).now() == now + MINUTE


def test_a_reboot_shows_in_the_uptime_where_the_boot_id_cannot_be_read(store: Store) -> None:
    node = HeadNode(store)
    node.boot = "unknown"
    node.clock().keep()
    node.up_ms, node.wall_ms = UP, LAST + HOUR
    assert node.clock(LAST).now() == LAST + HOUR


def test_it_reads_this_machine(store: Store) -> None:
    first, clock = boot_now_ms(), BootClock(store)
    assert clock.boot_id == boot_id() != ""
    assert abs(clock.now() - wall_now_ms()) < MINUTE
    assert first <= boot_now_ms() and clock.now() <= clock.now()
    assert boot_now_ms() >= time.monotonic_ns() // 1_000_000 - 1


@pytest.mark.parametrize("by", [-HOUR, HOUR, -7 * DAY])
def test_a_step_of_the_wall_clock_is_noticed_once(store: Store, by: int) -> None:
    node = HeadNode(store)
    watch = node.wall_watch()
    for _ in range(3):
        node.pass_by(200)
        assert watch.stepped_ms() == 0
    node.pass_by(200, 200 + by)
    assert watch.stepped_ms() == by
    node.pass_by(200)
    assert watch.stepped_ms() == 0


def test_a_clock_that_a_time_service_slews_has_not_been_set(store: Store) -> None:
    node = HeadNode(store)
    watch = node.wall_watch()
    for _ in range(20):
        node.pass_by(10 * MINUTE, 10 * MINUTE + 300)
        assert watch.stepped_ms() == 0
