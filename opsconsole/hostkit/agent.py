"""The agent: JSON lines on stdin and stdout, one loop, nothing in it waits. See docs/agent-protocol.md.

It leaves when its stdin ends, when its parent has gone, or when nobody takes its output. Runs do not notice. Idle it
wakes twice a second, to see runs change, and once per interval, to have the GPUs read by its worker.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any, Callable, NamedTuple

from . import proc
from .fence import Busy
from .files import Damaged, Record
from .host import host_readings
from .kernel_log import KernelLog
from .ops import Operations, fields_of, needs_rescue, runs_changed_at, signature
from .readings import failed
from .runs import Run, all_runs
from .spawn import spawn_supervisor
from .state import HostError, StateDir, disk_error, open_state
from .worker import Worker, gpu_memory_by_run

LINE_BYTES_MAX = 1 << 20
WATCH_S = 0.5
KERNEL_S = 1.0
INTERVAL_S = 2.0
BUSY_RETRY_S = 0.05
BUSY_LIMIT_S = 10.0
START_TIMEOUT_S = 25.0  # below runs.SUPERVISOR_START_S: what we call failed cannot start later
RESCUE_PAUSE_S = 20.0
SCAN_SHARE = 0.003  # of a core, at most, for looking through /proc unasked
OUTPUT_FULL = 1 << 18  # probes are skipped while this much waits for the client
OUTPUT_LIMIT = 1 << 26
OPS = ("hello", "start", "stop", "list", "log", "forget", "adopt")


class Starting(NamedTuple):
    """A supervisor that has not said yet that it stands. `id` None: a rescue that nobody waits for."""

    id: Any
    run_dir: str
    starter: subprocess.Popen[bytes]
    deadline: float


class Leave(BaseException):
    """The agent's work is over. No door for exceptions stops it."""


