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
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from opsconsole.clock import BootClock
from opsconsole.dispatch import Dispatch
from opsconsole.errors import OpsConsoleError
from opsconsole.leading import Leading
from opsconsole.sensing import HostReading, Sensing
from opsconsole.store.errors import LostLease, StoreError
from opsconsole.store.lease import RENEW_S, Lease
from opsconsole.store.store import Event, Store
from scheduler_core.decisions import Decision
from scheduler_core.engine import Engine
from scheduler_core.image import StateImage, from_image, to_image
from scheduler_core.observations import InventoryLoaded, Observation
from scheduler_core.state import ClusterState

POLL_S = 0.2
READINGS_S = 2.0
RECONCILE_S = 20.0
EVENTS_KEPT = 5000


class Pool(Protocol):
    """The hosts, as the runtime needs them (transport.pool)."""

    def start(self) -> None: ...
    def status(self, host: str) -> Any: ...
    async def request(self, host: str, op: str, deadline_s: float, **fields: Any) -> dict[str, Any]: ...
    def reconnect(self, host: str) -> None: ...
    async def aclose(self) -> None: ...


class PoolFactory(Protocol):
    """Makes the pool of a leader. `hello` are the fields of every greeting; `hear` gets (kind, host, payload)."""

    def __call__(self, hello: Callable[[str], dict[str, Any]], hear: Callable[[str, str, Any], None]) -> Pool: ...


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
    store: Store
    make_pool: PoolFactory | None = None  # None: this process can only follow
    leading: Leading | None = None
    pool: Pool | None = None
    alarms: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    version: int = 0
    lease: Lease = field(default_factory=lambda: Lease(0, "", "", None))
    _inbox: list[Observation] = field(default_factory=list)
    _awake: asyncio.Event = field(default_factory=asyncio.Event)
    _background: set[asyncio.Task[None]] = field(default_factory=set)
    led_until_closed: bool = False  # it led, and stopped because it was closed, not beaten
    _acted: bool = False
    _lost: str = ""

    def __post_init__(self) -> None:
        recovered = self.store.recover()
        for warning in recovered.warnings:
            self.alarms["snapshot"] = warning
        self.following, self.engine = recovered, recovered.engine
        self.clock = BootClock(self.store, self.engine.state.now)
        self.followed_at = time.monotonic()
        policy = self.site.inventory.policy
        gpus = {host.name: host.gpus for host in self.site.inventory.hosts}
        self.sensing = Sensing(
            self.store.id,
            lambda host: gpus.get(host, 0),  # type: ignore[call-overload]
            self._emit,
            policy.free_memory_mib,
            self.site.interval_s,
        )
        self.dispatch: Dispatch | None = None
        self.lease = self.store.lease()

    # -- for those who look ----------------------------------------------------------------------------------------

    @property
    def state(self) -> ClusterState:
        return self.engine.state

    @property
    def readings(self) -> dict[str, HostReading]:
        return self.sensing.readings

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

    def remember(self, events: Sequence[Event]) -> None:
        self.events.extend(e for e in events if e.role != "command" and e.kind not in ("PassDone", "InventoryLoaded"))
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
        until = time.monotonic() + deadline_s
        while self.store.outcome(request) is None:
            if time.monotonic() > until:
                if self.store.withdraw(request):
                    raise OpsConsoleError(
                        "the leader did not answer; nothing was done", advice="look at opsconsole queue"
                    )
                return
            await asyncio.sleep(POLL_S / 4)
        if self.leading is None:
            self.follow()

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
        self.follow()
        self.leading = Leading.of(self.store, self.following, epoch, self.alarm)
        self.lease = self.store.lease()
        self.clock = BootClock(self.store, self.state.now)
        self.clock.keep()
        try:
            await self._act(confirm, reconcile_s)
        finally:
            await self._stop_leading()

    async def _act(self, confirm: Callable[[LeadPlan], Awaitable[bool]] | None, reconcile_s: float) -> None:
        assert self.leading is not None
        self._background = {asyncio.create_task(self._renew())}
        self._begin_dispatch(self.leading)
        await self._reconcile(reconcile_s)
        if confirm is not None and not await confirm(self.preview()):
            raise OpsConsoleError("not confirmed; nothing was done")
        self._acted = True
        await self._turn([self.site.inventory])
        self._background.add(asyncio.create_task(self._keep_readings()))
        for command in self.engine.outstanding():
            self._look_again(command.host)
        while not self._lost:
            await self._wait()
            await self._turn([])
        raise LostLease(self._lost)

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
            self._is_live,
        )
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

    def _hear(self, kind: str, host: str, payload: Any) -> None:
        """An event of a link: connected, disconnected, line."""
        if kind == "connected":
            self.sensing.connected(host, payload)
            self._look_again(host)
        elif kind == "disconnected":
            what, why = payload
            if what == "fenced":
                self._lose(f"{host}: {why}")
            self.sensing.disconnected(host, why)
        else:
            self.sensing.line(host, payload)
        self._touch()

    def _look_again(self, host: str) -> None:
        """Commands without an outcome, now that the host has said what it knows."""
        if self.dispatch is not None:
            commands = self.engine.outstanding(host)  # type: ignore[arg-type]
            self.dispatch.catch_up(commands, lambda h, run: run in self.sensing.of(h).runs)

    async def _reconcile(self, longest_s: float) -> None:
        """Until every host has answered with readings, or has said why it cannot."""
        until = time.monotonic() + longest_s
        names = [host.name for host in self.site.inventory.hosts]
        while time.monotonic() < until and any(self._undecided(name) for name in names):
            await asyncio.sleep(0.05)

    def _undecided(self, host: str) -> bool:
        if self.sensing.of(host).probe is not None:
            return False
        assert self.pool is not None
        status = self.pool.status(host)
        return not (status.state == "lost" or (status.state == "connecting" and status.attempts > 0))

    def preview(self) -> LeadPlan:
        """What the first tick would do, by the code that will do it, on a copy."""
        image = msgspec.json.decode(msgspec.json.encode(to_image(self.state)), type=StateImage)
        copy = Engine(from_image(image))
        step = copy.step(self.clock.now(), [self.site.inventory, *self._inbox])
        silent = tuple(h.name for h in self.site.inventory.hosts if self.sensing.of(h.name).probe is None)
        return LeadPlan(step.decisions, len(copy.state.runs), silent)

    async def _turn(self, first: list[Observation]) -> None:
        """One tick with all that has come in."""
        leading, dispatch = self.leading, self.dispatch
        assert leading is not None and dispatch is not None
        requests = self.store.open_requests()
        inbox, self._inbox = self._inbox, []
        observations = [*first, *inbox, *(request.observation for request in requests)]
        step = await leading.turn(self.clock.now(), observations, [request.id for request in requests])
        if observations or step.decisions:
            self.remember(self.store.tail(self.following.seq))
            self.following.seq, self.following.tick = leading.seq, leading.tick
            self._touch()
        if not self._lost:
            dispatch.send(step.commands)

    async def _wait(self) -> None:
        """For something to happen, or for time to do it."""
        wakeup = self.engine.next_wakeup()
        timeout = POLL_S if wakeup is None else min(POLL_S, max(0.0, (wakeup - self.clock.now()) / 1000))
        if not self._inbox:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), timeout)
        self._awake.clear()
        self.sensing.tick()

    async def _renew(self) -> None:
        """The lease is kept while the loop lives; a frozen process finds its epoch beaten when it wakes."""
        while self.leading is not None and not self._lost:
            try:
                await self.leading.renew()
                self.lease = self.store.lease()
            except StoreError as error:
                self._lose(str(error.args[0]))
                return
            await asyncio.sleep(RENEW_S)

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

    async def _stop_leading(self) -> None:
        """Nothing is sent any more; hosts and runs go on by themselves."""
        leading, pool, dispatch = self.leading, self.pool, self.dispatch
        self.led_until_closed = self._acted and not self._lost
        self.leading, self.pool, self.dispatch = None, None, None
        for task in self._background:
            task.cancel()
        if dispatch is not None:
            await dispatch.aclose()
        if pool is not None:
            await pool.aclose()
        if leading is not None:
            with contextlib.suppress(StoreError):
                await leading.close(release=not self._lost)
        self.following = self.store.recover()  # memory may be ahead of the journal; only the journal counts
        self.engine = self.following.engine
        self._touch()
