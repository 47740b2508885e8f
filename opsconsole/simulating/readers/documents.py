"""Logs that are one JSON document, as rows of a table: `sacct --json` (22.05 to 25.x), and Philly's job log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from opsconsole.config.scalars import shown
from opsconsole.simulating.oddities import Odd
from opsconsole.simulating.readers.opening import refusal
from opsconsole.simulating.readers.tables import PHILLY_JOBS, SACCT, Table

SACCT_COLUMNS = [
    "jobid",
    "user",
    "account",
    "submit",
    "start",
    "end",
    "elapsedraw",
    "timelimitraw",
    "state",
    "alloctres",
    "reqtres",
    "allocnodes",
]
PHILLY_COLUMNS = ["jobid", "attempt", "submitted_time", "start_time", "end_time", "gpus", "hosts", "user", "vc"]
Rows = Iterator[tuple[int, Sequence[str] | Odd]]


def read_document(path: str, text: str) -> tuple[Table, list[str], Rows]:
    """The table, its columns, and the rows, numbered from 1. Raises ConfigError where it is none that is known."""
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise refusal(path, f"is no whole JSON document: {error}", "write or copy it again") from None
    if isinstance(document, dict) and isinstance(document.get("jobs"), list):
        return SACCT, SACCT_COLUMNS, _numbered(document["jobs"], _of_slurm)
    if isinstance(document, list) and any(isinstance(job, dict) and "attempts" in job for job in document):
        return PHILLY_JOBS, PHILLY_COLUMNS, _numbered(document, _of_philly)
    raise refusal(path, "is JSON of no known format", "sacct --json has `jobs`, Philly's job log `attempts`")


def _numbered(jobs: Sequence[Any], rows_of: Any) -> Rows:
    for number, job in enumerate(jobs, start=1):
        try:
            for row in rows_of(job):
                yield number, row
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            yield number, Odd("half_line", f"not the shape of a job: {shown(str(error))}")


# -- Slurm --------------------------------------------------------------------------------------------------------


def _of_slurm(job: dict[str, Any]) -> Iterator[list[str]]:
    time, tres = job["time"], job.get("tres") or {}
    state = job.get("state") or ""
    state = state.get("current", "") if isinstance(state, dict) else state
    owner = job.get("association") or {}
    yield [
        _slurm_id(job),
        str(job.get("user") or owner.get("user") or ""),
        str(job.get("account") or owner.get("account") or ""),
        _set(time.get("submission")),
        _set(time.get("start")),
        _set(time.get("end")),
        _set(time["elapsed"]) or "0" if "elapsed" in time else "",
        _limit(time.get("limit")),
        (state[0] if state else "") if isinstance(state, list) else str(state),
        _tres(tres.get("allocated")),
        _tres(tres.get("requested")),
        _set(job.get("allocation_nodes")),
    ]


def _slurm_id(job: dict[str, Any]) -> str:
    """As sacct prints it: JOB, or ARRAY_TASK."""
    array = job.get("array") or {}
    task = array.get("task_id")
    task = task.get("number") if isinstance(task, dict) and task.get("set") else task if isinstance(task, int) else None
    if array.get("job_id") and task is not None:
        return f"{array['job_id']}_{task}"
    return str(job["job_id"]) + ("_[]" if array.get("job_id") and array.get("task") else "")


def _set(value: Any) -> str:
    """A number as old and new versions give it: plain, or `{set, infinite, number}`; 0 is not known."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) else 0
    return str(value) if value else ""


def _limit(value: Any) -> str:
    """Minutes."""
    return "UNLIMITED" if isinstance(value, dict) and value.get("infinite") else _set(value)


def _tres(entries: Any) -> str:
    """As sacct prints it: `gres/gpu:h100=8,gres/gpu=8`."""
    named = [(f"{e['type']}/{e['name']}" if e.get("name") else str(e["type"]), e["count"]) for e in entries or ()]
    return ",".join(f"{name}={count}" for name, count in named)


# -- Philly -------------------------------------------------------------------------------------------------------


def _of_philly(job: dict[str, Any]) -> Iterator[list[str]]:
    """A row for each attempt. The first waits from its submission on, each other one from the end of that before."""
    submitted: Any = job.get("submitted_time")
    attempts = job["attempts"]
    for number, attempt in enumerate(attempts, start=1):
        hosts = attempt.get("detail") or []
        gpus = sum(len(host.get("gpus") or ()) for host in hosts)
        start, end = attempt.get("start_time"), attempt.get("end_time")
        name = str(job["jobid"]) + (f"/{number}" if number > 1 else "")
        texts = (name, number, submitted, start, end, gpus, len(hosts), job.get("user"), job.get("vc"))
        yield ["" if text is None else str(text) for text in texts]
        submitted = end
    if not attempts:
        yield [str(job["jobid"]), "0", str(submitted), "", "", "0", "0", "", str(job.get("vc") or "")]
