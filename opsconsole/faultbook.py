"""Which cards broke where, kept by the leader for as long as the store lives. Nothing that it decides depends on it."""

from __future__ import annotations

import asyncio
import time

from opsconsole.following import Follower
from opsconsole.health.lemon import Fault, faults_of, grown, read_book, write_book
from opsconsole.health.said import said_of
from opsconsole.health.verdict import Verdict
from opsconsole.probes import is_calm
from scheduler_core.state import HostRecord

FAULTS = "faults"  # its key in the store
AT_ONCE = 16  # hosts


class Faultbook:
    def __init__(self, picture: Follower) -> None:
        self.picture = picture
        self.book = read_book(picture.store.get(FAULTS))
        self.verdicts: dict[str, Verdict] = {}  # of the newest look

    async def look(self, wall_ms: int) -> str | None:
        """At every host, some at a time: screens and links go on between. The text to keep, where there is news."""
        found: list[Fault] = []
        verdicts: dict[str, Verdict] = {}
        for n, record in enumerate(list(self.picture.state.hosts.values())):
            if n and n % AT_ONCE == 0:
                await asyncio.sleep(0)
            found += self._of(record, wall_ms, verdicts)
        self.verdicts = verdicts
        book = grown(self.book, found)
        if book is None:
            return None
        self.book = book
        return write_book(book)

    def _of(self, record: HostRecord, wall_ms: int, verdicts: dict[str, Verdict]) -> list[Fault]:
        name = record.host.name
        reading = self.picture.readings.get(name)
        if reading is None or reading.probe is None or reading.probe_at is None:
            return []
        probe, now_ms = reading.probe, self.picture.state.now
        age_s = time.monotonic() - reading.probe_at
        said = said_of(record, probe, age_s, tuple(reading.kernel), now_ms, self.picture.site.interval_s)
        verdict = self.picture.rounds.verdict(name, said, is_calm(probe), now_ms / 1000)
        verdicts[name] = verdict
        faults = faults_of(name, verdict, probe, wall_ms) if said.fresh and verdict.findings else []
        probe.forget()
        return faults
