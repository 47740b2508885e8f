"""A cluster as its journal tells it: a real store and inventory, nobody who leads, and the command line on them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opsconsole.clock import boot_id, boot_now_ms, wall_now_ms
from opsconsole.store.store import Store
from tests.core.clusters import Cluster
from tests.live.commands import OPSCONSOLE, CommandLine

PATIENCE_S = 20.0


@dataclass
class Told(CommandLine):
    """The command line, on pipes and on terminals."""

    cluster: Cluster

    @contextmanager
    def on_terminal(self, *words: str, columns: int = 80) -> Iterator[Terminal]:
        """A command on a terminal of its own; whatever happens, it ends."""
        environment = {**self.environment(), "TERM": "xterm", "COLUMNS": str(columns)}
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(OPSCONSOLE[0], [*OPSCONSOLE, *words], environment)
        terminal = Terminal(pid, fd)
        try:
            yield terminal
        finally:
            terminal.close()

    def shown(self, *words: str, columns: int = 80) -> str:
        """What a command says on a terminal."""
        with self.on_terminal(*words, columns=columns) as terminal:
            assert terminal.ended() == 0, terminal.said
            return terminal.said


def told(folder: Path, cluster: Cluster, probes: Mapping[str, object] | None = None) -> Told:
    """Its store holds the state as it is now, the newest readings, and no journal."""
    store = Store(folder / "state" / "main.db")
    store.snapshot(cluster.engine, 1, 0)
    store.put("clock", json.dumps([boot_id(), boot_now_ms(), cluster.now]))
    store.put_readings({host: (wall_now_ms(), json.dumps(probe).encode()) for host, probe in (probes or {}).items()})
    store.close()
    hosts = "".join(f"  - {{name: {name}, gpus: {gpus}}}\n" for name, gpus in cluster.hosts.items())
    budgets = "".join(f"  - {{name: {name}, weight: {weight}}}\n" for name, weight in cluster.weights.items())
    inventory = folder / "inventory.yaml"
    inventory.write_text(f"hosts:\n{hosts}budgets:\n{budgets}state_dir: {folder}/state\n")
    return Told(inventory, cluster)


@dataclass
class Terminal:
    """A process on a pseudo terminal."""

    pid: int
    fd: int
    said: str = ""
    status: int | None = None

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, words: str) -> None:
        """Until it has said this. Fails with all that it said."""
        end = time.monotonic() + PATIENCE_S
        while words not in self.said:
            assert self._read(end) or words in self.said, f"waited for {words!r}; it said:\n{self.said}"

    def ended(self) -> int:
        """Its exit status, once it has ended by itself."""
        end = time.monotonic() + PATIENCE_S
        while self._read(end):
            pass
        assert time.monotonic() < end, f"it does not end; it said:\n{self.said}"
        _, how = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(how)
        return self.status

    def _read(self, end: float) -> bool:
        """False at its end, or when it is late."""
        readable, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
        if not readable:
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # so Linux tells the end of a terminal
            return False
        self.said += data.decode().replace("\r\n", "\n")
        return bool(data)

    def close(self) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        os.close(self.fd)
