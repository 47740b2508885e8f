"""Supervisors on their way up: a start is answered when its supervisor stands, or has failed to in its time."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from typing import Any, Callable, NamedTuple

from .ops import Operations
from .runs import Run
from .spawn import spawn_supervisor
from .state import StateDir
from .wire import Wire

START_TIMEOUT_S = 25.0  # below runs.SUPERVISOR_START_S: what we call failed cannot start later


class Starting(NamedTuple):
    """A supervisor that has not said yet that it stands. `id` None: a rescue that nobody waits for."""

    id: Any
    run_dir: str
    starter: subprocess.Popen[bytes]
    deadline: float


class Starts:
    """`on_end` is called whenever one has come up or failed: its run has changed."""

    def __init__(
        self, state: StateDir, ops: Operations, wire: Wire, selector: selectors.BaseSelector, on_end: Callable[[], None]
    ) -> None:
        self.state = state
        self.ops = ops
        self.wire = wire
        self.selector = selector
        self.on_end = on_end
        self.under_way: dict[int, Starting] = {}

    def begin(self, run: Run, number: Any) -> None:
        """For the request of that number."""
        self._spawn(run, number, rescue=False)

    def rescue(self, run: Run) -> None:
        """Its supervisor is dead; somebody has to finish."""
        self._spawn(run, None, rescue=True)

    def give_up(self, now: float) -> None:
        """Those whose time is over."""
        for pipe, start in list(self.under_way.items()):
            if now > start.deadline:
                self._end(pipe)
                if start.id is not None:
                    text = "the supervisor has not come up; ask for `list` to see whether it does"
                    self.wire.refuse(start.id, "timeout", text)

    def _spawn(self, run: Run, number: Any, rescue: bool) -> None:
        starter, pipe = spawn_supervisor(self.state, run.dir, rescue)
        self.under_way[pipe] = Starting(number, run.dir, starter, time.monotonic() + START_TIMEOUT_S)
        self.selector.register(pipe, selectors.EVENT_READ, lambda: self._spoke(pipe))

    def _spoke(self, pipe: int) -> None:
        try:
            data = os.read(pipe, 4096)
        except BlockingIOError:
            return
        start = self._end(pipe)
        if start.id is None:
            return
        word = data.decode("utf-8", "replace").strip()
        if word == "ready":
            self.wire.answer(start.id, {"run": self.ops.describe(Run(start.run_dir)), "started_before": False})
        elif "Errno" in word:
            self.wire.refuse(start.id, "state_dir", f"nothing was started; {start.run_dir}: {word}")
        else:
            self.wire.refuse(start.id, "not_started", word or "its supervisor did not come up")

    def _end(self, pipe: int) -> Starting:
        self.selector.unregister(pipe)
        os.close(pipe)
        start = self.under_way.pop(pipe)
        reap(start.starter)
        self.on_end()
        return start


def reap(starter: subprocess.Popen[bytes]) -> None:
    """It forks and ends within milliseconds; what is left of it then is ended."""
    try:
        starter.wait(2.0)
    except subprocess.TimeoutExpired:
        starter.kill()
        starter.wait()
