"""One process per run: it starts the workload, keeps its log, stops and reaps it, and says when its GPUs are free.

It is detached from everything (own session, re-parented, no inherited pipes) and is the subreaper of the tree, so no
descendant can leave it: whoever double-forks or starts a session of its own becomes its child. It sleeps until output,
a child's end, a signal or a deadline. Its state file is written before the start is acknowledged, and again at every
change of phase; on a full disk it goes on and tries again. A stop is a durable file, `stop.json`; SIGUSR1 only makes it
look sooner, and SIGUSR2 stops with the spec's own graces where no file can be written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from types import FrameType

from . import proc, tree
from .files import Damaged, Record, read_json, write_json
from .logfile import LogWriter
from .release import ReleaseCheck
from .runs import SUPERVISOR_START_S, Run
from .spec import LOG_BYTES_DEFAULT, LOG_BYTES_MIN, run_environment, signal_name, signal_number
from .state import StateDir
from .stopping import Facts, Stopping, graces_of

PR_SET_CHILD_SUBREAPER = 36
POLL_S = 1.0  # at most this late it sees a stop request whose signal got lost
KILL_POLL_S = 0.1
KILL_POLL_MAX_S = 5.0
READ_BYTES = 65536
IGNORED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP)


def become_subreaper() -> None:
    """Orphans of the tree come to us instead of to init. Raises OSError where the kernel refuses."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Supervisor:
    """`rescue`: the first supervisor was killed; find its orphans, and end or outlive them."""

    def __init__(self, state: StateDir, run_dir: str, rescue: bool = False) -> None:
        self.dirs = state
        self.run = Run(run_dir)
        self.spec = self.run.spec
        self.rescue = rescue
        self.state: Record = {}
        self.unsaved = False
        self.main: proc.Identity | None = None
        self.main_alive = False
        self.checkpoint: subprocess.Popen[bytes] | None = None
        self.checkpoint_mark: float | None = None
        self.killed: set[proc.Identity] = set()
        self.kill_poll_s = KILL_POLL_S
        self.log: LogWriter | None = None
        self.log_pipe = -1
        self.log_feed = -1
        self.stop_now = False
        self.children = False
        self.release = ReleaseCheck(state, self.run.gpus)
        self.stopping = Stopping(bool(self.spec.get("checkpoint")), graces_of({}, self.spec))
        self.wake_read, self.wake_write = os.pipe()

    # -- life ---------------------------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Start the workload, or take a dead supervisor's over. False when there is nothing to supervise.

        On return it is on disk. Raises OSError when it could not be put there: then nothing was started.
        """
        self._listen_to_signals()
        return self._take_over() if self.rescue else self._begin()

    def serve(self) -> None:
        """Until the tree is gone and its GPUs are released. The lock of the run is held by the caller."""
        while not self._finished():
            self._wait()
            self._reap()
            self._read_log()
            self._look_for_stop()
            self._advance()
            if self.unsaved:
                self._save()
        self._end()

    def _listen_to_signals(self) -> None:
        for fd in (self.wake_read, self.wake_write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        for number in (*IGNORED, signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, _nothing)  # a handler, unlike SIG_IGN, is not inherited by the workload
        signal.signal(signal.SIGUSR2, self._stop_without_file)

    def _stop_without_file(self, number: int, frame: FrameType | None) -> None:
        self.stop_now = True

    # -- start --------------------------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Write down who we are, then start the workload."""
        own = proc.read_stat(os.getpid())
        assert own is not None, "/proc is not mounted"
        self.state = {
            "phase": "starting",
            "boot_id": proc.boot_id(),
            "supervisor": own.identity._asdict(),
            "signalled": False,
            "exit": None,
        }
        reason = self._reason_not_to_start()
        if reason is not None:
            self._set("never_started", error=reason)
            return False
        self._save(must=True)  # before the workload exists: a start that is not on disk does not happen
        self.log = LogWriter(self.run.dir, int(max(LOG_BYTES_MIN, self.spec.get("log_bytes_max") or LOG_BYTES_DEFAULT)))
        self.log_pipe, self.log_feed = os.pipe()
        os.set_blocking(self.log_pipe, False)
        try:
            self._start_main()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._never_ran(error)
        return True

    def _reason_not_to_start(self) -> str | None:
        if self.run.state is not None:
            return "it was started before"
        if os.path.exists(self.run.path("stop.json")):
            return "it was stopped before it started"
        now, ordered = proc.boottime_s(), self.run.order.get("ordered_boot_s")
        if self.run.other_boot() or (now and ordered and now - ordered > SUPERVISOR_START_S):
            return "its supervisor came up too late"
        return None

    def _start_main(self) -> None:
        popen = self._spawn(self.spec["argv"])
        started = proc.read_stat(popen.pid)
        start = 0 if started is None else started.start
        self.main = proc.Identity(popen.pid, start)
        self.main_alive = self.children = True
        popen.returncode = 0  # we reap it ourselves, with everybody else
        self._set("running", main=self.main._asdict(), started_unix_s=time.time(), started_boot_s=proc.boottime_s())

    def _spawn(self, argv: list[str]) -> subprocess.Popen[bytes]:
        """In a session of its own, output into the log. Raises OSError with the file that is missing."""
        env = run_environment(os.environ, self.spec, self.run.token, self.run.dir)
        return subprocess.Popen(
            argv,
            cwd=self.spec.get("cwd") or os.path.expanduser("~"),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self.log_feed,
            stderr=self.log_feed,
            start_new_session=True,
        )

    def _never_ran(self, error: Exception) -> None:
        """The program or its directory is missing: an exit like a shell's, and the reason in words and in the log."""
        missing = isinstance(error, FileNotFoundError)
        text = f"cannot start {self.spec['argv'][0]!r}: {error}"
        self._log_line(text)
        self._set("exited", exit={"code": 127 if missing else 126}, error=text, ran_s=0.0, started_unix_s=time.time())

    def _take_over(self) -> bool:
        """A rescue: the run goes on where its dead supervisor left it; its exit status is lost.

        A workload that lives and shall not stop is left alone: nobody needs to watch it for it to go on.
        """
        if not self.run.state or self.run.phase() in ("released", "never_started"):
            return False
        self.state = {**self.run.state, "rescued": True}
        self.main = self.run.identity("main")
        self.children = bool(self._orphans())
        self._look_for_stop()
        if self.children and not self.stopping.requested and not self.state.get("exit"):
            return False
        self._set("exited" if self.state.get("exit") else "stopping")
        return True

    # -- the loop's parts ---------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        timeout = POLL_S
        deadlines = (self.stopping.deadline(), self._time_limit_at())
        for deadline in deadlines:
            if deadline is not None:
                timeout = min(timeout, max(0.0, deadline - self._now()))
        if self.stopping.step == "kill":
            timeout = min(timeout, self.kill_poll_s)
        if not self.children:
            timeout = self.release.pause_s()
        sources = [self.wake_read, *([self.log_pipe] if self.log_pipe >= 0 else []), *self.release.fds()]
        ready = select.select(sources, [], [], timeout)[0]
        if self.wake_read in ready:
            drain(self.wake_read)

    def _reap(self) -> None:
        """Every child that ended. No child at all means an empty tree: nothing below a subreaper can leave it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.children = bool(self.rescue and self._orphans())
                return
            if pid == 0:
                self.children = self._tree_is_populated()
                return
            if self.main is not None and pid == self.main.pid:
                self._main_ended(status)
            elif self.checkpoint is not None and pid == self.checkpoint.pid:
                self.checkpoint.returncode = status
            else:
                self.release.reaped(pid)

    def _tree_is_populated(self) -> bool:
        """Children there are; only where one of them may be our own helper does it need a closer look."""
        if self.rescue:
            return bool(self._orphans())
        return bool(tree.below(proc.scan(), os.getpid())) if self.release.busy() else True

    def _orphans(self) -> set[int]:
        return tree.orphans(proc.scan(), self.run.dir, self.main, look_inside=True)

    def _main_ended(self, status: int) -> None:
        signalled = os.WIFSIGNALED(status)
        ended = {"signal": signal_name(os.WTERMSIG(status))} if signalled else {"code": os.WEXITSTATUS(status)}
        self.main_alive = False
        self._set("exited", exit=ended, ran_s=self.ran_s(), ended_unix_s=time.time())

    def _read_log(self) -> None:
        """A bounded bite per turn, so that a chatty workload never delays its own stop."""
        for _ in range(16):
            if self.log_pipe < 0:
                return
            try:
                data = os.read(self.log_pipe, READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            if self.log is not None:
                self.log.write(data)

    def _log_line(self, text: str) -> None:
        if self.log is not None:
            self.log.write(f"opsconsole: {text}\n".encode("utf-8", "backslashreplace"))

    def _look_for_stop(self) -> None:
        limit = self._time_limit_at()
        if limit is not None and self._now() >= limit and not self.stopping.requested:
            self._ask_to_stop({"reason": "time_limit"})
        if self.stop_now:
            self.stop_now = False
            self._ask_to_stop({"reason": "stopped while its state directory could not be written"})
        request = self._read_request()
        if request is not None:
            self._ask_to_stop(request)

    def _read_request(self) -> Record | None:
        path = self.run.path("stop.json")
        try:
            mark = os.stat(path).st_mtime_ns
            if mark == getattr(self, "_request_mark", None):
                return None
            self._request_mark = mark
            return read_json(path)
        except FileNotFoundError:
            return None
        except (Damaged, OSError):
            return {"reason": "a damaged stop request"}  # somebody wants it stopped; the spec's graces hold

    def _ask_to_stop(self, request: Record) -> None:
        self.stopping.request(graces_of(request, self.spec))
        if self.state.get("exit") is None and not self.state.get("signalled"):
            self._set("stopping", signalled=True, stop_reason=request.get("reason"))

    def _advance(self) -> None:
        while True:
            facts = Facts(self._now(), self._main_runs(), not self.children, self._checkpoint_done())
            step = self.stopping.advance(facts)
            if step is None:
                break
            {"checkpoint": self._do_checkpoint, "term": self._do_term, "kill": self._note_kill}[step]()
        if self.stopping.step == "kill" and self.children:
            self._kill()
        if not self.children:
            self.release.start_if_due()

    def _main_runs(self) -> bool:
        if self.rescue:
            return self.children and not self.state.get("exit")
        return self.main_alive

    # -- rule 13's steps ----------------------------------------------------------------------------------------------

    def _do_checkpoint(self) -> None:
        wish = self.spec["checkpoint"]
        self.checkpoint_mark = self._mark()
        if "signal" in wish:
            number = signal_number(wish["signal"])
            if self.main is not None and number is not None:
                tree.send(self.main, number)
            return
        try:
            self.checkpoint = self._spawn(wish["argv"])
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._log_line(f"the checkpoint command failed: {error}")
            self.checkpoint_mark = -1.0

    def _checkpoint_done(self) -> bool:
        if self.checkpoint is not None:
            return self.checkpoint.returncode is not None
        return self.stopping.step == "checkpoint" and self._mark() != self.checkpoint_mark

    def _mark(self) -> float | None:
        try:
            return os.stat(self.run.path("checkpointed")).st_mtime
        except OSError:
            return None

    def _do_term(self) -> None:
        """SIGTERM to the tree (or what `stop_target` says), and SIGCONT, so that the stopped can hear it."""
        processes = proc.scan()
        for pid in self._targets(processes):
            for number in (signal.SIGTERM, signal.SIGCONT):
                tree.send(processes[pid].identity, number)

    def _targets(self, processes: proc.Scan) -> set[int]:
        found = self._members(processes)
        target = self.spec.get("stop_target", "tree")
        if self.main is None or target == "tree" or not self._main_runs():
            return found
        if target == "main":
            return found & {self.main.pid}
        return {pid for pid in found if processes[pid].pgrp == self.main.pid}

    def _members(self, processes: proc.Scan) -> set[int]:
        if self.rescue:
            return tree.orphans(processes, self.run.dir, self.main, look_inside=True)
        return tree.below(processes, os.getpid())

    def _note_kill(self) -> None:
        self.state["killed_boot_s"] = self._now()

    def _kill(self) -> None:
        """SIGKILL once to each process of the tree, looking again until none is left; stuck ones are named."""
        processes = proc.scan()
        stuck = []
        for pid in self._members(processes):
            identity = processes[pid].identity
            if identity not in self.killed:
                self.killed.add(identity)
                self.kill_poll_s = KILL_POLL_S
                tree.send(identity, signal.SIGKILL)
            elif processes[pid].state == "D":
                stuck.append(pid)
        self.kill_poll_s = min(KILL_POLL_MAX_S, self.kill_poll_s * 1.5)
        note = f"cannot be killed: process {', '.join(map(str, sorted(stuck)))} waits for a device" if stuck else None
        if note != self.state.get("error") and (note or "cannot be killed" in str(self.state.get("error"))):
            self.state["error"] = note
            self.unsaved = True

    # -- end ----------------------------------------------------------------------------------------------------------

    def _finished(self) -> bool:
        return not self.children and not self._main_runs() and self.release.done()

    def _end(self) -> None:
        self._read_log()
        if self.log is not None:
            self.log.close()
        if self.rescue and not self.state.get("exit"):
            self.state["error"] = "its supervisor was killed: its exit status will never be known"
        self._set("released", released_boot_s=proc.boottime_s())
        while self.unsaved:
            time.sleep(POLL_S)
            self._save()

    # -- small things -------------------------------------------------------------------------------------------------

    def _now(self) -> float:
        now = proc.boottime_s()
        return time.monotonic() if now is None else now

    def ran_s(self) -> float | None:
        now, started = proc.boottime_s(), self.state.get("started_boot_s")
        return None if now is None or started is None else now - float(started)

    def _time_limit_at(self) -> float | None:
        limit, started = self.spec.get("time_limit_s"), self.state.get("started_boot_s")
        return None if limit is None or started is None or self.rescue else float(started) + float(limit)

    def _set(self, phase: str, **facts: object) -> None:
        self.state.update(facts, phase=phase)
        self._save()

    def _save(self, must: bool = False) -> None:
        try:
            write_json(self.run.path("state.json"), self.state)
            self.unsaved = False
        except OSError:
            if must:
                raise
            self.unsaved = True  # a full disk: the loop tries again


def _nothing(number: int, frame: FrameType | None) -> None:
    """Only the wake-up counts."""


def drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except (BlockingIOError, InterruptedError):
        return


def announce(ready_fd: int, text: str) -> None:
    """Tell whoever started us that the start is on disk, or why not. It may be gone; that changes nothing."""
    with contextlib.suppress(OSError):
        os.write(ready_fd, text.replace("\n", " ").encode("utf-8", "backslashreplace") + b"\n")
    os.close(ready_fd)


def detach() -> None:
    """Leave the starter behind: fork, so that we are nobody's session leader and init's (or a user manager's) child."""
    if os.fork():
        os._exit(0)
    os.chdir("/")


def supervise(state: StateDir, run_dir: str, ready_fd: int, rescue: bool) -> int:
    """What the process does from its first to its last instruction. Its own mistakes end in `supervisor.err`."""
    detach()
    lock = os.open(os.path.join(run_dir, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if rescue:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0  # somebody supervises it
    else:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a reader holds it for an instant only
    try:
        become_subreaper()
        supervisor = Supervisor(state, run_dir, rescue)
        stands = supervisor.begin()
    except Exception as error:  # the door: who started us reads it, and so does the run directory
        announce(ready_fd, f"error: {error}")
        report_failure(run_dir, error)
        return 1
    announce(ready_fd, "ready")
    try:
        if stands:
            supervisor.serve()
    except Exception as error:  # the door: nobody else hears of it
        report_failure(run_dir, error)
        return 1
    return 0


def report_failure(run_dir: str, error: Exception) -> None:
    """A mistake of ours, kept beside the run for whoever looks."""
    import traceback

    try:
        with open(os.path.join(run_dir, "supervisor.err"), "a", encoding="utf-8") as file:
            traceback.print_exc(file=file)
    except OSError:
        print(error, file=sys.stderr)
