"""Tells every change of a run, whoever started it, and has those finished whose supervisor is dead."""

from __future__ import annotations

import time
from typing import Any, Callable

from . import proc
from .files import Record
from .ops import Operations, needs_rescue, runs_changed_at, signature
from .runs import Run, all_runs
from .state import StateDir

RESCUE_PAUSE_S = 20.0
SCAN_SHARE = 0.003  # of a core, at most, for looking through /proc unasked


class RunWatch:
    """`look` from time to time. `processes` is the latest look through /proc."""

    def __init__(
        self, state: StateDir, ops: Operations, tell: Callable[[Record], None], rescue: Callable[[Run], None]
    ) -> None:
        self.state = state
        self.ops = ops
        self.tell = tell
        self.rescue = rescue
        self.seen: dict[str, list[Any]] = {}
        self.live: dict[str, Run] = {}
        self.mark = -1
        self.rescued: dict[str, float] = {}
        self.processes: proc.Scan = {}
        self.scan_due = 0.0

    def told(self, runs: list[Record]) -> None:
        """The client knows these as they are here."""
        for described in runs:
            self.seen[described["token"]] = signature(described)

    def look(self, now: float) -> None:
        mark = runs_changed_at(self.state)
        if mark != self.mark:
            self.mark = mark
            self.live = {run.dir: run for run in all_runs(self.state)}
        changed = False
        for run in list(self.live.values()):
            run.reload()
            phase = run.phase()
            before = self.seen.get(run.token)
            if before is None or before[0] != phase or before != signature(run.describe(0)):
                changed = True
            if phase in ("released", "never_started") or run.other_boot():
                self.live.pop(run.dir)
            elif phase in ("unknown", "exited") and not run.supervised():
                self._rescue(run, now)
        if changed:
            self._tell_changes()

    def _tell_changes(self) -> None:
        self.scan(force=True)
        for run in all_runs(self.state):
            described = self.ops.describe(run, self.processes)
            now_seen = signature(described)
            if self.seen.get(run.token) != now_seen:
                self.seen[run.token] = now_seen
                self.tell(described)

    def _rescue(self, run: Run, now: float) -> None:
        if now - self.rescued.get(run.dir, -RESCUE_PAUSE_S) < RESCUE_PAUSE_S:
            return
        self.scan(force=True)
        if needs_rescue(run, self.processes):
            self.rescued[run.dir] = now
            self.rescue(run)

    def scan(self, force: bool = False) -> None:
        """Through /proc, at most so often that it costs a small share of a core."""
        now = time.monotonic()
        if not force and now < self.scan_due:
            return
        self.processes = proc.scan()
        self.scan_due = now + (time.monotonic() - now) / SCAN_SHARE
