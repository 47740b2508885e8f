"""Rule 27's fence: the inventory's command powers a lost host off on this machine, so that its runs are known dead.

Exit status 0 is the confirmation; anything else is told, and tried again while the host is still lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from opsconsole.following import Follower
from opsconsole.readings import text_of
from scheduler_core.breaker import host_moves
from scheduler_core.commands import Command, FenceHost
from scheduler_core.fleet import Reach
from scheduler_core.ids import HostName
from scheduler_core.observations import HostFenced

FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 600.0
TAIL_BYTES = 300


class Fencing:
    """`confirmed` takes what has become known. One command per host at a time; ends with `aclose`."""

    def __init__(self, picture: Follower, confirmed: Callable[[list[HostFenced]], None]) -> None:
        self.picture, self.confirmed = picture, confirmed
        self._tasks: dict[HostName, asyncio.Task[None]] = {}

    def send(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if isinstance(command, FenceHost) and command.host not in self._tasks:
                task = asyncio.create_task(self._fence(command.host), name=f"fence {command.host}")
                self._tasks[command.host] = task
                task.add_done_callback(lambda task, host=command.host: self._ended(host, task))  # type: ignore[misc]

    async def aclose(self) -> None:
        """A command that is under way is killed; the next leader runs it again."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, host: HostName, task: asyncio.Task[None]) -> None:
        self._tasks.pop(host, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(host, f"the fence of {host} failed: {type(error).__name__}: {error}")  # a defect must be seen

    def _tell(self, host: HostName, text: str) -> None:
        self.picture.alarm(f"fence {host}", text)

    async def _fence(self, host: HostName) -> None:
        """Until it is confirmed, or nobody wants it any more."""
        try:
            for attempt in count():
                command = self._wanted(host)
                if command is None:
                    break
                why = self._too_many() or self._misnamed(host) or await self._try(host)
                if not why:
                    self.confirmed([HostFenced(host, command.id)])
                    break
                pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
                self._tell(host, f"{host} is lost and was not powered off: {why}; again in {pause_s:.0f} s")
                await self._pause(host, pause_s)
        finally:
            self._tell(host, "")

    def _wanted(self, host: HostName) -> FenceHost | None:
        found = (c for c in self.picture.engine.outstanding(host) if isinstance(c, FenceHost))
        return next(found, None)

    async def _pause(self, host: HostName, pause_s: float) -> None:
        """Over as soon as the host is back."""
        until = asyncio.get_running_loop().time() + pause_s
        while (left_s := until - asyncio.get_running_loop().time()) > 0 and self._wanted(host) is not None:
            await asyncio.sleep(min(1.0, left_s))

    def _too_many(self) -> str:
        """Many hosts silent at once are more likely this machine's network than their power (rule 29). Those that will
        be lost in a moment count: an outage does not begin everywhere in the same second.
        """
        state = self.picture.state
        silent = sum(1 for host in state.hosts.values() if host.runs and host.reach in (Reach.UNREACHABLE, Reach.LOST))
        _, most = host_moves(state)
        if silent <= most:
            return ""
        return (
            f"{silent} hosts are silent at once, more than the breaker's {most}: look at the network, or declare dead"
        )

    def _misnamed(self, host: HostName) -> str:
        """Its machine is not lost where its name leads to another one: the inventory is wrong."""
        refused = self.picture.readings[host].refused
        return f"its name leads to {refused}" if refused else ""

    async def _try(self, host: HostName) -> str:
        site = self.picture.site
        argv = site.fence.get(host, ())
        if not argv:
            return "the inventory has no fence for it any more"
        address = site.reach[host].address if host in site.reach else ""
        return await power_off(argv, {"OPSCONSOLE_HOST": host, "OPSCONSOLE_ADDRESS": address}, site.fence_s)


async def power_off(argv: Sequence[str], variables: Mapping[str, str], deadline_s: float) -> str:
    """Runs the command, without a shell. Empty when it confirmed; else why not, with the end of what it said.

    It speaks to a file, not to a pipe: a child that it left behind would keep a pipe open.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        except OSError as error:
            return f"{argv[0]} cannot be run: {error.strerror}"
        try:
            async with asyncio.timeout(deadline_s):
                status = await process.wait()
            why = f"exit status {status}" if status > 0 else f"killed by signal {-status}"
        except TimeoutError:
            status, why = -1, f"{argv[0]} did not end in {deadline_s:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - TAIL_BYTES))
        last = text_of(said.read().decode(errors="replace").strip())
    return "" if status == 0 else why + (f": {last}" if last else "")
