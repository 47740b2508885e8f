"""Commands to hosts. What has no answer is unknown: the host is looked at before anything is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from opsconsole.errors import OpsConsoleError
from scheduler_core.commands import Command, StartMember, StopMember
from scheduler_core.state import ClusterState
from scheduler_core.units import bits

START_S = 60.0
STOP_S = 20.0
PORTS = range(29_400, 32_000)


class Hosts(Protocol):
    """What dispatch needs of a pool of hosts."""

    async def request(self, host: str, op: str, deadline_s: float, **fields: Any) -> dict[str, Any]: ...


@dataclass
class Dispatch:
    """`heard` gets every RUN that an answer carries; `fenced` is called when a host knows a newer leader."""

    pool: Hosts
    state: Callable[[], ClusterState]
    address: Callable[[str], str]
    identity: Callable[[], tuple[str, int]]  # store id, epoch
    heard: Callable[[str, dict[str, Any]], None]
    fenced: Callable[[str], None]
    alarm: Callable[[str], None]
    live: Callable[[str], bool]
    _busy: dict[str, None] = field(default_factory=dict)  # command ids on their way
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def send(self, commands: Iterable[Command]) -> None:
        """Hands commands over, those for hosts that cannot be reached left for `catch_up`."""
        for command in commands:
            if isinstance(command, StartMember | StopMember) and self.live(command.host):
                self._begin(command)

    def catch_up(self, commands: Iterable[Command], known: Callable[[str, str], bool]) -> None:
        """After a look at a host: what it does not know is sent, a stop in any case (it is idempotent)."""
        for command in commands:
            if isinstance(command, StopMember) or not known(command.host, command.run):  # type: ignore[union-attr]
                self.send([command])

    def _begin(self, command: StartMember | StopMember) -> None:
        if command.id not in self._busy:
            self._busy[command.id] = None
            work = self._start(command) if isinstance(command, StartMember) else self._stop(command)
            self._spawn(command, work)

    def _spawn(self, command: StartMember | StopMember, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        task = asyncio.create_task(self._carry(command, work), name=command.id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, command: StartMember | StopMember, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        """Sends one command and hears its answer. A link that breaks leaves it unknown."""
        try:
            answer = await work
            await self._judge(command, answer)
        except OpsConsoleError as error:
            self.alarm(f"{command.id}: no answer, will look again: {error.args[0]}")
        except Exception as error:  # a defect here must be seen, and must not end the leader
            self.alarm(f"{command.id}: {type(error).__name__}: {error}")
        finally:
            self._busy.pop(command.id, None)

    async def _judge(self, command: StartMember | StopMember, answer: dict[str, Any]) -> None:
        if answer.get("ok"):
            self.heard(command.host, answer["run"])
            return
        code, message = answer.get("error"), str(answer.get("message", ""))
        if code == "fenced":
            self.fenced(f"{command.host}: {message}")
        elif code == "protected":
            self.alarm(f"{command.id}: the host guards the contract: {message}")
            await asyncio.sleep(min(float(answer.get("remaining_s") or 1), 30.0))
            self._retry(command)
        else:
            self.alarm(f"{command.id}: refused: {code}: {message}")
            if isinstance(command, StartMember):
                await self._burn(command)

    def _retry(self, command: StartMember | StopMember) -> None:
        self._busy.pop(command.id, None)
        run = self.state().runs.get(command.run)
        if run is not None and run.stop is not None and self.live(command.host):
            self._begin(command)

    async def _burn(self, command: StartMember) -> None:
        """A start that was refused must not happen later: its token is burnt, and the host says so."""
        answer = await self._request(command.host, "stop", STOP_S, token=command.run, reason="refused", min_ran_s=0)
        if answer.get("ok"):
            self.heard(command.host, answer["run"])

    async def _start(self, command: StartMember) -> dict[str, Any]:
        return await self._request(command.host, "start", START_S, token=command.run, spec=self.spec(command))

    async def _stop(self, command: StopMember) -> dict[str, Any]:
        return await self._request(
            command.host,
            "stop",
            STOP_S,
            token=command.run,
            reason=command.reason,
            min_ran_s=command.min_ran_ms / 1000,
            checkpoint_grace_s=command.checkpoint_grace_ms / 1000,
            stop_grace_s=command.stop_grace_ms / 1000,
        )

    async def _request(self, host: str, op: str, deadline_s: float, **fields: Any) -> dict[str, Any]:
        store, epoch = self.identity()
        return await self.pool.request(host, op, deadline_s, store=store, epoch=epoch, **fields)

    def spec(self, command: StartMember) -> dict[str, Any]:
        """The start of one member: its process, its GPUs by UUID, and torchrun's environment for the gang."""
        state = self.state()
        record = state.workloads[command.workload]
        w, launch = record.workload, record.workload.launch
        ids = state.hosts[command.host].gpu_ids
        checkpoint: dict[str, Any] | None = None
        if launch.checkpoint_signal:
            checkpoint = {"signal": launch.checkpoint_signal}
        elif launch.checkpoint_argv:
            checkpoint = {"argv": list(launch.checkpoint_argv)}
        return {
            "argv": list(launch.argv),
            "cwd": launch.cwd,
            "env": dict(launch.env),
            "gpus": [ids[slot] for slot in bits(command.slots)],
            "rank": command.rank,
            "nodes": len(command.peers),
            "master_addr": self.address(command.peers[0]),
            "master_port": master_port(command.run),
            "checkpoint": checkpoint,
            "time_limit_s": None if w.time_limit_ms is None else w.time_limit_ms / 1000,
            "log_bytes_max": launch.log_bytes_max,
            "owner": w.owner,
            "workload": w.id,
            "attempt": record.attempt,
        }

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)


def master_port(run: str) -> int:
    """The same port on every host of a gang, and hardly ever that of another gang."""
    return PORTS[int.from_bytes(sha256(run.encode()).digest()[:4], "big") % len(PORTS)]
