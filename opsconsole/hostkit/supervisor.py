"""One process per run: it starts the workload, keeps its log, stops and reaps it, and says when its GPUs are free.

It is detached from everything (own session, re-parented, no inherited pipes) and is the subreaper of the tree, so no
descendant can leave it: whoever double-forks or starts a session of its own becomes its child. It sleeps until output,
a child's end, a signal or a deadline. Its state file is written before the start is acknowledged, and again at every
change of phase; on a full disk it goes on and tries again. A stop is a durable file, `stop.json`; SIGUSR1 only makes it
look sooner, and SIGUSR2 stops with the spec's own graces where no file can be written.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from types import FrameType

from . import proc, tree
from .checkpoint import Checkpoint
from .files import Damaged, Record, read_json, write_json
from .killing import STUCK, Killing
from .output import RunOutput
from .release import UNKNOWN, ReleaseCheck
from .runs import SUPERVISOR_START_S, Run
from .spec import LOG_BYTES_DEFAULT, LOG_BYTES_MIN, run_environment, signal_name
from .state import StateDir
from .stopping import Facts, Stopping, graces_of

POLL_S = 1.0  # at most this late it sees a stop request whose signal got lost
IGNORED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP)


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
        self.checkpoint = Checkpoint(self.spec.get("checkpoint") or {}, self.run.path("checkpointed"))
        self.killing = Killing()
        self.output: RunOutput | None = None  # a rescue comes too late for it
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
            if self.output is not None:
                self.output.read()
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
        log_bytes_max = int(max(LOG_BYTES_MIN, self.spec.get("log_bytes_max") or LOG_BYTES_DEFAULT))
        self.output = RunOutput(self.run.dir, log_bytes_max)
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
        feed = subprocess.DEVNULL if self.output is None else self.output.feed
        return subprocess.Popen(
            argv,
            cwd=self.spec.get("cwd") or os.path.expanduser("~"),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=feed,
            stderr=feed,
            start_new_session=True,
        )

    def _never_ran(self, error: Exception) -> None:
        """The program or its directory is missing: an exit like a shell's, and the reason in words and in the log."""
        missing = isinstance(error, FileNotFoundError)
        text = f"cannot start {self.spec['argv'][0]!r}: {error}"
        self._say(text)
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
            timeout = min(timeout, self.killing.poll_s)
        if not self.children:
            timeout = self.release.pause_s()
        sources = [self.wake_read, *([self.output.pipe] if self.output is not None else []), *self.release.fds()]
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
            elif not self.checkpoint.reaped(pid, status):
                self.release.reaped(pid)
                self._note(self.release.error, UNKNOWN)

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

    def _say(self, text: str) -> None:
        """Into the workload's log, where there is one."""
        if self.output is not None:
            self.output.line(text)

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
            facts = Facts(self._now(), self._main_runs(), not self.children, self.checkpoint.done())
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
        try:
            self.checkpoint.begin(self.main, self._spawn)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._say(f"the checkpoint command failed: {error}")

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
        processes = proc.scan()
        self._note(self.killing.kill(self._members(processes), processes), STUCK)

    def _note(self, note: str | None, kind: str) -> None:
        """What a person should know while it lasts. A reason of another kind stays."""
        known = self.state.get("error")
        if note != known and (known is None or kind in known):
            self.state["error"] = note
            self.unsaved = True

    # -- end ----------------------------------------------------------------------------------------------------------

    def _finished(self) -> bool:
        return not self.children and not self._main_runs() and self.release.done()

    def _end(self) -> None:
        if self.output is not None:
            self.output.close()
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
