"""Commands to hosts. What has no answer is unknown: the host is looked at before anything is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from opsconsole.errors import OpsConsoleError
from scheduler_core.commands import StartMember, StopMember
from scheduler_core.state import ClusterState
from scheduler_core.units import bits

START_S = 60.0
STOP_S = 20.0
LIST_S = 20.0
AT_ONCE = 16  # commands on their way to one host
NOT_STARTED = ("bad_spec", "state_dir", "not_started", "bad_request")  # other errors leave it in doubt
PORTS = range(29_400, 32_000)
MemberCommand = StartMember | StopMember


class Hosts(Protocol):
    """What dispatch needs of a pool of hosts."""

    async def request(self, host: str, op: str, deadline_s: float, **fields: Any) -> dict[str, Any]: ...


@dataclass
class Dispatch:
    """`heard` gets every RUN that an answer carries; `fenced` is called when a host knows a newer leader.

    `ready`: the host is connected and, for a start, has said since then which GPUs it has.
    """

    pool: Hosts
    state: Callable[[], ClusterState]
    address: Callable[[str], str]
    identity: Callable[[], tuple[str, int]]  # store id, epoch
    heard: Callable[[str, dict[str, Any]], None]
    fenced: Callable[[str], None]
    alarm: Callable[[str], None]
    ready: Callable[[MemberCommand], bool]
    _busy: dict[str, None] = field(default_factory=dict)  # command ids on their way
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _doubtful: dict[str, None] = field(default_factory=dict)  # hosts that owe an answer
    _places: dict[str, asyncio.Semaphore] = field(default_factory=dict)

    def send(self, commands: Iterable[MemberCommand]) -> None:
        """Hands commands over, those for hosts that cannot be reached left for `catch_up`."""
        for command in commands:
            if command.id not in self._busy and self.ready(command):
                self._busy[command.id] = None
                self._spawn(self._carry(command), command.id)

    def catch_up(self, commands: Iterable[MemberCommand], known: Callable[[str, str], bool]) -> None:
        """After a look at a host: what it does not know is sent, a stop in any case (it is idempotent)."""
        for command in commands:
            if isinstance(command, StopMember) or not known(command.host, command.run):
                self.send([command])

    def look_again(self, outstanding: Callable[[str], Iterable[MemberCommand]]) -> None:
        """Hosts that owe an answer while they are connected are asked what they know, and then caught up."""
        for host in list(self._doubtful):
            del self._doubtful[host]
            self._spawn(self._ask(host, outstanding), f"list {host}")

    async def _ask(self, host: str, outstanding: Callable[[str], Iterable[MemberCommand]]) -> None:
        try:
            answer = await self.pool.request(host, "list", LIST_S)
        except OpsConsoleError:
            return  # the next connection begins with a list
        runs = {str(run.get("token")): run for run in answer.get("runs", [])}
        for run in runs.values():
            self.heard(host, run)
        if answer.get("ok") and not answer.get("left_out"):
            self.catch_up(outstanding(host), lambda _, token: token in runs)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.alarm(f"{task.get_name()}: {type(error).__name__}: {error}")  # a defect must be seen

    async def _carry(self, command: MemberCommand) -> None:
        """Sends one command until it has an answer. A link that breaks leaves it unknown."""
        try:
            async with self._places.setdefault(command.host, asyncio.Semaphore(AT_ONCE)):
                pause_s = await self._try(command)
            while pause_s is not None:
                await asyncio.sleep(pause_s)
                pause_s = await self._try(command) if self._wanted(command) else None
        except OpsConsoleError as error:
            self._doubtful[command.host] = None
            self.alarm(f"{command.id}: no answer, will look again: {error.message}")
        finally:
            self._busy.pop(command.id, None)

    def _wanted(self, command: MemberCommand) -> bool:
        run = self.state().runs.get(command.run)
        return run is not None and run.stop is not None and self.ready(command)

    async def _try(self, command: MemberCommand) -> float | None:
        """Seconds until it is to be tried again, where the host says when."""
        answer = await (self._start(command) if isinstance(command, StartMember) else self._stop(command))
        if answer.get("ok"):
            self.heard(command.host, answer["run"])
            return None
        code, message = answer.get("error"), str(answer.get("message", ""))
        if code == "fenced":
            self.fenced(f"{command.host}: {message}")
        elif code == "protected":
            self.alarm(f"{command.id}: the host guards the contract: {message}")
            return max(0.1, min(float(answer.get("remaining_s") or 1), 30.0))
        elif isinstance(command, StartMember) and code in NOT_STARTED:
            self.alarm(f"{command.id}: refused: {code}: {message}")
            await self._burn(command, f"the host refused to start it: {message}")
        else:
            self.alarm(f"{command.id}: {code}: {message}; will look again")
            self._doubtful[command.host] = None
        return None

    async def _burn(self, command: StartMember, why: str) -> None:
        """A start that was refused must not happen later: its token is burnt, and the host says so.

        Should it run after all, the host's guard keeps it: a start that is in doubt is no reason to break the contract.
        """
        run = self.state().runs.get(command.run)
        guarded_s = run.min_runtime_ms / 1000 if run is not None else 0.0
        fields = {"token": command.run, "reason": why, "min_ran_s": guarded_s}
        answer = await self._request(command.host, "stop", STOP_S, **fields)
        if answer.get("ok"):
            self.heard(command.host, answer["run"])

    async def _start(self, command: StartMember) -> dict[str, Any]:
        """Refuses by itself what it cannot put into words: the answer is then as a host's."""
        try:
            spec = self.spec(command)
        except (LookupError, ValueError) as error:
            return {"ok": False, "error": "not_started", "message": f"it cannot be described: {error!r}"}
        return await self._request(command.host, "start", START_S, token=command.run, spec=spec)

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
            "gpus": [named(ids[slot]) for slot in bits(command.slots)],
            "rank": command.rank,
            "nodes": len(command.peers),
            "master_addr": self.address(command.peers[0]),
            "master_port": master_port(command.run),
            "checkpoint": checkpoint,
            "time_limit_s": None if w.time_limit_ms is None else w.time_limit_ms / 1000,
            "log_bytes_max": launch.log_bytes_max,
            "stop_target": launch.stop_target,
            "owner": w.owner,
            "workload": w.id,
            "attempt": record.attempt,
        }

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)


def named(uuid: str) -> str:
    """Raises ValueError for a GPU without a UUID: a run gets the GPUs that it was promised or does not start."""
    if not uuid:
        raise ValueError("a GPU has no UUID")
    return uuid


def master_port(run: str) -> int:
    """The same port on every host of a gang, and hardly ever that of another gang."""
    return PORTS[int.from_bytes(sha256(run.encode()).digest()[:4], "big") % len(PORTS)]
