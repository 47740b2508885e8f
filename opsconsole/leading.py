"""A tick, leader's side: step, commit, then act. Journal first: nothing is sent before its tick is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from opsconsole.store.errors import LostLease, StoreUnavailable
from opsconsole.store.store import Recovered, Store
from scheduler_core.engine import Engine, Step
from scheduler_core.invariants import check

SNAPSHOT_ROWS = 20_000
CHECK_TICKS = 200
FULL_RETRY_S = 1.0


@dataclass
class Leading:
    """The engine of the leader with its journal. Writes run on one thread; ticks never overlap."""

    store: Store
    engine: Engine
    epoch: int
    tick: int
    seq: int
    alarm: Callable[[str, str], None]  # what about, text ("" when it is over)
    writer: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "store"))
    snapshot_seq: int = 0

    @classmethod
    def of(cls, store: Store, recovered: Recovered, epoch: int, alarm: Callable[[str, str], None]) -> Leading:
        own = Store(store.path, before_write=store.before_write)  # the writer's thread needs a connection of its own
        return cls(own, recovered.engine, epoch, recovered.tick, recovered.seq, alarm, snapshot_seq=recovered.seq)

    async def turn(self, now: int, observations: Sequence[Any], requests: Sequence[int] = ()) -> Step:
        """One tick, on disk when it returns. Raises LostLease when somebody else leads."""
        step = self.engine.step(now, observations)
        if observations or step.decisions or requests:
            self.tick += 1
            await self._commit(now, observations, step, requests)
            await self._maintain()
        return step

    async def _commit(self, now: int, observations: Sequence[Any], step: Step, requests: Sequence[int]) -> None:
        """Until there is room: a leader whose store cannot be written stops acting, and loses nothing."""
        while True:
            try:
                self.seq = await self.write(
                    self.store.commit, self.epoch, self.tick, now, observations, step.decisions, step.commands, requests
                )
                self.alarm("store", "")
                return
            except LostLease:
                raise
            except StoreUnavailable as error:
                self.alarm("store", f"nothing is done until the store can be written: {error.args[0]}")
                await asyncio.sleep(FULL_RETRY_S)

    async def write(self, call: Callable[..., Any], *args: Any) -> Any:
        """A store call on the writer's thread."""
        return await asyncio.get_running_loop().run_in_executor(self.writer, call, *args)

    async def _maintain(self) -> None:
        if self.tick % CHECK_TICKS == 0:
            problems = check(self.engine.state)
            self.alarm("invariants", "; ".join(problems[:3]))
        if self.seq - self.snapshot_seq >= SNAPSHOT_ROWS:
            await self.snapshot()

    async def snapshot(self) -> None:
        """On this thread's state: nothing moves while it is written."""
        self.snapshot_seq = self.seq
        try:
            await self.write(self.store.snapshot, self.engine, self.tick, self.seq)
        except StoreUnavailable as error:
            self.alarm("store", str(error.args[0]))

    async def renew(self) -> None:
        try:
            await self.write(self.store.renew, self.epoch)
        except StoreUnavailable as error:
            self.alarm("store", str(error.args[0]))

    async def close(self, release: bool = True) -> None:
        """A clean end: a snapshot, and the lease is free at once."""
        try:
            await self.snapshot()
            if release:
                await self.write(self.store.release, self.epoch)
        finally:
            self.writer.shutdown(wait=True)
            self.store.close()
