"""The console's picture of a live cluster: a runtime that follows, or leads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opsconsole.cli.history import told_since
from opsconsole.cli.leadplan import changed_since, lead_sentences
from opsconsole.cli.presence import Presence
from opsconsole.cli.reloading import Watch
from opsconsole.cli.wall import ScreenClock
from opsconsole.cli.wiring import Place, view_of
from opsconsole.config.folders import user_state
from opsconsole.config.inventory import current_user
from opsconsole.errors import OpsConsoleError, StoreError
from opsconsole.ports import ClusterStore, Pool
from opsconsole.presenting.view import ClusterView, Happening, OpenPlan
from opsconsole.runtime import Runtime
from opsconsole.ui.source import Confirm, Outcome, OutputPiece
from scheduler_core.observations import Observation

if TYPE_CHECKING:
    from opsconsole.leader import LeadPlan

OUTPUT_BYTES = 256 * 1024  # of a run's output: where it begins, and how far behind it may fall


@dataclass
class Wish:
    """Somebody wants this console to lead. `begun` is done when it acts, or says why it does not."""

    kind: str
    confirm: Confirm | None
    begun: asyncio.Future[None]


@dataclass
class LiveSource:
    """Implements `ui.source.ConsoleSource`. With `lead_as` it leads from the start: the demo's console does.

    `read_only`: why nobody may write here, whatever the inventory says.
    """

    place: Place
    runtime: Runtime
    lead_as: str = ""
    hand_over: bool = True
    read_only: str = ""
    actor: str = field(default_factory=current_user)
    watch: Watch = field(init=False)
    presence: Presence = field(init=False)
    left: str = field(default="", init=False)
    _wish: Wish | None = None
    _wished: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.watch = Watch(self.place, self.runtime)
        self.presence = Presence(self.runtime.store, self.runtime.touch)
        self.clock = ScreenClock()

    @property
    def version(self) -> int:
        return self.runtime.version

    @property
    def write_refused(self) -> str:
        refused = "" if self.place.inventory.allow_write else "the inventory says allow_write: false"
        return refused or self.read_only

    def view(self) -> ClusterView:
        wall_ms = self.clock.now()
        self.runtime.alarm("clock", self.clock.alarm)
        return replace(view_of(self.runtime, self.watch.pending), wall_ms=wall_ms, others=self.presence.others)

    async def run(self) -> None:
        """Follows; leads when asked; follows again when it no longer leads."""
        if self.lead_as:
            self._wish = Wish(self.lead_as, None, asyncio.get_running_loop().create_future())
            self.lead_as = ""
        with suppress(StoreError):  # following says what is wrong with the store
            self.runtime.look_back()
        await self._follow_or_lead()

    @property
    def beside(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {"inventory": self.watch.run, "presence": self.presence.run}

    async def _follow_or_lead(self) -> None:
        while True:
            wish, self._wish = self._wish, None
            if wish is None:
                await self._follow()
            else:
                await self._lead(wish)

    async def _follow(self) -> None:
        """Until somebody wishes to lead."""
        self._wished.clear()
        following = asyncio.create_task(self.runtime.follow_forever())
        wished = asyncio.create_task(self._wished.wait())
        try:
            await asyncio.wait({following, wished}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
        finally:
            for task in (following, wished):
                task.cancel()

    async def _lead(self, wish: Wish) -> None:
        async def confirm(plan: LeadPlan) -> bool:
            lines = [*changed_since(self.place, self.runtime), *lead_sentences(plan, self.view())]
            agreed = wish.confirm is None or await wish.confirm(lines)
            if agreed and not wish.begun.done():
                wish.begun.set_result(None)
            return agreed

        try:
            await self.runtime.lead(wish.kind, confirm)
        except OpsConsoleError as error:
            if wish.begun.done():
                self.runtime.alarm("leader", f"no longer leading: {error.message}")
            else:
                wish.begun.set_exception(error)
                wish.begun.exception()  # heard by `lead`, or shown as an alarm where nobody waits
                self.runtime.alarm("leader", error.message)
        finally:
            wish.begun.cancel()  # of a defect too nobody waits for ever; what it was is shown by whoever runs this

    async def request(self, observations: Sequence[Observation]) -> Outcome:
        try:
            problems = await self.runtime.ask_all(observations)
        except OpsConsoleError as error:
            return Outcome(0, (str(error),))
        return Outcome(len(observations) - len(problems), tuple(dict.fromkeys(map(str, problems))))

    async def lead(self, reason: str, confirm: Confirm) -> None:
        if self.runtime.leader is not None:
            raise OpsConsoleError("this console leads already")
        wish = Wish("console", confirm, asyncio.get_running_loop().create_future())
        self._wish = wish
        self._wished.set()
        await wish.begun

    async def output(self, run: str, host: str) -> AsyncIterator[OutputPiece]:
        """Over the leader's connection where this console leads, else over one for this alone."""
        from opsconsole.cli.output import pool_for, read_output

        leader = self.runtime.leader
        if leader is not None and leader.links.knows(host):
            pool: AbstractAsyncContextManager[Pool] = nullcontext(leader.links.pool)
        else:
            pool = pool_for(self.place, host)
        async with pool as asked:
            async for piece in read_output(asked, host, run, OUTPUT_BYTES, follow=True, keep_up=True):
                yield piece

    def tell_plan(self, plan: OpenPlan | None) -> None:
        self.presence.tell(plan)

    async def login(self, host: str) -> Sequence[str]:
        from opsconsole.transport.login import local_login, login, one_config
        from opsconsole.transport.resolve import CONFIG_FILES, resolve

        address = self.place.address(host)
        if address.is_local:
            return local_login(address)
        ssh = self.place.inventory.ssh
        files = CONFIG_FILES if ssh.config is None else ssh.config
        route = await asyncio.to_thread(resolve, address, config_files=files, extra_known_hosts=ssh.known_hosts)
        return login(route, None if ssh.config is None else one_config(ssh.config, user_state() / "ssh_config"))

    async def history(self, since_ms: int) -> tuple[list[Happening], int]:
        return await asyncio.to_thread(_history, self.runtime.store, since_ms)

    def poll_now(self) -> None:
        if self.runtime.leader is not None:
            self.runtime.leader.links.reconnect()

    async def close(self) -> None:
        """The app has cancelled `run` before: nothing leads here any more. `left` says what becomes of leading."""
        self.presence.tell(None)
        if not (self.hand_over and self.runtime.led_until_closed):
            return
        if self.place.inventory.on_quit == "serve":
            pid, log = detach_serve(self.place)
            self.left = f"leading goes on in process {pid}; its words go to {log}"
        else:
            self.left = "nobody leads now; runs go on by themselves"


def _history(store: ClusterStore, since_ms: int) -> tuple[list[Happening], int]:
    """On a connection of its own: it may take long."""
    reading = store.another()
    try:
        return told_since(reading, since_ms)
    finally:
        reading.close()


def detach_serve(place: Place) -> tuple[int, Path]:
    """A headless leader takes over, so that drains outlive the screen. Its words go to a file beside the store."""
    log = place.inventory.state_dir / "serve.log"
    words = ["--inventory", place.inventory.path, "--cluster", place.cluster.name, "--standby", "--yes"]
    with log.open("ab") as out:
        serve = subprocess.Popen(
            [sys.executable, "-m", "opsconsole", "serve", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    return serve.pid, log
