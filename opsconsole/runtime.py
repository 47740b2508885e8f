"""One cluster in one process: it follows the leader, or leads. Everything that waits has a deadline or can be
cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opsconsole.errors import LostLease, OpsConsoleError, StoreError
from opsconsole.following import Follower
from opsconsole.ports import ClusterStore, Pool, PoolFactory
from opsconsole.site import Site
from scheduler_core.observations import Observation

if TYPE_CHECKING:  # most consoles never lead: what that needs is imported by the first that does
    from opsconsole.leader import Confirm, Leader, Reread

ACCEPTED = "accepted"
ANSWER_S = 0.05
RECONCILE_S = 20.0


@dataclass
class Runtime(Follower):
    """A follower that can ask the leader through the store, and lead itself where it has a `make_pool`.

    `reread` reads the inventory anew for a reload.
    """

    make_pool: PoolFactory | None = None
    reread: Reread | None = None
    leader: Leader | None = field(default=None, init=False)
    led_until_closed: bool = field(default=False, init=False)  # it stopped because it was closed, not beaten

    @property
    def pool(self) -> Pool | None:
        return None if self.leader is None else self.leader.links.pool

    @property
    def decided(self) -> int | None:
        if self.leader is None:
            return super().decided
        return None if self.leader.journal.ahead else self.leader.journal.seq

    async def ask(self, observation: Observation, deadline_s: float = 10.0) -> None:
        """Journalled when it returns: by this process if it leads, else by the leader. Raises OpsConsoleError."""
        for problem in await self.ask_all([observation], deadline_s):
            raise problem

    async def ask_all(self, observations: Sequence[Observation], deadline_s: float = 10.0) -> list[OpsConsoleError]:
        """All at once, so that one tick can take them. Returns why some were not taken; the others were.

        Raises OpsConsoleError where nothing could be asked for.
        """
        if self.leader is None and not self.store.lease().live:
            raise OpsConsoleError("nobody leads this cluster", advice="start a leader: opsconsole serve")
        requests = self.store.ask_all(observations)
        if self.leader is not None:
            self.leader.wake()
        outcomes = await self._answers(requests, deadline_s)
        if self.leader is None:
            self.follow()
        return [_problem(outcome) for outcome in outcomes if outcome != ACCEPTED]

    async def _answers(self, requests: Sequence[int], deadline_s: float) -> list[str | None]:
        """None for those that no leader has answered in time: they are taken back."""
        until = time.monotonic() + deadline_s
        while any(self.store.outcome(request) is None for request in reversed(requests)):
            if time.monotonic() > until:
                for request in requests:
                    self.store.withdraw(request)
                break
            await asyncio.sleep(ANSWER_S)
        return [self.store.outcome(request) for request in requests]

    async def lead(self, kind: str, confirm: Confirm | None = None, reconcile_s: float = RECONCILE_S) -> None:
        """Takes the lease, looks at every host, lets `confirm` see what would happen, then acts till cancelled or
        beaten.

        Raises OpsConsoleError when another process leads, when `confirm` says no, and when the lease is lost.
        """
        if self.make_pool is None:
            raise OpsConsoleError("this process can only follow")
        from opsconsole.leader import Leader

        await asyncio.to_thread(_check, self.store)
        epoch = self.store.acquire(kind)
        if epoch is None:
            lease = self.store.lease()
            raise OpsConsoleError(f"{lease.kind} at {lease.holder} leads this cluster already")
        self.led_until_closed = False
        self.alarm("leader", "")
        try:
            self.follow()
            self.leader = Leader(self, epoch, self.make_pool, self.reread or no_reload)
            await self.leader.act(confirm, reconcile_s)
        except LostLease as error:
            if self.leader is not None:
                self.leader.lose(error.message)
            raise
        finally:
            await self._stop_leading(epoch)

    async def _stop_leading(self, epoch: int) -> None:
        """Hosts and runs go on by themselves. Memory may be ahead of the journal; only the journal counts."""
        leader, self.leader = self.leader, None
        if leader is not None:
            self.led_until_closed = leader.acted and not leader.lost
            await leader.aclose()
        else:
            with contextlib.suppress(StoreError):
                self.store.release(epoch)
        self.recover()
        self.touch()


def _problem(outcome: str | None) -> OpsConsoleError:
    if outcome is not None:
        return OpsConsoleError(outcome)
    return OpsConsoleError("the leader did not answer; nothing was done", advice="look at opsconsole queue")


def _check(store: ClusterStore) -> None:
    """On a connection of its own, as it takes long. Raises StoreError for what nobody may lead by."""
    from opsconsole.hostlinks import OLDER_COPY

    checked = store.another()
    try:
        checked.check()
        if why := checked.get(OLDER_COPY):
            advice = "put the newer one back, or lead with a new store: docs/operations.md, A damaged store"
            raise StoreError(f"this store is an older copy: {why}", advice=advice)
    finally:
        checked.close()


async def no_reload(digest: str) -> Site:
    raise OpsConsoleError("this leader cannot read its inventory anew", advice="restart it")
