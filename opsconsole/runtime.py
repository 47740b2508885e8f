"""The live loop of one cluster: follows the leader, or leads it. Everything that waits has a deadline or can be
cancelled.

A follower folds the journal into its own engine and asks the leader through the store. Leading takes the lease,
connects to every
host, looks at what runs there, shows what would happen, and then acts. Losing the lease ends acting at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from opsconsole.admitting import refusal
from opsconsole.clock import BootClock, boot_now_ms
from opsconsole.dispatch import Dispatch
from opsconsole.errors import LostLease, OpsConsoleError, StoreError, StoreUnavailable
from opsconsole.leading import Leading
from opsconsole.ports import AskedFor, ClusterStore, Leadership, Pool, PoolFactory
from opsconsole.sensing import HostReading, Sensing
from scheduler_core.commands import Command, StartMember, StopMember
from scheduler_core.decisions import Decision
from scheduler_core.engine import Engine, Step
from scheduler_core.ids import HostName
from scheduler_core.image import StateImage, from_image, to_image
from scheduler_core.observations import HostStale, InventoryLoaded, Observation
from scheduler_core.state import ClusterState

ACCEPTED = "accepted"
POLL_S = 0.2
READINGS_S = 2.0
RECONCILE_S = 20.0
RENEW_S = 1.0
LOOK_S = 10.0  # between questions to a host that owes an answer
ABSENT_MS = 10_000  # a gap in this process's own life after which hosts are asked before anything is decided
EVENTS_KEPT = 5000


@dataclass(frozen=True, slots=True)
class Site:
    """What the runtime knows of its cluster beside the store."""

    name: str
    inventory: InventoryLoaded
    address: Callable[[str], str]
    interval_s: float = 2.0
    system_processes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeadPlan:
    """What leading would do at once, computed on a copy; `silent` hosts have not answered."""

    decisions: tuple[Decision, ...]
    live_runs: int
    silent: tuple[str, ...]


@dataclass
class Runtime:
    """One cluster. `changed` is set whenever there is something new to show."""

    site: Site
    store: ClusterStore
    make_pool: PoolFactory | None = None  # None: this process can only follow
    leading: Leading | None = None
    pool: Pool | None = None
    alarms: dict[str, str] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)  # ports.JournalEvent, the newest last
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    version: int = 0
    _inbox: list[Observation] = field(default_factory=list)
    _awake: asyncio.Event = field(default_factory=asyncio.Event)
    _background: set[asyncio.Task[None]] = field(default_factory=set)
    led_until_closed: bool = False  # it led, and stopped because it was closed, not beaten
    _acted: bool = False
    _lost: str = ""
    _beat_ms: int = 0  # boot-time clock when this process last lived for sure
    _absent_ms: int = 0

    def __post_init__(self) -> None:
        recovered = self.store.recover()
        for warning in recovered.warnings:
            self.alarms["snapshot"] = warning
        self.following, self.engine = recovered, recovered.engine
        self.clock = BootClock(self.store, self.engine.state.now)
        self.followed_at = time.monotonic()
        policy = self.site.inventory.policy
        self.sensing = Sensing(
            self.store.id,
            self._gpus,
            self._emit,
            policy.free_memory_mib,
            self.site.interval_s,
            state=lambda: self.engine.state,
        )
        self.dispatch: Dispatch | None = None
        self.lease: Leadership = self.store.lease()

    # -- for those who look ----------------------------------------------------------------------------------------

    @property
    def state(self) -> ClusterState:
        return self.engine.state

    @property
    def readings(self) -> dict[str, HostReading]:
        return self.sensing.readings

    def _gpus(self, host: str) -> int:
        return next((h.gpus for h in self.site.inventory.hosts if h.name == host), 0)

    def _touch(self) -> None:
        self.version += 1
        self.changed.set()

    def alarm(self, about: str, text: str) -> None:
        """Stands until it is over: an empty text ends it."""
        if text:
            self.alarms[about] = text
        elif about not in self.alarms:
            return
        else:
            del self.alarms[about]
        self._touch()

    # -- following -------------------------------------------------------------------------------------------------

    def follow(self) -> bool:
        """Folds what the leader has journalled since the last call. True when there was something."""
        events = self.store.tail(self.following.seq)
        self.lease = self.store.lease()
        if not events:
            return False
        self.following.fold(events)
        self.remember(events)
        self._touch()
        return True

    def remember(self, events: Sequence[Any]) -> None:
        self.events.extend(e for e in events if e.told)
        del self.events[:-EVENTS_KEPT]

    async def follow_forever(self) -> None:
        """Until cancelled, or until this process leads. A store that fails is said, and tried again."""
        while self.leading is None:
            try:
                self.follow()
                self.followed_at = time.monotonic()
                self.read_readings()
                self.alarm("store", "")
            except StoreError as error:
                self.alarm("store", f"cannot follow: {error.args[0]}")
            await asyncio.sleep(POLL_S)

    def read_readings(self) -> None:
        """The newest readings, as the leader left them in the store; their age counts from when they were read."""
        for host, (wall_ms, body) in self.store.readings().items():
            reading = self.sensing.of(host)
            if reading.wall_ms != wall_ms:
                reading.probe, reading.wall_ms = msgspec.json.decode(body), wall_ms
                age_s = max(0.0, time.time() - wall_ms / 1000)
                reading.probe_at = time.monotonic() - age_s

    # -- asking ----------------------------------------------------------------------------------------------------

    async def ask(self, observation: Observation, deadline_s: float = 10.0) -> None:
        """Journalled when it returns: by this process if it leads, else by the leader. Raises OpsConsoleError."""
        if self.leading is None and not self.store.lease().live:
            raise OpsConsoleError("nobody leads this cluster", advice="start a leader: opsconsole serve")
        request = self.store.ask(observation)
        self._awake.set()
        outcome = await self._answer(request, deadline_s)
        if self.leading is None:
            self.follow()
        if outcome != ACCEPTED:
            raise OpsConsoleError(outcome)

    async def _answer(self, request: int, deadline_s: float) -> str:
        until = time.monotonic() + deadline_s
        while (outcome := self.store.outcome(request)) is None:
            if time.monotonic() > until and self.store.withdraw(request):
                raise OpsConsoleError("the leader did not answer; nothing was done", advice="look at opsconsole queue")
            await asyncio.sleep(POLL_S / 4)
        return outcome

    async def reload(self, site: Site, repool: Callable[[Pool], None] | None = None) -> None:
        """A changed inventory, already read and agreed to. Runs are not touched; `repool` gives the pool its addresses.

        Only the leader's inventory counts: a follower only takes it for what it shows.
        """
        self.site = site
        self.sensing.free_memory_mib = site.inventory.policy.free_memory_mib
        if self.leading is not None and self.pool is not None:
            if repool is not None:
                repool(self.pool)
            self._emit([site.inventory])
        self._touch()

    # -- leading ---------------------------------------------------------------------------------------------------

    async def lead(
        self, kind: str, confirm: Callable[[LeadPlan], Awaitable[bool]] | None = None, reconcile_s: float = RECONCILE_S
    ) -> None:
        """Takes the lease, looks at every host, lets `confirm` see what would happen, then acts till cancelled or
        beaten.

        Raises OpsConsoleError when another process leads, when `confirm` says no, and when the lease is lost.
        """
        if self.make_pool is None:
            raise OpsConsoleError("this process can only follow")
        epoch = self.store.acquire(kind)
        if epoch is None:
            lease = self.store.lease()
            raise OpsConsoleError(f"{lease.kind} at {lease.holder} leads this cluster already")
        self._lost, self._acted = "", False
        self.alarm("leader", "")
        try:
            self.follow()
            self.leading = Leading.of(self.store, self.following, epoch, self.alarm)
            self.lease = self.store.lease()
            self.clock = BootClock(self.store, self.state.now)
            self.clock.keep()
            await self._act(confirm, reconcile_s)
        except LostLease as error:
            self._lose(error.message)
            raise
        finally:
            await self._stop_leading(epoch)

    async def _act(self, confirm: Callable[[LeadPlan], Awaitable[bool]] | None, reconcile_s: float) -> None:
        assert self.leading is not None
        self._beat_ms, self._absent_ms = boot_now_ms(), 0
        self._work(self._renew(), "renew the lease")
        self._begin_dispatch(self.leading)
        await self._reconcile(reconcile_s)
        if confirm is not None and not await confirm(self.preview()):
            raise OpsConsoleError("not confirmed; nothing was done")
        self._acted = True
        await self._turn([self.site.inventory])
        self._work(self._keep_readings(), "keep readings")
        self._work(self._look(), "look again")
        for command in self.engine.outstanding():
            self._look_again(command.host)
        while not self._lost:
            await self._wait()
            self._beat()
            if self._absent_ms:
                await self._after_absence(reconcile_s)
            if not self._lost:
                await self._turn([])
        raise LostLease(self._lost)

    def _work(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """A worker of the leader. One that fails ends leading: better nobody leads than half a leader."""
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._worker_ended)

    def _worker_ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._lose(f"a worker failed ({task.get_name()}): {type(error).__name__}: {error}")

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
        assert self.leading is not None and self.pool is not None
        await self._renew_once()
        if self._lost:
            return
        self.alarm("absence", f"this process did not run for {away_s:.0f} s; hosts are asked before anything is done")
        self.sensing.distrust()
        for host in self.site.inventory.hosts:
            with contextlib.suppress(OpsConsoleError):
                self.pool.reconnect(host.name)
        await self._reconcile(longest_s)
        self.alarm("absence", "")

    def _begin_dispatch(self, leading: Leading) -> None:
        assert self.make_pool is not None
        self.pool = self.make_pool(self._hello, self._hear)
        self.dispatch = Dispatch(
            self.pool,
            lambda: self.state,
            self.site.address,
            lambda: (self.store.id, leading.epoch),
            lambda host, run: self._emit(self.sensing.run(host, run)),
            self._lose,
            lambda text: self.alarm("dispatch", text),
            self._ready,
        )
        self.sensing.distrust()
        self.pool.start()

    def _hello(self, host: str) -> dict[str, Any]:
        assert self.leading is not None
        return {
            "store": self.store.id,
            "epoch": self.leading.epoch,
            "interval_s": self.site.interval_s,
            "system_processes": list(self.site.system_processes),
            "free_memory_mib": self.site.inventory.policy.free_memory_mib,
        }

    def _is_live(self, host: str) -> bool:
        if self.pool is None:
            return False
        try:
            return self.pool.status(host).state in ("live", "late")
        except OpsConsoleError:
            return False  # it left the inventory

    def _ready(self, command: Command) -> bool:
        """A start waits for the host's first probe: until then nobody knows which GPUs it has."""
        if not isinstance(command, StartMember | StopMember) or not self._is_live(command.host):
            return False
        return isinstance(command, StopMember) or self.sensing.of(command.host).probe_at is not None

    def _hear(self, kind: str, host: str, payload: Any) -> None:
        """An event of a link. What a host says in riddles is said to a person and passed over."""
        try:
            self._take_in(kind, host, payload)
        except Exception as error:
            self.alarm(f"host {host}", f"{host} said what cannot be understood: {type(error).__name__}: {error}")
        self._touch()

    def _take_in(self, kind: str, host: str, payload: Any) -> None:
        if kind == "connected":
            self.sensing.connected(host, payload)
            forgotten = self.sensing.forgotten_by(host)
            self.alarm(f"runs {host}", forgotten_words(host, forgotten))
            self._look_again(host)
        elif kind == "disconnected":
            what, why = payload
            if what == "fenced":
                self._lose(f"{host}: {why}")
            self.sensing.disconnected(host, why)
        else:
            first = self.sensing.of(host).probe_at is None
            self.sensing.line(host, payload)
            if first and self.sensing.of(host).probe_at is not None:
                self._look_again(host)

    def _look_again(self, host: str) -> None:
        """Commands without an outcome, now that the host has said what it knows."""
        if self.dispatch is not None and self._acted:
            self.dispatch.catch_up(self._outstanding(host), lambda h, run: run in self.sensing.of(h).runs)

    def _outstanding(self, host: str) -> Sequence[Command]:
        return self.engine.outstanding(HostName(host))

    async def _look(self) -> None:
        while self.dispatch is not None:
            self.dispatch.look_again(self._outstanding)
            await asyncio.sleep(LOOK_S)

    async def _reconcile(self, longest_s: float) -> None:
        """Until every host has answered with readings, or has said why it cannot. What the journal says of a silent
        one is old: nothing is placed there (rule 26).
        """
        until = time.monotonic() + longest_s
        names = [host.name for host in self.site.inventory.hosts]
        while time.monotonic() < until and any(self._undecided(name) for name in names):
            await asyncio.sleep(0.05)
        self._emit(HostStale(name) for name in names if self.sensing.of(name).probe_at is None)

    def _undecided(self, host: str) -> bool:
        if self.sensing.of(host).probe_at is not None:
            return False
        assert self.pool is not None
        status = self.pool.status(host)
        return not (status.state == "lost" or (status.state == "connecting" and status.attempts > 0))

    def preview(self) -> LeadPlan:
        """What the first tick would do, by the code that will do it, on a copy."""
        image = msgspec.json.decode(msgspec.json.encode(to_image(self.state)), type=StateImage)
        copy = Engine(from_image(image))
        step = copy.step(self.clock.now(), [self.site.inventory, *self._inbox])
        silent = tuple(h.name for h in self.site.inventory.hosts if self.sensing.of(h.name).probe_at is None)
        return LeadPlan(step.decisions, len(copy.state.runs), silent)

    async def _turn(self, first: list[Observation]) -> None:
        """One tick with all that has come in."""
        leading, dispatch = self.leading, self.dispatch
        assert leading is not None and dispatch is not None
        requests = await self._requests(leading)
        inbox, self._inbox = self._inbox, []
        observations = [*first, *inbox, *(request.observation for request in requests)]
        step = await self._step(leading, observations, requests)
        if observations or step.decisions:
            self.remember(self.store.tail(self.following.seq))
            self.following.seq, self.following.tick = leading.seq, leading.tick
            self._touch()
        if not self._lost:
            dispatch.send(step.commands)

    async def _step(self, leading: Leading, observations: list[Any], requests: Sequence[AskedFor]) -> Step:
        """One tick. A request that makes the engine fail must not be the first thing that the next leader does."""
        try:
            return await leading.turn(self.clock.now(), observations, [request.id for request in requests])
        except (StoreError, asyncio.CancelledError):
            raise
        except Exception as error:
            for request in requests:
                why = f"the engine failed: {type(error).__name__}: {error}"
                await leading.write(leading.store.refuse, leading.epoch, request.id, why)
            raise

    async def _requests(self, leading: Leading) -> list[AskedFor]:
        """Those that can be journalled; the others are answered at once. A store that cannot be read has none now."""
        taken: list[AskedFor] = []
        try:
            for request in self.store.open_requests():
                if why := request.refused or refusal(self.state, request.observation):
                    await leading.write(leading.store.refuse, leading.epoch, request.id, why)
                else:
                    taken.append(request)
        except StoreUnavailable as error:
            self.alarm("store", error.message)
        return taken

    async def _wait(self) -> None:
        """For something to happen, or for time to do it."""
        wakeup = self.engine.next_wakeup()
        timeout = POLL_S if wakeup is None else min(POLL_S, max(0.0, (wakeup - self.clock.now()) / 1000))
        if not self._inbox:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):  # wait_for of Python 3.11 can swallow a cancellation
                    await self._awake.wait()
        self._awake.clear()
        self.sensing.tick()

    async def _renew(self) -> None:
        """The lease is kept while the loop lives; a frozen process finds its epoch beaten when it wakes."""
        while self.leading is not None and not self._lost:
            self._beat()
            await self._renew_once()
            await asyncio.sleep(RENEW_S)

    async def _renew_once(self) -> None:
        assert self.leading is not None
        try:
            await self.leading.renew()
            self.lease = self.store.lease()
        except StoreUnavailable as error:
            self.alarm("store", error.message)
        except StoreError as error:
            self._lose(error.message)

    async def _keep_readings(self) -> None:
        """The newest readings for followers; nothing depends on them."""
        sent: dict[str, int] = {}
        while self.leading is not None:
            fresh = {
                host: (r.wall_ms, msgspec.json.encode(r.probe))
                for host, r in self.readings.items()
                if r.probe is not None and sent.get(host) != r.wall_ms
            }
            if fresh:
                sent |= {host: at for host, (at, _) in fresh.items()}
                with contextlib.suppress(StoreError):
                    await self.leading.write(self.store.put_readings, fresh)
            await asyncio.sleep(READINGS_S)

    def _emit(self, observations: Any) -> None:
        self._inbox.extend(observations)
        self._awake.set()

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        self.alarm("leader", f"no longer leading: {why}")
        self._awake.set()

    async def _stop_leading(self, epoch: int) -> None:
        """Nothing is sent any more; hosts and runs go on by themselves."""
        leading, pool, dispatch = self.leading, self.pool, self.dispatch
        self.led_until_closed = self._acted and not self._lost
        self.leading, self.pool, self.dispatch = None, None, None
        for task in list(self._background):
            task.cancel()
        if dispatch is not None:
            await dispatch.aclose()
        if pool is not None:
            await pool.aclose()
        if leading is not None:
            await leading.close(release=not self._lost)
        else:
            with contextlib.suppress(StoreError):
                self.store.release(epoch)
        self._inbox.clear()
        self.following = self.store.recover()  # memory may be ahead of the journal; only the journal counts
        self.engine = self.following.engine
        self._touch()


def forgotten_words(host: str, runs: Sequence[str]) -> str:
    """For people, who alone can say what became of them (`HostDeclared`)."""
    if not runs:
        return ""
    named = ", ".join(runs[:5]) + (" …" if len(runs) > 5 else "")
    return f"{host} knows nothing of {named}: they count as running until somebody declares them dead or stops them"
