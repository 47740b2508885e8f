"""One term of leading: look at every host, show what would happen, then act. Losing the lease ends acting at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from opsconsole.admitting import record_of, refusal, subject_of
from opsconsole.autodrain import AutoDrain
from opsconsole.clock import BootClock, WallWatch, boot_now_ms, wall_now_ms
from opsconsole.errors import LostLease, OpsConsoleError, StoreError, StoreUnavailable
from opsconsole.faultbook import FAULTS, Faultbook
from opsconsole.following import Follower
from opsconsole.hostlinks import HostLinks
from opsconsole.journalled import JournalledEngine
from opsconsole.memory import set_apart, set_apart_forever
from opsconsole.ports import AskedFor, PoolFactory
from opsconsole.readings import KERNEL
from opsconsole.site import INVENTORY, INVENTORY_DIGEST, Site
from scheduler_core.commands import FenceHost
from scheduler_core.decisions import Decision
from scheduler_core.engine import Engine, Step
from scheduler_core.image import StateImage, from_image, to_image
from scheduler_core.lapses import lapsed
from scheduler_core.observations import ClockStepped, Observation, ReloadRequested
from scheduler_core.state import ClusterState

TICK_S = 0.2  # at most, between two looks at what is asked for
READINGS_S = 2.0
RENEW_S = 1.0
ABSENT_MS = 10_000  # a gap in this process's own life after which hosts are asked before anything is decided


@dataclass(frozen=True, slots=True)
class LeadPlan:
    """What leading would do at once, computed on a copy, whose state is then `state`.

    `live_runs` are those before; `fenced` hosts would be powered off.
    """

    decisions: tuple[Decision, ...]
    state: ClusterState
    live_runs: int
    fenced: tuple[str, ...] = ()


Confirm = Callable[[LeadPlan], Awaitable[bool]]
Reread = Callable[[str], Awaitable[Site]]  # by digest; raises OpsConsoleError where the inventory is not that one


class Leader:
    """`picture` is up to date when the term begins; from then on this term moves its engine, and nobody else."""

    def __init__(self, picture: Follower, epoch: int, make_pool: PoolFactory, reread: Reread) -> None:
        self.picture, self.epoch, self.reread = picture, epoch, reread
        self.acted = False
        self.lost = ""  # why, once it is
        self._inbox: list[Observation] = []
        self._awake = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()
        self._beat_ms = boot_now_ms()  # when this process last lived for sure
        self._absent_ms = 0
        self._wall = WallWatch()
        self._kept = ""  # digest of the inventory that the store has
        self.journal = JournalledEngine.of(picture.store, picture.following, epoch, picture.alarm)
        self.links = HostLinks(picture, epoch, make_pool, self._emit, self.lose)
        picture.clock = BootClock(picture.store, picture.state.now)
        picture.clock.keep()
        self.faults, self.drains = Faultbook(picture), AutoDrain(picture)

    async def act(self, confirm: Confirm | None, reconcile_s: float) -> None:
        """Until cancelled. Raises LostLease when beaten, OpsConsoleError when `confirm` says no."""
        self._work(self._renew(), "renew the lease")
        with contextlib.suppress(StoreError):
            self.picture.read_kernels()
        self.links.start()
        await self.links.reconcile(reconcile_s)
        set_apart()
        if confirm is not None and not await confirm(self.preview()):
            raise OpsConsoleError("not confirmed; nothing was done")
        self.acted = True
        self._inbox.insert(0, self.picture.site.inventory)
        await self._turn()
        self._work(self._keep_readings(), "keep readings")
        self._work(self.links.look_forever(), "look again")
        self._work(set_apart_forever(), "set apart what stays")
        self.links.begin()
        while not self.lost:
            await self._wait()
            self._beat()
            if stepped_ms := self._wall.stepped_ms():
                self._emit([ClockStepped(stepped_ms)])
            if self._absent_ms:
                await self._after_absence(reconcile_s)
            if not self.lost:
                await self._turn()
        raise LostLease(self.lost)

    async def aclose(self) -> None:
        """A clean end frees the lease at once."""
        for task in list(self._workers):
            task.cancel()
        await self.links.aclose()
        await self.journal.close(release=not self.lost)

    def wake(self) -> None:
        """Something was asked for."""
        self._awake.set()

    def lose(self, why: str) -> None:
        self.lost = self.lost or why
        self.picture.alarm("leader", f"no longer leading: {why}")
        self._awake.set()

    def preview(self) -> LeadPlan:
        """What the first tick would do, by the code that will do it, on a copy."""
        image = msgspec.json.decode(msgspec.json.encode(to_image(self.picture.state)), type=StateImage)
        copy = Engine(from_image(image))
        step = copy.step(self.picture.clock.now(), [self.picture.site.inventory, *self._inbox])
        fenced = tuple(command.host for command in copy.outstanding() if isinstance(command, FenceHost))
        return LeadPlan(step.decisions, copy.state, len(self.picture.state.runs), fenced)

    # -- ticks -----------------------------------------------------------------------------------------------------

    def _emit(self, observations: Iterable[Observation]) -> None:
        self._inbox.extend(observations)
        if self._inbox:
            self._awake.set()

    async def _wait(self) -> None:
        """For something to happen, or for time to do it."""
        wakeup = self.picture.engine.next_wakeup()
        timeout = TICK_S if wakeup is None else min(TICK_S, max(0.0, (wakeup - self.picture.clock.now()) / 1000))
        if not self._inbox:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):  # wait_for of Python 3.11 can swallow a cancellation
                    await self._awake.wait()
        self._awake.clear()
        self.links.sensing.tick()

    async def _turn(self) -> None:
        """One tick with all that has come in."""
        picture, journal = self.picture, self.journal
        requests = await self._requests()
        inbox, self._inbox = self._inbox, []
        over = lapsed(picture.state, picture.clock.now())
        observations: list[Observation] = [*over, *inbox, *(request.observation for request in requests)]
        observations += self.links.ahead.holds(picture.state, observations)
        step = await self._step(observations, requests)
        if observations or step.decisions:
            picture.remember(picture.store.tail(picture.following.seq))
            picture.following.seq, picture.following.tick = journal.seq, journal.tick
            picture.touch()
        self.links.let_go()
        await self._keep_inventory()
        if not self.lost:
            self.links.send(step.commands)

    async def _step(self, observations: list[Any], requests: Sequence[AskedFor]) -> Step:
        """A request that makes the engine fail must not be the first thing that the next leader does."""
        try:
            return await self.journal.turn(self.picture.clock.now(), observations, [request.id for request in requests])
        except (StoreError, asyncio.CancelledError):
            raise
        except Exception as error:
            for request in requests:
                await self._refuse(request, f"the engine failed: {type(error).__name__}: {error}")
            raise

    async def _requests(self) -> list[AskedFor]:
        """Those that can be journalled; the others are answered at once. A store that cannot be read has none now.

        Of what is asked about one thing the first alone: what comes of it decides about the second, in the next tick.
        """
        taken: list[AskedFor] = []
        about: set[str] = set()
        try:
            for request in self.picture.store.open_requests():
                if (subject := subject_of(request.observation)) and subject in about:
                    continue
                about.add(subject)
                if why := request.refused or await self._refusal(request.observation):
                    await self._refuse(request, why)
                    if (record := record_of(request.observation, why)) is not None:
                        self._inbox.append(record)
                else:
                    taken.append(request)
        except StoreUnavailable as error:
            self.picture.alarm("store", error.message)
        return taken

    async def _refusal(self, asked: Any) -> str:
        """Why it cannot be done; empty where it can, and then a reload is under way in this tick."""
        if not isinstance(asked, ReloadRequested):
            return refusal(self.picture.state, asked)
        try:
            self.picture.site = await self.reread(asked.digest)
        except OpsConsoleError as error:
            return str(error)
        self.links.follow_inventory()
        self._inbox.insert(0, self.picture.site.inventory)
        return ""

    async def _keep_inventory(self) -> None:
        """What this leader goes by, for those who want to see what a changed file changes."""
        site = self.picture.site
        if site.digest != self._kept:
            with contextlib.suppress(StoreUnavailable):
                for key, text in ((INVENTORY, site.document), (INVENTORY_DIGEST, site.digest)):
                    await self.journal.write(self.journal.store.put, key, text)
                self._kept = site.digest

    async def _refuse(self, request: AskedFor, why: str) -> None:
        await self.journal.write(self.journal.store.refuse, self.epoch, request.id, why)

    # -- workers ---------------------------------------------------------------------------------------------------

    def _work(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """One that fails ends leading: better nobody leads than half a leader."""
        task = asyncio.create_task(work, name=name)
        self._workers.add(task)
        task.add_done_callback(self._worker_ended)

    def _worker_ended(self, task: asyncio.Task[None]) -> None:
        self._workers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.lose(f"a worker failed ({task.get_name()}): {type(error).__name__}: {error}")

    async def _renew(self) -> None:
        """The lease is kept while the loop lives; a frozen process finds its epoch beaten when it wakes."""
        while not self.lost:
            self._beat()
            await self._renew_once()
            await asyncio.sleep(RENEW_S)

    async def _renew_once(self) -> None:
        try:
            await self.journal.renew()
            self.picture.lease = self.picture.store.lease()
        except StoreUnavailable as error:
            self.picture.alarm("lease", error.message)
        except StoreError as error:
            self.lose(error.message)

    async def _keep_readings(self) -> None:
        """The newest readings for followers, and what health makes of them."""
        sent: dict[str, int] = {}
        told: dict[str, int] = {}
        while True:
            await self._keep_newer(sent, told)
            if (book := await self.faults.look(wall_now_ms())) is not None:
                with contextlib.suppress(StoreError):
                    await self.journal.write(self.picture.store.put, FAULTS, book)
            self._emit(self.drains.look(self.faults.verdicts))
            await asyncio.sleep(READINGS_S)

    async def _keep_newer(self, sent: dict[str, int], told: dict[str, int]) -> None:
        """`sent`: when the probe of each host was read that was kept last; `told`: how much of its kernel was."""
        readings = self.picture.readings
        probes = {host: r for host, r in readings.items() if r.body and sent.get(host) != r.wall_ms}
        kernels = {h: r for h, r in readings.items() if (r.kernel or h in told) and told.get(h) != r.kernel_heard}
        sent |= {host: r.wall_ms for host, r in probes.items()}
        told |= {host: r.kernel_heard for host, r in kernels.items()}
        rows = {host: (r.wall_ms, r.body) for host, r in probes.items()}
        rows |= {host + KERNEL: (wall_now_ms(), r.kernel_row()) for host, r in kernels.items()}
        if rows:
            with contextlib.suppress(StoreError):
                await self.journal.write(self.picture.store.put_readings, rows)

    # -- this process's own absence (SIGSTOP, a suspended laptop) --------------------------------------------------

    def _beat(self) -> None:
        now = boot_now_ms()
        if now - self._beat_ms > ABSENT_MS:
            self._absent_ms = now - self._beat_ms
        self._beat_ms = now

    async def _after_absence(self, longest_s: float) -> None:
        """Nobody is declared late, lost or dead because we were away: first every host speaks again."""
        away_s = self._absent_ms / 1000
        self._absent_ms = 0
        await self._renew_once()
        if self.lost:
            return
        words = f"this process did not run for {away_s:.0f} s; hosts are asked before anything is done"
        self.picture.alarm("absence", words)
        await self.links.reconcile_anew(longest_s)
        self.picture.alarm("absence", "")
