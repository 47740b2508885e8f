"""A row of any table to a job. What cannot be used is raised as Odd; what is used though it is odd is noted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opsconsole.config.scalars import CONTROL, shown
from opsconsole.simulating.job import Job
from opsconsole.simulating.oddities import Odd, Oddities
from opsconsole.simulating.readers.tables import Table
from opsconsole.simulating.readers.values import gpus_of, instant, is_missing, limit_ms, number, span_ms, truth, whole

WAITING = ("pending", "waiting", "queued", "requeue_hold", "resv_del_hold")
RUNNING = ("running", "suspended", "completing", "configuring", "stopped")
MOST_NAME = 200


class RowReader:
    """Of one file: knows its columns, and what the rows before said. `begins_ms` is added to its instants."""

    def __init__(self, table: Table, header: Sequence[str], oddities: Oddities, begins_ms: int = 0) -> None:
        self.table, self.oddities, self.begins_ms = table, oddities, begins_ms
        self.line = 0
        places = {name: at for at, name in reversed([*enumerate(header)])}
        there = {field: [places[name] for name in names if name in places] for field, names in table.columns.items()}
        self.at = {field: found[0] for field, found in there.items() if found}
        self.gpus = there["gpus"]
        self.instances, self.share, self.interval = (
            places.get(name) if name else None for name in (table.instances, table.gpu_share, table.since_previous)
        )
        self.task = places.get("task_name")
        self.reached_ms = 0  # the sum of the intervals so far
        self.last_at: int | None = None
        self.zone: str | None = None

    def read(self, cells: Sequence[str], line: int) -> Job:
        """Raises Odd."""
        self.line = line
        name, state = self._id(cells), self._text(cells, "state").lower()
        submitted_at = self._submitted_at(cells)  # early: the clock of intervals goes on whatever the rest says
        if state in self.table.parts:
            raise Odd("job_step", f"{name}, status {state}")
        if state.startswith(WAITING) or "[" in name:
            raise Odd("never_ran", f"{name} {state}")
        gpus = self._gpus(cells)
        run_ms = self._run_ms(cells, state, submitted_at)
        if gpus <= 0:
            raise Odd("no_gpus", f"{name} asks for {gpus:g}")
        job = Job(name, submitted_at, math.ceil(gpus), run_ms, line, **self._rest(cells))
        self._remark(job, gpus)
        return job

    def _remark(self, job: Job, gpus: float) -> None:
        if job.gpus != gpus:
            self._note("part_of_gpu", f"{job.id} asks for {gpus:g}")
        if not job.run_ms:
            self._note("took_no_time", job.id)
        if self.last_at is not None and job.submitted_at < self.last_at:
            self._note("out_of_order", f"{job.id}, {(self.last_at - job.submitted_at) / 1000:g} s before")
        self.last_at = job.submitted_at

    def _note(self, kind: str, detail: str) -> None:
        """The row is kept."""
        self.oddities.add(kind, self.line, detail)

    # -- names ----------------------------------------------------------------------------------------------------

    def _text(self, cells: Sequence[str], field: str) -> str:
        """The field as it stands there; empty where it says nothing."""
        at = self.at.get(field)
        return "" if at is None or is_missing(cells[at]) else cells[at].strip()

    def _id(self, cells: Sequence[str]) -> str:
        """A row without one is called by its line."""
        name = self._name(cells, "id") or f"line{self.line}"
        if self.task is not None:
            name = f"{name}/{cells[self.task].strip()}"
        if self.table.requeues and "." in name:
            raise Odd("job_step", name)
        return name

    def _name(self, cells: Sequence[str], field: str) -> str:
        text = self._text(cells, field)[:MOST_NAME]
        return text if text.isalnum() else CONTROL.sub("?", text)

    # -- times ----------------------------------------------------------------------------------------------------

    def _submitted_at(self, cells: Sequence[str]) -> int:
        if self.interval is not None:
            self.reached_ms += span_ms(self._needed(cells[self.interval], "missing_time", "its interval"))
            return self.begins_ms + self.reached_ms
        at = self._instant(cells, "submitted_at", is_first=True)
        if at is None:
            raise Odd("missing_time", "no instant of submission")
        return at

    def _instant(self, cells: Sequence[str], field: str, is_first: bool = False) -> int | None:
        text = self._text(cells, field)
        if not text:
            return None
        found = instant(text, self.table.per_second)
        if is_first:
            self.zone = found.zone if self.zone is None else self.zone
            if found.zone != self.zone:
                self._note("other_zone", shown(text))
        if found.at_ms < 0:
            raise Odd("negative_time", shown(text))
        return self.begins_ms + found.at_ms

    def _run_ms(self, cells: Sequence[str], state: str, submitted_at: int) -> int:
        """As the log says it, else from start to end."""
        text = self._text(cells, "run_s")
        started_at, ended_at = self._instant(cells, "started_at"), self._instant(cells, "ended_at")
        run_ms = span_ms(text) if text else None
        if not run_ms:
            self._check_ran(state, started_at, run_ms)
        self._check_start(cells, started_at, submitted_at)
        if started_at is not None and ended_at is not None and ended_at < started_at:
            raise Odd("negative_time", f"ended {(started_at - ended_at) / 1000:g} s before its start")
        if run_ms is None and started_at is not None and ended_at is not None:
            run_ms = ended_at - started_at
        is_running = state.startswith(RUNNING) and "ended_at" in self.at and ended_at is None
        if run_ms is None:
            raise Odd("missing_time", "no run time" + (" yet: it was still running" if is_running else ""))
        if is_running:
            self._note("still_running", f"{run_ms / 1000:g} s so far")
        return run_ms

    def _check_ran(self, state: str, started_at: int | None, run_ms: int | None) -> None:
        """Old versions of Slurm give a job that was cancelled in the queue the instant of its end as its start."""
        cancelled, has_starts = state.startswith("cancel"), "started_at" in self.at
        if cancelled and run_ms == 0 and self.table.requeues:
            raise Odd("never_ran", "cancelled in the queue")
        if has_starts and started_at is None:
            raise Odd("never_ran" if cancelled or run_ms == 0 else "missing_time", "no start")

    def _check_start(self, cells: Sequence[str], started_at: int | None, submitted_at: int) -> None:
        wait = self._text(cells, "wait_s")
        waited_ms = number(wait) * 1000 if wait else 0 if started_at is None else started_at - submitted_at
        if waited_ms < 0:
            self._note("negative_wait", f"{-waited_ms / 1000:g} s before")

    # -- amounts --------------------------------------------------------------------------------------------------

    def _needed(self, text: str, kind: str, what: str) -> str:
        if is_missing(text):
            raise Odd(kind, f"{what} is empty")
        return text

    def _gpus(self, cells: Sequence[str]) -> float:
        """Over all hosts; 0 where nothing is said: a job that asks for no GPUs has no such entry."""
        table = self.table
        text = next((cells[at] for at in self.gpus if not is_missing(cells[at])), "")
        if not text and not (table.requeues or table.gpu_parts > 1):
            raise Odd("missing_field", "how many GPUs")
        gpus = gpus_of(text, self._hosts(cells) or 1) / table.gpu_parts if text else 0.0
        if self.instances is not None:
            gpus *= number(self._needed(cells[self.instances], "missing_field", "how many instances"))
        if self.share is not None and gpus == 1 and not is_missing(cells[self.share]):
            gpus = number(cells[self.share]) / 1000
        return gpus

    def _hosts(self, cells: Sequence[str]) -> int | None:
        text = self._text(cells, "hosts")
        return (whole(text) or None) if text else None

    def _rest(self, cells: Sequence[str]) -> dict[str, Any]:
        limit, minimum = self._text(cells, "time_limit_s"), self._text(cells, "min_runtime_s")
        resumable, priority = self._text(cells, "resumable"), self._text(cells, "priority")
        unit_s = self.table.limit_unit_s
        return {
            "user": self._name(cells, "user"),
            "project": self._name(cells, "project"),
            "hosts": self._hosts(cells),
            "limit_ms": None if not limit else limit_ms(limit) if unit_s == 60 else span_ms(limit),
            "min_runtime_ms": span_ms(minimum) if minimum else None,
            "resumable": truth(resumable) if resumable else None,
            "budget": self._name(cells, "budget"),
            "priority": whole(priority) if priority else 0,
        }
