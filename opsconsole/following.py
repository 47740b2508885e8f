"""The picture of one cluster: the journal folded into an engine, the newest readings, and what a person must know."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from opsconsole.clock import BootClock, wall_now_ms
from opsconsole.errors import StoreError
from opsconsole.health.rounds import Rounds
from opsconsole.ports import ClusterStore, JournalEvent, Leadership
from opsconsole.readings import KERNEL, HostReading
from opsconsole.site import Site
from scheduler_core.state import ClusterState

FOLLOW_S = 0.2
KEPT_MS = 15_000
EVENTS_KEPT = 5000
LOOK_BACK_MS = 24 * 3_600_000


@dataclass
class Follower:
    """`version` grows whenever there is news. Readings are none: they come all the time, and are shown as they age."""

    site: Site
    store: ClusterStore
    alarms: dict[str, str] = field(default_factory=dict, init=False)
    events: list[JournalEvent] = field(default_factory=list, init=False)  # worth telling, the newest last
    readings: defaultdict[str, HostReading] = field(default_factory=lambda: defaultdict(HostReading), init=False)
    version: int = field(default=0, init=False)
    rounds: Rounds = field(init=False)  # what is thought of hosts' health
    _kept: dict[str, Any] = field(default_factory=dict, init=False)
    _kept_at: tuple[int | None, int] = field(default=(None, 0), init=False)

    def __post_init__(self) -> None:
        self.rounds = Rounds(self.site.health)
        self.recover()
        for warning in self.following.warnings:
            self.alarms["snapshot"] = warning
        self.clock = BootClock(self.store, self.state.now)
        self.followed_at = time.monotonic()
        self.lease: Leadership = self.store.lease()

    def recover(self) -> None:
        """From the store, whatever this process believed before."""
        self.following = self.store.recover()
        self.engine = self.following.engine

    @property
    def state(self) -> ClusterState:
        return self.engine.state

    def kept(self) -> dict[str, Any]:
        """Where screens keep what they worked out of all workloads: empty again once anything is decided, and four
        times a minute, since a few reasons move with time alone.
        """
        at = (self.decided, self.clock.now() // KEPT_MS)
        if at != self._kept_at or at[0] is None:
            self._kept_at, self._kept = at, {}
        return self._kept

    @property
    def decided(self) -> int | None:
        """The row of the journal at which the state stands; None while it is ahead of the journal."""
        return self.following.seq

    def touch(self) -> None:
        self.version += 1

    def alarm(self, about: str, text: str) -> None:
        """Stands until it is over: an empty text ends it."""
        if self.alarms.get(about, "") == text:
            return
        if text:
            self.alarms[about] = text
        else:
            del self.alarms[about]
        self.touch()

    def follow(self) -> bool:
        """Folds what the leader has journalled since the last call. True when there was something."""
        events = self.store.tail(self.following.seq)
        epoch, self.lease = self.lease.epoch, self.store.lease()
        if self.lease.epoch != epoch:
            self.clock = BootClock(self.store, self.state.now)  # as the new leader has anchored it
        if not events:
            return False
        self.following.fold(events)
        self.remember(events)
        self.touch()
        return True

    def remember(self, events: Sequence[JournalEvent]) -> None:
        self.events.extend(e for e in events if e.told)
        del self.events[:-EVENTS_KEPT]

    def look_back(self) -> None:
        """What was told in the day before this process began to follow, for those who look on."""
        known = self.events[0].seq if self.events else self.following.seq + 1
        told = self.store.since(wall_now_ms() - LOOK_BACK_MS, EVENTS_KEPT)
        self.events[:0] = [event for event in told if event.seq < known]
        self.touch()

    async def follow_forever(self) -> None:
        """Until cancelled. A store that fails is said, and tried again."""
        while True:
            try:
                self.follow()
                self.followed_at = time.monotonic()
                self.read_readings()
                self.alarm("store", "")
            except StoreError as error:
                self.alarm("store", f"cannot follow: {error.message}")
            await asyncio.sleep(FOLLOW_S)

    def read_readings(self) -> None:
        """The newest readings, as the leader left them in the store; their age counts from when they were read."""
        known = {host: reading.wall_ms for host, reading in self.readings.items()}
        known |= {host + KERNEL: reading.kernel_at for host, reading in self.readings.items()}
        for host, (wall_ms, body) in self.store.readings(known).items():
            if host.endswith(KERNEL):
                self.readings[host.removesuffix(KERNEL)].take_kernel(wall_ms, body)
                continue
            reading = self.readings[host]
            reading.body, reading.wall_ms = body, wall_ms
            reading.probe_at = time.monotonic() - max(0.0, time.time() - wall_ms / 1000)

    def read_kernels(self) -> None:
        """What kernels told the leader before: agents do not repeat it."""
        for key, (wall_ms, body) in self.store.readings({}, ending=KERNEL).items():
            self.readings[key.removesuffix(KERNEL)].take_kernel(wall_ms, body)
