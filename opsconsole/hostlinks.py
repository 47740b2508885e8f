"""The hosts of a leader: what they say becomes observations, and commands find their way to them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opsconsole.ahead import Ahead
from opsconsole.dispatch import Dispatch, MemberCommand
from opsconsole.errors import OpsConsoleError
from opsconsole.fencing import Fencing
from opsconsole.following import Follower
from opsconsole.machines import Machines
from opsconsole.ports import Pool, PoolFactory
from opsconsole.readings import text_of
from opsconsole.sensing import Sensing
from scheduler_core.commands import Command, FenceHost, StopMember
from scheduler_core.ids import HostName
from scheduler_core.observations import HostStale, HostUnreachable, Observation

OLDER_COPY = "older_copy"  # in the store: why nobody may lead by it
LOOK_S = 10.0  # between questions to a host that owes an answer


class HostLinks:
    """Of one term of leading, by `epoch`. `emit` takes observations; `lose` ends the term.

    Nothing is sent before `acting`: a new leader looks first.
    """

    def __init__(
        self,
        picture: Follower,
        epoch: int,
        make_pool: PoolFactory,
        emit: Callable[[Iterable[Observation]], None],
        lose: Callable[[str], None],
    ) -> None:
        self.picture, self.epoch, self.emit, self.lose = picture, epoch, emit, lose
        self.acting = False
        self._wanted = self._left() | dict(picture.site.reach)
        self.sensing = Sensing(
            picture.store.id,
            self._gpus,
            emit,
            lambda: picture.site.inventory.policy.free_memory_mib,
            picture.site.interval_s,
            picture.readings,
            lambda: picture.state,
            Machines(lambda: picture.state, self._stays),
        )
        self.pool: Pool = make_pool(self._wanted.values(), self._hello, self._hear)
        self.dispatch = Dispatch(
            self.pool,
            lambda: picture.state,
            lambda host: picture.site.address(host),
            lambda: (picture.store.id, epoch),
            lambda host, run: emit(self.sensing.run(host, run)),
            self._beaten,
            lambda text: picture.alarm("dispatch", text),
            self._ready,
        )

        self.fencing = Fencing(picture, emit)
        self.ahead = Ahead(picture.store.id)

    def start(self) -> None:
        self.sensing.distrust()
        self.pool.start()

    async def aclose(self) -> None:
        """Nothing is sent any more; hosts and runs go on by themselves."""
        await self.fencing.aclose()
        await self.dispatch.aclose()
        await self.pool.aclose()

    # -- which hosts -----------------------------------------------------------------------------------------------

    def follow_inventory(self) -> None:
        """Connects who came or moved. Who left stays connected until `let_go`."""
        self._wanted |= self.picture.site.reach
        self.pool.replace(self._wanted.values())

    def _left(self) -> dict[str, Any]:
        """Who left the inventory while nobody led, with runs."""
        site, hosts = self.picture.site, self.picture.state.hosts
        return {name: way for name, way in site.left.items() if (h := hosts.get(HostName(name))) is not None and h.runs}

    def let_go(self) -> None:
        """Who left the inventory is cut when the last run there has ended. Without an address only a person can tell
        when that is.
        """
        site, state = self.picture.site, self.picture.state
        gone = [name for name in self._wanted if name not in site.reach and HostName(name) not in state.hosts]
        for name in gone:
            del self._wanted[name]
            self.picture.readings.pop(name, None)
        if gone:
            self.pool.replace(self._wanted.values())
        orphans = [h for h, record in state.hosts.items() if record.removed and h not in self._wanted]
        self.picture.alarm("left", orphans_words(orphans))

    def knows(self, host: str) -> bool:
        return host in self._wanted

    def _stays(self, host: HostName) -> bool:
        record = self.picture.state.hosts.get(host)
        return self.picture.site.gpus(host) is not None or (record is not None and bool(record.runs))

    def _gpus(self, host: str) -> int:
        expected = self.picture.site.gpus(host)
        record = self.picture.state.hosts.get(HostName(host))
        return expected if expected is not None else record.host.gpus if record is not None else 0

    # -- what hosts say --------------------------------------------------------------------------------------------

    def _hello(self, host: str) -> dict[str, Any]:
        site = self.picture.site
        return {
            "store": self.picture.store.id,
            "epoch": self.epoch,
            "interval_s": site.interval_s,
            "system_processes": list(site.system_processes),
            "free_memory_mib": site.inventory.policy.free_memory_mib,
        }

    def _hear(self, kind: str, host: str, payload: Any) -> None:
        """An event of a link. What a host says in riddles is said to a person and passed over."""
        try:
            self._take_in(kind, host, payload)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            self.picture.alarm(f"host {host}", f"{host} said what cannot be understood: {what}")
        if kind != "line":
            self.picture.touch()

    def _take_in(self, kind: str, host: str, payload: Any) -> None:
        if kind == "connected":
            self.sensing.connected(host, payload)
            for run in payload.get("runs") or ():
                self._hear_run(host, run)
            self.picture.alarm(f"runs {host}", forgotten_words(host, self.sensing.forgotten_by(host)))
            self._catch_up(host)
        elif kind == "disconnected":
            what, why = payload
            if what == "fenced":
                self._beaten(f"{host}: {why}")
            self.sensing.disconnected(host, why)
        else:
            first = not self.has_spoken(host)
            self.sensing.line(host, payload)
            if payload.get("event") == "run":
                self._hear_run(host, payload.get("run"))
            if first and self.has_spoken(host):
                self._catch_up(host)

    def _hear_run(self, host: str, run: Any) -> None:
        self.ahead.hear(self.picture.state, host, run)
        if isinstance(run, dict):
            self.picture.alarm(f"run {run.get('token')} {host}", lingering_words(host, run))

    def _beaten(self, why: str) -> None:
        """A host has served a newer epoch. Where the store knows of none, it is itself the older one of two."""
        if self.picture.store.lease().epoch == self.epoch:
            self.picture.store.put(OLDER_COPY, why)
        self.lose(why)

    def has_spoken(self, host: str) -> bool:
        """Its readings are of this term."""
        return self.picture.readings[host].probe_at is not None

    # -- commands --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """From now on commands are sent, first those without an outcome."""
        self.acting = True
        outstanding = self.picture.engine.outstanding()
        self.fencing.send(outstanding)
        for host in dict.fromkeys(command.host for command in outstanding):
            self._catch_up(host)

    def send(self, commands: Sequence[Command]) -> None:
        self.dispatch.send(command for command in commands if not isinstance(command, FenceHost))
        self.fencing.send(commands)

    def _catch_up(self, host: str) -> None:
        """Commands without an outcome, now that the host has said what it knows."""
        if self.acting:
            self.dispatch.catch_up(self._outstanding(host), lambda h, run: run in self.picture.readings[h].runs)

    def _outstanding(self, host: str) -> list[MemberCommand]:
        found = self.picture.engine.outstanding(HostName(host))
        return [command for command in found if not isinstance(command, FenceHost)]

    def _ready(self, command: MemberCommand) -> bool:
        """A start waits for the host's first probe: until then nobody knows which GPUs it has."""
        if not self._is_live(command.host) or not self.sensing.is_itself(command.host):
            return False
        return isinstance(command, StopMember) or self.has_spoken(command.host)

    def _is_live(self, host: str) -> bool:
        return self.knows(host) and self.pool.status(host).state in ("live", "late")

    async def look_forever(self) -> None:
        """Hosts that owe an answer are asked what they know."""
        while True:
            self.dispatch.look_again(self._outstanding)
            await asyncio.sleep(LOOK_S)

    # -- looking before acting -------------------------------------------------------------------------------------

    async def reconcile(self, longest_s: float) -> None:
        """Until every host has answered with readings, or has said why it cannot. What the journal says of a silent
        one is old: nothing is placed there (rule 26).
        """
        until = time.monotonic() + longest_s
        while time.monotonic() < until and any(map(self._undecided, self._wanted)):
            await asyncio.sleep(0.05)
        self.emit(HostStale(HostName(name)) for name in self.silent())
        left = [name for name in self.picture.state.hosts if name not in self._wanted]
        self.emit(HostUnreachable(name, "it left the inventory") for name in left)

    def silent(self) -> tuple[str, ...]:
        return tuple(name for name in self._wanted if not self.has_spoken(name))

    def _undecided(self, host: str) -> bool:
        if self.has_spoken(host):
            return False
        status = self.pool.status(host)
        return not (status.state == "lost" or (status.state == "connecting" and status.attempts > 0))

    async def reconcile_anew(self, longest_s: float) -> None:
        """No reading counts until its host has spoken again."""
        self.sensing.distrust()
        self.reconnect()
        await self.reconcile(longest_s)

    def reconnect(self) -> None:
        """Try every lost host now instead of after its pause."""
        for name in self._wanted:
            with contextlib.suppress(OpsConsoleError):
                self.pool.reconnect(name)


def forgotten_words(host: str, runs: Sequence[str]) -> str:
    """For people, who alone can say what became of them (`HostDeclared`)."""
    if not runs:
        return ""
    named = ", ".join(runs[:5]) + (" …" if len(runs) > 5 else "")
    return f"{host} knows nothing of {named}: they count as running until somebody declares them dead or stops them"


def lingering_words(host: str, run: dict[str, Any]) -> str:
    """What keeps a run from being over that should be."""
    error = text_of(run.get("error"))
    return f"{run['token']} on {host}: {error}" if error and run.get("phase") in ("stopping", "exited") else ""


def orphans_words(hosts: Sequence[str]) -> str:
    """Hosts that left the inventory: their runs are there, and nobody knows the way to them any more."""
    if not hosts:
        return ""
    named = ", ".join(hosts[:5]) + (" …" if len(hosts) > 5 else "")
    return f"{named} left the inventory with runs: put it back until they end, or: opsconsole declare dead"
