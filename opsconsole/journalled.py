"""A tick, leader's side: step, commit, then act. Journal first: nothing is sent before its tick is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from opsconsole.errors import StoreError, StoreUnavailable
from opsconsole.ports import ClusterStore, Recovery
from scheduler_core.engine import Engine, Step
from scheduler_core.invariants import check

SNAPSHOT_ROWS = 20_000
CHECK_TICKS = 200
FULL_RETRY_S = 1.0


@dataclass
class JournalledEngine:
    """The engine of the leader with its journal. Writes run on one thread; ticks never overlap.

    `ahead`: the engine has taken a step that is not known to be on disk. Its state is then no truth, and no snapshot.
    """

    store: ClusterStore
    engine: Engine
    epoch: int
    tick: int
    seq: int
    alarm: Callable[[str, str], None]  # what about, text ("" when it is over)
    writer: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "store"))
    snapshot_seq: int = 0
    ahead: bool = False

    @classmethod
    def of(
        cls, store: ClusterStore, recovered: Recovery, epoch: int, alarm: Callable[[str, str], None]
    ) -> JournalledEngine:
        """The writer's thread needs a connection of its own."""
        seq = recovered.seq
        return cls(store.another(), recovered.engine, epoch, recovered.tick, seq, alarm, snapshot_seq=seq)

    async def turn(self, now: int, observations: Sequence[Any], requests: Sequence[int] = ()) -> Step:
        """One tick, on disk when it returns. Raises LostLease when somebody else leads."""
        self.ahead = True
        step = self.engine.step(now, observations)
        if observations or step.decisions or requests:
            await self._commit(now, observations, step, requests)
        self.ahead = False
        await self._maintain()
        return step

    async def _commit(self, now: int, observations: Sequence[Any], step: Step, requests: Sequence[int]) -> None:
        """Until there is room: a leader whose store cannot be written stops acting, and loses nothing."""
        tick = self.tick + 1
        while True:
            try:
                self.seq = await self.write(
                    self.store.commit, self.epoch, tick, now, observations, step.decisions, step.commands, requests
                )
                self.tick = tick
                self.alarm("store", "")
                return
            except StoreUnavailable as error:
                self.alarm("store", f"nothing is done until the store can be written: {error.message}")
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
        """Nothing moves while it is written. Old journal leaves in small parts, after snapshots."""
        self.snapshot_seq = self.seq
        try:
            await self.write(self.store.snapshot, self.engine, self.tick, self.seq, self.epoch)
            await self.write(self.store.archive)
            self.alarm("archive", "")
        except StoreUnavailable as error:
            self.alarm("store", error.message)
        except OSError as error:
            self.alarm("archive", f"old journal stays where it is: {error}")

    async def renew(self) -> None:
        """Raises LostLease. A store that cannot be written now is said; the lease then runs out by itself."""
        try:
            await self.write(self.store.renew, self.epoch)
            self.alarm("lease", "")
        except StoreUnavailable as error:
            self.alarm("lease", f"it cannot be renewed and runs out: {error.message}")

    async def close(self, release: bool = True) -> None:
        """A clean end: a snapshot, and the lease is free at once."""
        try:
            if release and not self.ahead and self.seq != self.snapshot_seq:
                await self.snapshot()
            if release:
                await self.write(self.store.release, self.epoch)
        except StoreError as error:
            self.alarm("store", error.message)
        finally:
            await asyncio.to_thread(self.writer.shutdown, True)
            self.store.close()
