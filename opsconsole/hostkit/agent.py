"""The agent: JSON lines on stdin and stdout, one loop, nothing in it waits. See docs/agent-protocol.md.

It leaves when its stdin ends, when its parent has gone, or when nobody takes its output. Runs do not notice. Idle it
wakes twice a second, to see runs change, and once per interval, to have the GPUs read by its worker.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time
from types import FrameType
from typing import Any, Callable

from . import proc
from .fence import Busy
from .files import Damaged, Record
from .host import host_readings
from .kernel_log import KernelLog
from .ops import Operations, fields_of
from .readings import failed
from .runs import Run
from .runwatch import RunWatch
from .starts import Starts
from .state import HostError, StateDir, disk_error, open_state
from .wire import Leave, Wire
from .worker import Worker, gpu_memory_by_run

WATCH_S = 0.5
KERNEL_S = 1.0
INTERVAL_S = 2.0
BUSY_RETRY_S = 0.05
BUSY_LIMIT_S = 10.0
DISK_S = 30.0
OPS = ("hello", "start", "stop", "list", "log", "forget", "adopt")


class Agent:
    """One session with one client."""

    def __init__(self, state: StateDir, stdin: int = 0, stdout: int = 1) -> None:
        self.state = state
        self.ops = Operations(state)
        self.worker = Worker(state)
        self.kernel: KernelLog | None = None
        self.selector = selectors.DefaultSelector()
        self.wire = Wire(stdin, stdout, self.selector, self._request)
        self.starts = Starts(state, self.ops, self.wire, self.selector, self._watch_soon)
        self.runs = RunWatch(state, self.ops, self._tell_run, self.starts.rescue)
        self.parent = os.getppid()
        self.greeted = False
        self.interval_s = INTERVAL_S
        self.seq = 0
        self.probe_started = 0.0
        self.next_probe = self.next_watch = self.next_kernel = self.next_disk = 0.0
        self.disk_trouble: str | None = None
        self.retries: list[Any] = []
        self.worker_fd = -1

    # -- loop ---------------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        self.wire.open()
        try:
            while True:
                self._turn()
        except Leave:
            self.wire.flush_once()
        finally:
            self.worker.close()
            if self.kernel is not None:
                self.kernel.close()

    def _turn(self) -> None:
        for key, _ in self.selector.select(self._timeout()):
            key.data()
        now = time.monotonic()
        if os.getppid() != self.parent:
            raise Leave()
        self._retry_busy(now)
        self.starts.give_up(now)
        if self.greeted:
            self._timers(now)

    def _timeout(self) -> float:
        if self.retries:
            return BUSY_RETRY_S
        if not self.greeted:
            return 1.0
        due = min(self.next_watch, self.next_probe, self.next_kernel)
        return max(0.0, due - time.monotonic())

    def _timers(self, now: float) -> None:
        if now >= self.next_watch:
            self.next_watch = now + WATCH_S
            self.runs.look(now)
        if now >= self.next_kernel:
            self.next_kernel = now + KERNEL_S
            self._read_kernel(now)
        if now >= self.next_probe:
            # Late by a suspend or a load: one probe, not those that were missed.
            self.next_probe = now + self.interval_s
            self._begin_probe(now)

    # -- requests -----------------------------------------------------------------------------------------------------

    def _request(self, request: Any) -> None:
        if not isinstance(request, dict) or request.get("op") not in OPS:
            number = request.get("id") if isinstance(request, dict) else None
            self.wire.refuse(number, "bad_request", f"`op` is one of {', '.join(OPS)}")
            return
        self._handle(request, time.monotonic() + BUSY_LIMIT_S)

    def _handle(self, request: Record, give_up_at: float) -> None:
        """The door: whatever goes wrong with one request is that request's answer."""
        number = request.get("id")
        try:
            getattr(self, f"_do_{request['op']}", self._do)(request)
        except Busy:
            if time.monotonic() < give_up_at:
                self.retries.append((request, give_up_at))
            else:
                self.wire.refuse(number, "busy", "another agent holds this host's lock")
        except HostError as error:
            self.wire.send({"re": number, "ok": False, **fields_of(error)})
        except OSError as error:
            self.wire.send({"re": number, "ok": False, **fields_of(disk_error(self.state.base, error))})
        except Damaged as error:
            self.wire.refuse(number, "damaged", str(error))
        except Exception as error:  # reported to a person
            self.wire.refuse(number, "internal", f"{type(error).__name__}: {error}")

    def _retry_busy(self, now: float) -> None:
        waiting, self.retries = self.retries, []
        for request, give_up_at in waiting:
            self._handle(request, give_up_at)

    def _do(self, request: Record) -> None:
        self.wire.answer(request.get("id"), getattr(self.ops, request["op"])(request))

    def _do_hello(self, request: Record) -> None:
        interval = request.get("interval_s", INTERVAL_S)
        if isinstance(interval, bool) or not isinstance(interval, (int, float)) or not 0.05 <= interval <= 3600:
            raise HostError("bad_request", "`interval_s` is between 0.05 and 3600")
        answer = self.ops.hello(request)
        self.interval_s = float(interval)
        if self.kernel is not None:
            self.kernel.close()
        self.kernel = KernelLog(self.state, request.get("kernel_cursor"))
        self.greeted = True
        self.runs.told(answer["runs"])
        self.wire.answer(request.get("id"), answer)
        self.next_probe = 0.0

    def _do_start(self, request: Record) -> None:
        found = self.ops.start(request)
        if isinstance(found, Run):
            self.starts.begin(found, request.get("id"))
        else:
            self.wire.answer(request.get("id"), found)

    def _do_stop(self, request: Record) -> None:
        found = self.ops.stop(request)
        if isinstance(found, Run):
            self.starts.rescue(found)
            found = {"run": self.ops.describe(found)}
        self.wire.answer(request.get("id"), found)
        self.next_watch = 0.0

    def _tell_run(self, described: Record) -> None:
        self.wire.send({"event": "run", "run": described})

    def _watch_soon(self) -> None:
        self.next_watch = 0.0

    # -- probes -------------------------------------------------------------------------------------------------------

    def _begin_probe(self, now: float) -> None:
        self.runs.scan()
        if now >= self.next_disk:
            self.next_disk = now + DISK_S
            trouble = self.state.writable()
            self.disk_trouble = None if trouble is None else trouble.message
        hang = self.worker.trouble(now)
        if hang is not None:
            self._unregister_worker()
            self._send_probe(self._no_gpus(hang), now)
        elif self.worker.ask(now):
            self.probe_started = now
            self._register_worker()

    def _register_worker(self) -> None:
        channel = self.worker.socket
        if channel is not None and channel.fileno() != self.worker_fd:
            self._unregister_worker()
            self.worker_fd = channel.fileno()
            self.selector.register(self.worker_fd, selectors.EVENT_READ, self._worker_spoke)

    def _unregister_worker(self) -> None:
        if self.worker_fd >= 0:
            self.selector.unregister(self.worker_fd)
            self.worker_fd = -1

    def _worker_spoke(self) -> None:
        found = self.worker.answer()
        if self.worker.socket is None:
            self._unregister_worker()
        if found is not None:
            self.ops.memory = gpu_memory_by_run(found["gpus"])
            self._send_probe(found, time.monotonic())

    def _no_gpus(self, why: str) -> Record:
        return {"source": "none", "driver": failed(why), "gpus": [], "errors": [why]}

    def _send_probe(self, found: Record, now: float) -> None:
        self.seq += 1
        found.pop("pci_gpus", None)
        host = host_readings(self.state, self.runs.processes)
        if self.kernel is not None:
            host["kernel_log"] = self.kernel.status
        if self.disk_trouble:
            found["errors"].append(self.disk_trouble)
        probe = {
            "at_unix_s": time.time(),
            "boot_id": proc.boot_id(),
            "uptime_s": proc.boottime_s(),
            "seq": self.seq,
            "took_s": round(now - self.probe_started, 4),
            **found,
            "host": host,
        }
        if not self.wire.crowded:
            self.wire.send({"event": "probe", "probe": probe})

    def _read_kernel(self, now: float) -> None:
        if self.kernel is None or self.wire.crowded:
            return
        lines = self.kernel.read(now)
        if lines:
            for at in range(0, len(lines), 500):
                self.wire.send({"event": "kernel", "lines": lines[at : at + 500], "cursor": self.kernel.cursor})
            self.kernel.commit()


def _leave(number: int, frame: FrameType | None) -> None:
    raise Leave()


def run_agent(state_dir: str | None, opening: Callable[[str | None], StateDir] = open_state) -> int:
    """Serve until the client goes. A state directory that cannot be used is told, then the agent leaves with 3."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _leave)
    try:
        state = opening(state_dir)
    except HostError as error:
        print(json.dumps({"event": "fatal", "error": error.code, "message": error.message}), flush=True)
        return 3
    try:
        Agent(state).serve()
    except Leave:
        return 0
    except Exception as error:  # the door: the client reads it as the reason of the end
        message = f"the agent failed: {type(error).__name__}: {error}"
        sys.stdout.write(json.dumps({"event": "fatal", "error": "internal", "message": message}) + "\n")
        sys.stdout.flush()
        return 1
    return 0
