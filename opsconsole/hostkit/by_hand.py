"""The same operations for a person on the host, who passes the fence without moving it."""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any

from . import proc
from .fence import Busy
from .files import Damaged, Record
from .host import host_readings
from .ops import Operations
from .readings import plain
from .runs import Run
from .spawn import spawn_supervisor
from .state import HostError, StateDir, open_state
from .worker import DEADLINE_S, Worker

COLUMNS = ("token", "phase", "ran_s", "pids", "exit", "error")


def complain(error: Exception) -> int:
    print(f"hostkit: {error}", file=sys.stderr)
    return 1


def probe(state_dir: str | None, interval_s: float | None) -> int:
    """One PROBE line, or one per interval until stdin or stdout ends."""
    try:
        state = open_state(state_dir)
    except HostError as error:
        return complain(error)
    worker, seq = Worker(state), 0
    try:
        while True:
            seq += 1
            print(json.dumps({"seq": seq, **read_once(state, worker)}), flush=True)
            if interval_s is None:
                return 0
            if select.select([sys.stdin], [], [], interval_s)[0] and not sys.stdin.readline():
                return 0
    finally:
        worker.close()


def read_once(state: StateDir, worker: Worker) -> Record:
    """Waits at most the worker's deadline."""
    began = time.monotonic()
    found = None
    if worker.ask(began) and worker.socket is not None:
        while found is None and time.monotonic() < began + DEADLINE_S and worker.socket is not None:
            if select.select([worker.socket], [], [], 0.5)[0]:
                found = worker.answer()
    if found is None:
        why = worker.trouble(time.monotonic()) or "the driver does not answer"
        found = {"source": "none", "driver": {"failed": why}, "gpus": [], "errors": [why]}
    return {
        "at_unix_s": time.time(),
        "boot_id": proc.boot_id(),
        "uptime_s": proc.boottime_s(),
        "took_s": round(time.monotonic() - began, 4),
        **{key: part for key, part in found.items() if key != "pci_gpus"},
        "host": host_readings(state, proc.scan()),
    }


def show_runs(state_dir: str | None, as_json: bool) -> int:
    try:
        answer = Operations(open_state(state_dir)).list({})
    except (HostError, OSError) as error:
        return complain(error)
    if as_json:
        print(json.dumps(answer))
        return 0
    rows = [[cell(run[name]) for name in COLUMNS] for run in answer["runs"]]
    for row in [[name.upper() for name in COLUMNS], *rows]:
        print("  ".join(part.ljust(width) for part, width in zip(row, widths([list(COLUMNS), *rows]))).rstrip())
    if answer["left_out"]:
        print(f"and {answer['left_out']} more")
    return 0


def widths(rows: list[list[str]]) -> list[int]:
    return [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]


def cell(found: Any) -> str:
    if found is None:
        return "-"
    if isinstance(found, dict):
        return " ".join(f"{key} {part}" for key, part in found.items())
    return plain(f"{found:.0f}" if isinstance(found, float) else str(found), 60)


def stop(state_dir: str | None, fields: Record) -> int:
    try:
        state = open_state(state_dir)
        found = Operations(state, by_hand=True).stop(fields)
        if isinstance(found, Run):
            wait_for_supervisor(state, found, rescue=True)
            found = {"run": Operations(state).describe(found)}
    except (HostError, Busy, Damaged, OSError) as error:
        return complain(error)
    print(f"{plain(str(found['run']['token']))}: {found['run']['phase']}")
    return 0


def start(state_dir: str | None, token: str, spec: Record) -> int:
    try:
        state = open_state(state_dir)
        found = Operations(state, by_hand=True).start({"token": token, "spec": spec})
        if isinstance(found, Run):
            word = wait_for_supervisor(state, found, rescue=False)
            if word != "ready":
                raise HostError("not_started", word or "its supervisor did not come up")
            found = {"run": Operations(state).describe(Run(found.dir))}
    except (HostError, Busy, Damaged, OSError) as error:
        return complain(error)
    print(f"{plain(token)}: {found['run']['phase']}")
    return 0


def wait_for_supervisor(state: StateDir, run: Run, rescue: bool) -> str:
    starter, pipe = spawn_supervisor(state, run.dir, rescue)
    with open(pipe, "rb") as file:
        select.select([file], [], [], 25.0)
        word = (file.read(4096) or b"").decode("utf-8", "replace").strip()
    starter.wait()
    return word