class Agent:
    """One session with one client."""

    def __init__(self, state: StateDir, stdin: int = 0, stdout: int = 1) -> None:
        self.state = state
        self.stdin = stdin
        self.stdout = stdout
        self.ops = Operations(state)
        self.worker = Worker(state)
        self.kernel: KernelLog | None = None
        self.selector = selectors.DefaultSelector()
        self.parent = os.getppid()
        self.input = b""
        self.skipping = False
        self.output = bytearray()
        self.writing = False
        self.greeted = False
        self.interval_s = INTERVAL_S
        self.seq = 0
        self.probe_started = 0.0
        self.next_probe = self.next_watch = self.next_kernel = self.next_disk = 0.0
        self.disk_trouble: str | None = None
        self.retries: list[Any] = []
        self.starting: dict[int, Starting] = {}
        self.rescued: dict[str, float] = {}
        self.seen: dict[str, list[Any]] = {}
        self.live: dict[str, Run] = {}
        self.runs_mark = -1
        self.processes: proc.Scan = {}
        self.scan_due = 0.0
        self.worker_fd = -1

    # -- loop ---------------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        for fd in (self.stdin, self.stdout):
            os.set_blocking(fd, False)
        self.selector.register(self.stdin, selectors.EVENT_READ, self._read_input)
        try:
            while True:
                self._turn()
        except Leave:
            self._flush_once()
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
        self._give_up_starts(now)
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
            self._watch_runs(now)
        if now >= self.next_kernel:
            self.next_kernel = now + KERNEL_S
            self._read_kernel(now)
        if now >= self.next_probe:
            # Late by a suspend or a load: one probe, not those that were missed.
            self.next_probe = now + self.interval_s
            self._begin_probe(now)

    # -- input --------------------------------------------------------------------------------------------------------

    def _read_input(self) -> None:
        try:
            data = os.read(self.stdin, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            raise Leave()
        *lines, self.input = (self.input + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self.input) > LINE_BYTES_MAX:
            self.input, self.skipping = b"", True

    def _line(self, line: bytes) -> None:
        if self.skipping or len(line) > LINE_BYTES_MAX:
            self.skipping = False
            self._refuse(None, "bad_request", f"a line has at most {LINE_BYTES_MAX} bytes")
            return
        if not line.strip():
            return
        try:
            request = json.loads(line)
        except ValueError as error:
            self._refuse(None, "bad_request", f"no JSON: {error}")
            return
        except RecursionError:
            self._refuse(None, "bad_request", "nested too deeply")
            return
        if not isinstance(request, dict) or request.get("op") not in OPS:
            number = request.get("id") if isinstance(request, dict) else None
            self._refuse(number, "bad_request", f"`op` is one of {', '.join(OPS)}")
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
                self._refuse(number, "busy", "another agent holds this host's lock")
        except HostError as error:
            self._send({"re": number, "ok": False, **fields_of(error)})
        except OSError as error:
            self._send({"re": number, "ok": False, **fields_of(disk_error(self.state.base, error))})
        except Damaged as error:
            self._refuse(number, "damaged", str(error))
        except Exception as error:  # reported to a person
            self._refuse(number, "internal", f"{type(error).__name__}: {error}")

    def _retry_busy(self, now: float) -> None:
        waiting, self.retries = self.retries, []
        for request, give_up_at in waiting:
            self._handle(request, give_up_at)

    # -- requests -----------------------------------------------------------------------------------------------------

    def _do(self, request: Record) -> None:
        self._answer(request.get("id"), getattr(self.ops, request["op"])(request))

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
        for described in answer["runs"]:
            self.seen[described["token"]] = signature(described)
        self._answer(request.get("id"), answer)
        self.next_probe = 0.0

    def _do_start(self, request: Record) -> None:
        found = self.ops.start(request)
        if isinstance(found, Run):
            self._spawn(found, request.get("id"), rescue=False)
        else:
            self._answer(request.get("id"), found)

    def _do_stop(self, request: Record) -> None:
        found = self.ops.stop(request)
        if isinstance(found, Run):
            self._spawn(found, None, rescue=True)
            found = {"run": self.ops.describe(found)}
        self._answer(request.get("id"), found)
        self.next_watch = 0.0

    def _spawn(self, run: Run, number: Any, rescue: bool) -> None:
        starter, pipe = spawn_supervisor(self.state, run.dir, rescue)
        self.starting[pipe] = Starting(number, run.dir, starter, time.monotonic() + START_TIMEOUT_S)
        self.selector.register(pipe, selectors.EVENT_READ, lambda: self._supervisor_spoke(pipe))

    def _supervisor_spoke(self, pipe: int) -> None:
        try:
            data = os.read(pipe, 4096)
        except BlockingIOError:
            return
        start = self._end_start(pipe)
        if start.id is None:
            return
        word = data.decode("utf-8", "replace").strip()
        if word == "ready":
            self._answer(start.id, {"run": self.ops.describe(Run(start.run_dir)), "started_before": False})
        elif "Errno" in word:
            self._refuse(start.id, "state_dir", f"nothing was started; {start.run_dir}: {word}")
        else:
            self._refuse(start.id, "not_started", word or "its supervisor did not come up")

    def _end_start(self, pipe: int) -> Starting:
        self.selector.unregister(pipe)
        os.close(pipe)
        start = self.starting.pop(pipe)
        reap(start.starter)
        self.next_watch = 0.0
        return start

    def _give_up_starts(self, now: float) -> None:
        for pipe, start in list(self.starting.items()):
            if now > start.deadline:
                self._end_start(pipe)
                if start.id is not None:
                    self._refuse(
                        start.id, "timeout", "the supervisor has not come up; ask for `list` to see whether it does"
                    )

    # -- runs ---------------------------------------------------------------------------------------------------------

    def _watch_runs(self, now: float) -> None:
        """Tell every change of a phase, also of runs that another agent started."""
        mark = runs_changed_at(self.state)
        if mark != self.runs_mark:
            self.runs_mark = mark
            self.live = {run.dir: run for run in all_runs(self.state)}
        changed = False
        for run in list(self.live.values()):
            run.reload()
            phase = run.phase()
            before = self.seen.get(run.token)
            if before is None or before[0] != phase or before != signature(self._cheap(run)):
                changed = True
            if phase in ("released", "never_started") or run.other_boot():
                self.live.pop(run.dir)
            elif phase in ("unknown", "exited") and not run.supervised():
                self._rescue(run, now)
        if changed:
            self._tell_changes()

    def _cheap(self, run: Run) -> Record:
        return run.describe(0)

    def _tell_changes(self) -> None:
        self._look_at_processes(force=True)
        for run in all_runs(self.state):
            described = self.ops.describe(run, self.processes)
            now_seen = signature(described)
            if self.seen.get(run.token) != now_seen:
                self.seen[run.token] = now_seen
                self._send({"event": "run", "run": described})

    def _rescue(self, run: Run, now: float) -> None:
        if now - self.rescued.get(run.dir, -RESCUE_PAUSE_S) < RESCUE_PAUSE_S:
            return
        self._look_at_processes(force=True)
        if needs_rescue(run, self.processes):
            self.rescued[run.dir] = now
            self._spawn(run, None, rescue=True)

    def _look_at_processes(self, force: bool = False) -> None:
        """Through /proc, at most so often that it costs a small share of a core."""
        now = time.monotonic()
        if not force and now < self.scan_due:
            return
        self.processes = proc.scan()
        self.scan_due = now + (time.monotonic() - now) / SCAN_SHARE

    # -- probes -------------------------------------------------------------------------------------------------------

    def _begin_probe(self, now: float) -> None:
        self._look_at_processes()
        if now >= self.next_disk:
            self.next_disk = now + 30.0
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
        host = host_readings(self.state, self.processes)
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
        if len(self.output) < OUTPUT_FULL:
            self._send({"event": "probe", "probe": probe})

    def _read_kernel(self, now: float) -> None:
        if self.kernel is None or len(self.output) >= OUTPUT_FULL:
            return
        lines = self.kernel.read(now)
        if lines:
            for at in range(0, len(lines), 500):
                self._send({"event": "kernel", "lines": lines[at : at + 500], "cursor": self.kernel.cursor})
            self.kernel.commit()

    # -- output -------------------------------------------------------------------------------------------------------

    def _answer(self, number: Any, fields: Record) -> None:
        self._send({"re": number, "ok": True, **fields})

    def _refuse(self, number: Any, code: str, message: str) -> None:
        self._send({"re": number, "ok": False, "error": code, "message": message})

    def _send(self, message: Record) -> None:
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        if len(line) > LINE_BYTES_MAX:
            what = {key: message[key] for key in ("re", "event") if key in message}
            line = json.dumps(
                {**what, "ok": False, "error": "too_long", "message": "longer than a line may be"}
            ).encode()
            line += b"\n"
        self.output += line
        self._write()

    def _write(self) -> None:
        """As much as the client takes; the rest when it takes more."""
        try:
            while self.output:
                sent = os.write(self.stdout, self.output[: 1 << 16])
                del self.output[:sent]
        except BlockingIOError:
            pass
        except OSError:
            raise Leave() from None
        if len(self.output) > OUTPUT_LIMIT:
            raise Leave()
        if bool(self.output) != self.writing:
            self.writing = bool(self.output)
            if self.writing:
                self.selector.register(self.stdout, selectors.EVENT_WRITE, self._write)
            else:
                self.selector.unregister(self.stdout)

    def _flush_once(self) -> None:
        try:
            if self.output:
                os.write(self.stdout, self.output)
        except OSError:
            return


def reap(starter: subprocess.Popen[bytes]) -> None:
    """It forks and ends within milliseconds; what is left of it then is ended."""
    try:
        starter.wait(2.0)
    except subprocess.TimeoutExpired:
        starter.kill()
        starter.wait()


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
